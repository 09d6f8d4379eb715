//! The processes of a server's sandboxes.

use std::collections::HashMap;
use std::io;
use std::iter::Sum;
use std::time::Duration;

use hearth_testkit::cgroups::{self, Cgroup};
use hearth_testkit::figures::cpu_ticks;
use hearth_testkit::processes::{self, Process, signal};
use rustix::io::Errno;
use rustix::process::Signal;

/// What the kernel calls Hearth's init, whose children are the templates.
const INIT: &str = "hearth-init";

/// The cgroup of a template, which becomes an instance only after it has left that.
const TEMPLATE_LEAF: &str = "/template";

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

/// Sums a figure of processes. One that has ended meanwhile, as the instances of a version that was replaced do, has none.
pub fn sum<T: Sum>(processes: &[Process], figure: fn(u32) -> io::Result<T>) -> io::Result<T> {
    let has_ended = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound
            || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
    };
    let figures = processes.iter().map(|process| figure(process.pid));
    let of_live = figures.filter(|figure| !figure.as_ref().is_err_and(has_ended));
    of_live.sum()
}

/// The processes of a server: that which was started, and what it has started beside sandboxes.
pub fn servers(started: u32) -> Vec<Process> {
    let mut all: Vec<_> = all().into_values().collect();
    all.retain(|process| {
        process.pid == started || process.parent == started && process.name() != INIT
    });
    all
}

/// A process and all that it and its children have started.
pub fn family(root: u32) -> Vec<Process> {
    let all = all();
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
    all.values().filter(is_of_family).cloned().collect()
}

/// User and system time of a process and of all that it and its children have started. What ends meanwhile is missing, so it
/// is for differences while nothing starts or ends.
pub fn family_cpu_time(root: u32) -> anyhow::Result<Duration> {
    let family = family(root);
    anyhow::ensure!(!family.is_empty(), "process {root} has ended");
    // One that has just ended has no figure. Servers end the threads of connections that are closed: their time counts.
    let spent = family.iter().filter_map(|process| cpu_ticks(process.pid));
    Ok(spent.sum())
}

impl Workers {
    /// Those of the server with this process id.
    pub fn of(server: u32) -> Self {
        let all = all();
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
            if above.is_none() || generations.last().is_none_or(|first| first.name() != INIT) {
                continue;
            }
            match generations.len() {
                1 => workers.inits.push(process.clone()),
                2 if is_template(process) => workers.templates.push(process.clone()),
                3 if cgroup(process) == cgroup(generations[1]) => {
                    workers.preforked.push(process.clone());
                }
                _ => workers.instances.push(process.clone()),
            }
        }
        workers
    }

    /// Kills all instances of the server, and no pre-forked instances, so that its next request has none.
    pub fn kill_instances(server: u32) {
        for instance in Self::of(server).instances {
            // It may have ended by itself.
            let _ = signal(instance.pid, Signal::KILL);
        }
    }

    /// All of them.
    pub fn all(self) -> Vec<Process> {
        [self.inits, self.templates, self.preforked, self.instances].concat()
    }
}

/// All but those that have ended.
fn all() -> HashMap<u32, Process> {
    let all = processes::all().into_iter();
    let running = all.filter(|process| !process.is_zombie());
    running.map(|process| (process.pid, process)).collect()
}

/// Where it is counted; none when it has ended.
fn cgroup(process: &Process) -> Option<Vec<Cgroup>> {
    cgroups::of(process.pid).ok()
}

/// Whether it is counted as a template, or will be in a moment.
fn is_template(process: &Process) -> bool {
    cgroup(process).is_none_or(|all| all.iter().any(|place| place.path.ends_with(TEMPLATE_LEAF)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_testkit::figures::cpu_time;

    #[test]
    fn a_process_that_has_ended_adds_nothing_to_a_sum() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        let both: Vec<_> = [std::process::id(), child.id()]
            .into_iter()
            .map(|pid| Process::of(pid).expect("it runs"))
            .collect();
        let one = |_| Ok(1);
        assert_eq!(sum(&both, one).expect("no reading fails"), 2);
        child.kill().expect("it runs");
        child.wait().expect("a child");
        let one_if_it_lives = |pid| hearth_testkit::figures::threads(pid).map(|_| 1);
        assert_eq!(
            sum(&both, one_if_it_lives).expect("of the one that lives"),
            1
        );
    }

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
        let alone = || cpu_time(child.id()).expect("it runs");
        // It has done its work when its time stands still.
        let mut spent = Duration::ZERO;
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = alone();
            if now == spent && !now.is_zero() {
                break;
            }
            spent = now;
        }
        let family = family_cpu_time(std::process::id()).expect("this process runs");
        // The one is in ticks.
        let spent = spent.saturating_sub(Duration::from_millis(20));
        assert!(family >= spent, "{family:?} in all, {spent:?} of the child");
        child.kill().expect("it runs");
        child.wait().expect("a child");
        assert!(family_cpu_time(child.id()).is_err());
    }
}
