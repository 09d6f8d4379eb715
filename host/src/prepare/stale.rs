//! Removes what a dead server left behind, without touching what a running one uses.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::cgroup::{PROCS, kill_listed, remove_tree};

const PREFIX: &str = "hearth-";
/// File in a server's directory that says where its cgroups are, a path a line.
const RECORD: &str = "cgroups";
/// How long the processes of a dead server get to end after they were killed; protects the start of this one.
const CLEARING_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(10);

/// Names one host thread's cgroup and directory: `hearth-<pid>-<start>-<pid namespace>-<n>`. From the pid and its start
/// time another server sees whether the owner is alive; the number distinguishes several owners in one process.
#[derive(Debug, Clone)]
pub struct Tag(String);

impl Tag {
    /// A new name.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let start = start_time(pid).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!(
            "{PREFIX}{pid}-{start}-{}-{number}",
            pid_namespace()
        ))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who made something with such a name.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Living,
    Dead,
    /// It is in another pid namespace, where this process cannot look.
    Elsewhere,
}

/// None when the name is not a [`Tag`].
fn owner(name: &str) -> Option<Owner> {
    let mut fields = name.strip_prefix(PREFIX)?.split('-');
    let pid: u32 = fields.next()?.parse().ok()?;
    let start: u64 = fields.next()?.parse().ok()?;
    let namespace: u64 = fields.next()?.parse().ok()?;
    let _number: u32 = fields.next()?.parse().ok()?;
    Some(if namespace != pid_namespace() {
        Owner::Elsewhere
    } else if start_time(pid) == Some(start) {
        Owner::Living
    } else {
        Owner::Dead
    })
}

/// Kills and removes what dead servers left in a cgroup directory.
pub fn clear_stale_cgroups(parent: &Path) {
    for (name, path) in entries(parent) {
        if owner(&name) == Some(Owner::Dead) {
            clear(&path);
        }
    }
}

/// Kills what is in a cgroup and removes it.
fn clear(cgroup: &Path) {
    let deadline = Instant::now() + CLEARING_TIMEOUT;
    loop {
        kill_tree(cgroup);
        match remove_tree(cgroup) {
            Ok(()) => return,
            Err(_) if Instant::now() < deadline => std::thread::sleep(RETRY),
            Err(error) => {
                tracing::warn!(path = %cgroup.display(), %error, "cannot remove the cgroup of a dead server");
                return;
            }
        }
    }
}

/// Writes down where a server's cgroups are: the next one may be started in another part of the tree, and would not see
/// them there.
pub fn record(dir: &Path, cgroups: &[&Path]) -> io::Result<()> {
    let lines: Vec<_> = cgroups
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    fs::write(dir.join(RECORD), lines.join("\n"))
}

/// Clears the recorded cgroups of the dead server to which a directory belonged.
fn clear_recorded(dir: &Path) {
    let record = fs::read_to_string(dir.join(RECORD)).unwrap_or_default();
    for path in record.lines().map(Path::new) {
        // Whatever the file says, only what has the dead server's name is its own.
        if path.file_name() == dir.file_name() && path.join(PROCS).exists() {
            clear(path);
        }
    }
}

/// Removes what earlier servers left in the directory for roots. It belongs to one server at a time, so an owner in a
/// pid namespace that is not this one was an earlier container. Nothing is mounted there in this mount namespace.
pub fn clear_stale_directories(dir: &Path) {
    for (name, path) in entries(dir) {
        match owner(&name) {
            Some(Owner::Dead) => clear_recorded(&path),
            Some(Owner::Elsewhere) => {}
            Some(Owner::Living) | None => continue,
        }
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the directory of a dead server");
        }
    }
}

fn entries(dir: &Path) -> Vec<(String, std::path::PathBuf)> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

fn kill_tree(dir: &Path) {
    kill_listed(dir);
    for (_, path) in entries(dir) {
        if path.is_dir() {
            kill_tree(&path);
        }
    }
}

/// Start time of a process in clock ticks since boot: field 22 of `/proc/PID/stat`, counted after the name, which may
/// hold any character. None when there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Number of this process's pid namespace, 0 when `/proc` does not tell.
fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        let tag = Tag::new();
        assert_ne!(tag.as_str(), Tag::new().as_str());
        assert_eq!(owner(tag.as_str()), Some(Owner::Living));
        let (pid, namespace) = (std::process::id(), pid_namespace());
        assert_eq!(
            owner(&format!("hearth-{pid}-1-{namespace}-0")),
            Some(Owner::Dead)
        );
        assert_eq!(
            owner(&format!("hearth-{pid}-1-12-0")),
            Some(Owner::Elsewhere)
        );
        for other in ["hearth-unit-test-1", "hearth", "server", "hearth-1-2-3"] {
            assert_eq!(owner(other), None);
        }
    }

    #[test]
    fn only_dead_servers_directories_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let dead = format!("hearth-{}-1-{}-0", std::process::id(), pid_namespace());
        let living = Tag::new();
        for name in [dead.as_str(), living.as_str(), "other"] {
            fs::create_dir_all(dir.path().join(name).join("root")).expect("mkdir");
        }
        clear_stale_directories(dir.path());
        assert!(!dir.path().join(dead).exists());
        assert!(dir.path().join(living.as_str()).exists());
        assert!(dir.path().join("other").exists());
    }

    /// In the kernel's own v2 hierarchy, where one can be made without any controller.
    #[test]
    fn recorded_cgroups_go_wherever_they_are() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let Some(mount) = super::super::mounts::v2_mount(&mounts) else {
            return; // this host has no v2 at all
        };
        let elsewhere = mount.join(format!("hearth-unit-test-stale-{}", std::process::id()));
        let dead = format!("hearth-{}-2-{}-0", std::process::id(), pid_namespace());
        let (cgroup, other) = (elsewhere.join(&dead), elsewhere.join("other"));
        for path in [&cgroup.join("f-1.0/template"), &other] {
            fs::create_dir_all(path).expect("mkdir, as root");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join(&dead);
        fs::create_dir(&own).expect("mkdir");
        record(&own, &[&cgroup, &other]).expect("record");
        clear_stale_directories(dir.path());
        assert!(!own.exists());
        assert!(!cgroup.exists());
        assert!(other.exists(), "it does not have the server's name");
        remove_tree(&elsewhere).expect("rmdir");
    }
}
