//! The processes in a cgroup directory.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

use super::PROCS;

/// How often the processes of a cgroup are listed again to stop new ones. New ones can come only from processes not
/// stopped yet.
const STOP_ROUNDS: usize = 8;

/// Kills every process listed in a cgroup directory.
pub(crate) fn kill_listed(dir: &Path) {
    signal_if(dir, Signal::KILL, |pid| listed(dir).contains(&pid));
}

/// Sends a signal to every process listed that belongs to this uid, which is one sandbox's alone. It is that which is looked
/// at again, and not the list: there may be thousands.
pub fn signal_owned(dir: &Path, signal: Signal, uid: u32) {
    signal_if(dir, signal, |pid| belongs(pid, uid));
}

/// Sends a signal to every process listed that is what it was.
fn signal_if(dir: &Path, signal: Signal, is_still: impl Fn(Pid) -> bool) {
    for pid in listed(dir) {
        signal_process(pid, signal, &is_still);
    }
}

/// Sends a signal to a process that is what it was, once it is held by a descriptor: the number may pass to another process at
/// any time, the descriptor may not.
pub(crate) fn signal_process(pid: Pid, signal: Signal, is_still: impl Fn(Pid) -> bool) {
    let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if is_still(pid) {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
    }
}

/// Stops every process that belongs to this uid, and those that they start meanwhile. Returns how many there are.
pub fn stop_owned(dir: &Path, uid: u32) -> usize {
    let mut stopped = HashSet::new();
    for _ in 0..STOP_ROUNDS {
        let there: HashSet<_> = listed(dir)
            .into_iter()
            .filter(|pid| belongs(*pid, uid))
            .collect();
        if there.is_subset(&stopped) {
            break;
        }
        signal_owned(dir, Signal::STOP, uid);
        stopped.extend(there);
    }
    stopped.len()
}

/// The descendants of a process, without those that were reparented because their parent exited.
pub fn descendants(of: Pid) -> HashSet<Pid> {
    let mut found = HashSet::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            // A kernel without CONFIG_PROC_CHILDREN does not tell.
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_ascii_whitespace();
            let children: Vec<_> = children
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
                .filter(|pid| !found.contains(pid))
                .collect();
            found.extend(&children);
            next.extend(children);
        }
    }
    found
}

/// The real uid of a process, when it can be found.
pub fn owner(pid: Pid) -> io::Result<Option<u32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut lines = status.lines();
    Ok(lines
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|uids| uids.split_ascii_whitespace().next()?.parse().ok()))
}

/// Whether a process lives and its real uid is this one.
pub fn belongs(pid: Pid, uid: u32) -> bool {
    owner(pid).is_ok_and(|owner| owner == Some(uid))
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
