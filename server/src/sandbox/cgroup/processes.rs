//! The processes in a cgroup directory.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

use super::PROCS;

/// Kills every process listed in a cgroup directory.
pub fn kill_listed(dir: &Path) {
    for pid in listed(dir) {
        // The number may pass to another process at any time, the descriptor may not: kill through it, and only if the
        // process it stands for is still listed.
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if listed(dir).contains(&pid) {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
}

/// Processes in a cgroup directory.
pub fn listed(dir: &Path) -> Vec<Pid> {
    fs::read_to_string(dir.join(PROCS))
        .map(|text| {
            text.lines()
                .filter_map(|line| line.parse().ok())
                .filter_map(Pid::from_raw)
                .collect()
        })
        .unwrap_or_default()
}
