//! A leaf of a sandbox's cgroup: what is in it, what it uses, how it is stopped and killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use super::processes::{belongs, descendants, kill_listed, listed, signal_owned, stop_owned};
use super::{PROCS, TEMPLATE, Version, v1, v2};

/// A cgroup that holds processes: a template's or an instance's.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// v1 or v2.
    pub version: Version,
    /// In the memory hierarchy.
    pub dir: PathBuf,
}

impl Leaf {
    /// The template's leaf of a sandbox with this directory in the memory hierarchy.
    pub fn template_of(version: Version, sandbox: &Path) -> Self {
        Self {
            version,
            dir: sandbox.join(TEMPLATE),
        }
    }

    /// The leaf of an instance with this number.
    pub fn instance_of(version: Version, sandbox: &Path, number: u64) -> Self {
        Self {
            version,
            dir: sandbox.join(format!("instance-{number}")),
        }
    }

    /// Write a pid here to move a process in.
    pub fn procs(&self) -> PathBuf {
        self.dir.join(PROCS)
    }

    pub(super) fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        match self.version {
            Version::V1 => v1::limit_memory(&self.dir, bytes),
            Version::V2 => v2::limit_memory(&self.dir, bytes),
        }
    }

    /// How many processes in it the memory limit has killed. 0 when it is gone.
    pub fn oom_kills(&self) -> u64 {
        let (file, key) = match self.version {
            Version::V1 => ("memory.oom_control", "oom_kill"),
            Version::V2 => ("memory.events", "oom_kill"),
        };
        fs::read_to_string(self.dir.join(file))
            .map(|text| keyed(&text, key))
            .unwrap_or_default()
    }

    /// Kills what is in it; processes that appear meanwhile may be missed on v1.
    pub fn kill(&self) {
        match self.version {
            Version::V1 => kill_listed(&self.dir),
            // The file is missing before Linux 5.14.
            Version::V2 if fs::write(self.dir.join("cgroup.kill"), "1").is_ok() => {}
            Version::V2 => kill_listed(&self.dir),
        }
    }

    /// Moves what this process, which is in it, had started before it was, and what belongs to this host uid.
    pub fn adopt(&self, parent: Pid, uid: u32) {
        let there = listed(&self.dir);
        for child in descendants(parent) {
            if !there.contains(&child) && belongs(child, uid) {
                // It may have ended meanwhile.
                let _ = fs::write(self.procs(), child.to_string());
            }
        }
    }

    /// Processes in it, whoever they belong to.
    pub fn listed(&self) -> Vec<Pid> {
        listed(&self.dir)
    }

    /// Stops them; returns how many there are. Of a process that starts others without end some may be missed.
    pub fn freeze(&self, uid: u32) -> usize {
        stop_owned(&self.dir, uid)
    }

    /// Resumes them.
    pub fn thaw(&self, uid: u32) {
        signal_owned(&self.dir, Signal::CONT, uid);
    }

    /// Removes it; true when it is gone, false while something is in it.
    pub fn remove(&self) -> bool {
        match fs::remove_dir(&self.dir) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// The value of `key` in lines of `key value`; 0 when it is not there.
pub fn keyed(text: &str, key: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_values() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(keyed(text, "oom_kill"), 3);
        assert_eq!(keyed(text, "absent"), 0);
    }
}
