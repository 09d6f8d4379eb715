//! What is in a cgroup, and what it uses. The kernel lets anybody look.

use std::fs;
use std::path::Path;

use hearth_host::cgroup::{Leaf, Version, belongs, descendants, keyed, listed};
use rustix::process::Pid;

/// Processes in a leaf that belong to this host uid, PID 1 not being one.
pub(super) fn processes(leaf: &Leaf, uid: u32) -> usize {
    let all = listed(&leaf.dir).into_iter();
    all.filter(|pid| belongs(*pid, uid)).count()
}

/// The same, with those that a process, which is one of them, had started before it was in there.
pub(super) fn processes_with(leaf: &Leaf, parent: Pid, uid: u32) -> usize {
    let mut all = descendants(parent);
    all.extend(listed(&leaf.dir));
    all.into_iter().filter(|pid| belongs(*pid, uid)).count()
}

/// Memory charged to a cgroup and those below it, bytes, without the file cache. `None` when it is
/// gone.
pub(super) fn memory(version: Version, dir: &Path) -> Option<u64> {
    let (usage, inactive, active) = match version {
        Version::V1 => (
            "memory.usage_in_bytes",
            "total_inactive_file",
            "total_active_file",
        ),
        Version::V2 => ("memory.current", "inactive_file", "active_file"),
    };
    let read = |file| fs::read_to_string(dir.join(file)).ok();
    let usage: u64 = read(usage)?.trim().parse().ok()?;
    let stat = read("memory.stat")?;
    let cache = keyed(&stat, inactive) + keyed(&stat, active);
    // The figures are not of the same moment.
    Some(usage.saturating_sub(cache))
}
