//! Processes as /proc shows them.

use std::collections::HashMap;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

/// What the kernel calls Hearth's init, whose children are the templates.
const INIT: &str = "hearth-init";

/// The cgroup of a template, which becomes an instance only after it has left that.
const TEMPLATE_LEAF: &str = "/template";

/// One process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    parent: u32,
    name: String,
}

/// The processes of a server's sandboxes.
#[derive(Debug, Default)]
pub struct Workers {
    /// PID 1 of each sandbox.
    pub inits: Vec<Process>,
    /// Their children, unless they have become instances themselves.
    pub templates: Vec<Process>,
    /// Their children that wait to become instances: they are still in their template's cgroup.
    pub preforked: Vec<Process>,
    /// The other children, and what those have started.
    pub instances: Vec<Process>,
}

impl Process {
    /// The one with this id.
    #[cfg(test)]
    pub fn of(pid: u32) -> Self {
        Self {
            pid,
            parent: 0,
            name: String::new(),
        }
    }

    /// Proportional set size in KiB.
    pub fn pss_kb(&self) -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid))?;
        let line = text
            .lines()
            .find(|line| line.starts_with("Pss:"))
            .context("no Pss")?;
        Ok(line
            .split_whitespace()
            .nth(1)
            .context("no figure")?
            .parse()?)
    }

    /// User and system time, in ns: finer than the ticks of `/proc/PID/stat`.
    pub fn cpu_ns(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text
                .split_whitespace()
                .next()
                .context("no figure")?
                .parse::<u64>()?;
        }
        Ok(sum)
    }

    /// User and system time in ns, of threads that have ended as well: in the ticks of `/proc/PID/stat`, 10 ms each. None when
    /// it has ended.
    fn spent_ns(&self) -> Option<u64> {
        const TICK_NS: u64 = 10_000_000;
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let (_, tail) = text.rsplit_once(')')?;
        let mut fields = tail.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some((user + system) * TICK_NS)
    }

    /// Where it is counted; None when it has ended.
    fn cgroup(&self) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/cgroup", self.pid)).ok()
    }

    /// Whether it is counted as a template, or will be in a moment.
    fn is_template(&self) -> bool {
        self.cgroup()
            .is_none_or(|text| text.lines().any(|line| line.ends_with(TEMPLATE_LEAF)))
    }

    fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid.cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Sums a figure of processes.
pub fn sum(
    processes: &[Process],
    figure: fn(&Process) -> anyhow::Result<u64>,
) -> anyhow::Result<u64> {
    processes.iter().map(figure).sum()
}

/// The processes of a server: that which was started, and what it has started beside sandboxes.
pub fn servers(started: u32) -> anyhow::Result<Vec<Process>> {
    let mut all: Vec<_> = all()?.into_values().collect();
    all.retain(|process| {
        process.pid == started || process.parent == started && process.name != INIT
    });
    Ok(all)
}

/// User and system time of a process and of all that it and its children have started, in ns. What ends meanwhile is
/// missing, so it is for differences while nothing starts or ends.
pub fn family_cpu_ns(root: u32) -> anyhow::Result<u64> {
    let all = all()?;
    let is_of_family = |process: &&Process| {
        let mut above = Some(*process);
        while let Some(ancestor) = above {
            if ancestor.pid == root {
                return true;
            }
            above = all.get(&ancestor.parent);
        }
        false
    };
    let family: Vec<&Process> = all.values().filter(is_of_family).collect();
    anyhow::ensure!(!family.is_empty(), "process {root} has ended");
    // One that has just ended has no figure. Servers end the threads of connections that are closed: their time counts.
    Ok(family.iter().filter_map(|process| process.spent_ns()).sum())
}

impl Workers {
    /// Those of the server with this process id.
    pub fn of(server: u32) -> anyhow::Result<Self> {
        let all = all()?;
        let mut workers = Self::default();
        for process in all.values() {
            let mut generations = Vec::new();
            let mut above = Some(process);
            while let Some(ancestor) = above {
                if ancestor.pid == server {
                    break;
                }
                generations.push(ancestor);
                above = all.get(&ancestor.parent);
            }
            if above.is_none() || generations.last().is_none_or(|first| first.name != INIT) {
                continue;
            }
            match generations.len() {
                1 => workers.inits.push(process.clone()),
                2 if process.is_template() => workers.templates.push(process.clone()),
                3 if process.cgroup() == generations[1].cgroup() => {
                    workers.preforked.push(process.clone());
                }
                _ => workers.instances.push(process.clone()),
            }
        }
        Ok(workers)
    }

    /// Kills all instances of the server, and no pre-forked instances, so that its next request has none.
    pub fn kill_instances(server: u32) -> anyhow::Result<()> {
        for instance in Self::of(server)?.instances {
            instance.kill();
        }
        Ok(())
    }

    /// All of them.
    pub fn all(self) -> Vec<Process> {
        [self.inits, self.templates, self.preforked, self.instances].concat()
    }
}

fn all() -> anyhow::Result<HashMap<u32, Process>> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = stat(pid) {
            all.insert(pid, process);
        }
    }
    Ok(all)
}

/// `/proc/PID/stat`, see proc(5). None for a process that has ended, also if nobody has waited for it yet.
fn stat(pid: u32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let mut fields = tail.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        name: head.split_once('(')?.1.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_familys_time_holds_that_of_its_children() {
        let mut child = std::process::Command::new("/bin/sh")
            .args([
                "-c",
                "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read line",
            ])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let alone = || Process::of(child.id()).cpu_ns().expect("it runs");
        // It has done its work when its time stands still.
        let mut spent = 0;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = alone();
            if now == spent && now > 0 {
                break;
            }
            spent = now;
        }
        let family = family_cpu_ns(std::process::id()).expect("this process runs");
        // The one is in ticks.
        let spent = spent.saturating_sub(20_000_000);
        assert!(family >= spent, "{family} ns in all, {spent} of the child");
        child.kill().expect("it runs");
        child.wait().expect("a child");
        assert!(family_cpu_ns(child.id()).is_err());
    }
}
