//! Processes as /proc shows them.

use std::collections::HashMap;

use anyhow::Context;

/// One process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// `comm`.
    pub name: String,
}

impl Process {
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

    /// User and system time, in ticks of 10 ms.
    pub fn cpu_ticks(&self) -> anyhow::Result<u64> {
        let fields = stat(self.pid).context("it ended")?.2;
        let tick = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or(0)
        };
        Ok(tick(11) + tick(12))
    }
}

/// Parent, name and the fields after the name of `/proc/PID/stat` (proc(5); the first of them is the state).
fn stat(pid: u32) -> Option<(u32, String, Vec<String>)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<String> = tail.split_whitespace().map(Into::into).collect();
    Some((fields.get(1)?.parse().ok()?, name, fields))
}

/// All descendants of a process.
pub fn tree(root: u32) -> anyhow::Result<Vec<Process>> {
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some((parent, name, _)) = stat(pid) {
            children
                .entry(parent)
                .or_default()
                .push(Process { pid, name });
        }
    }
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            found.push(child);
        }
    }
    Ok(found)
}
