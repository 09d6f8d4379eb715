//! Cgroups of sandboxes: `hearth-<tag>/<sandbox>/{template,instance-<n> …}`, on v1 and on v2.
//!
//! On v2 all controllers share one hierarchy. On v1 each has its own: the memory hierarchy has the whole tree, pids and
//! CPU only the sandbox, since every further hierarchy costs one more move per start.
//!
//! The kernel lets anybody read them, so the server looks for itself: see [`Leaf::template_of`].

mod mounts;
mod processes;
mod stale;
mod tree;
mod v1;
mod v2;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

pub(crate) use self::processes::{belongs, owner};
use self::processes::{descendants, kill_listed, listed, signal_owned, stop_owned};
pub(crate) use self::stale::{Tag, clear_stale_directories};
use self::tree::{about, remove_tree};
use crate::SandboxError;
use crate::limits::{Limits, SANDBOXES_CPU_WEIGHT};

const PROCS: &str = "cgroup.procs";
/// What docker-compose.yml does. In a cgroup namespace of its own a container has its controllers too, but the kernel
/// lets it set `favordynmods` in the host's only.
const REMEDY: &str = "mount them (systemd does); in a container, run it privileged in the host's cgroup namespace \
    (docker run --privileged --cgroupns=host; compose: `privileged: true`, `cgroup: host`)";
const TEMPLATE: &str = "template";

/// Which interface the kernel's controllers have here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    V1,
    /// One hierarchy.
    V2,
}

impl Version {
    /// "v1" or "v2".
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// The same directory in every hierarchy that is used.
#[derive(Debug, Clone)]
struct Directories {
    version: Version,
    /// In the memory hierarchy (v2: the only one).
    memory: PathBuf,
    /// v1: in those of pids and CPU, which may be one and the same or that of memory.
    pids: PathBuf,
    cpu: PathBuf,
}

impl Directories {
    fn join(&self, name: &str) -> Self {
        Self {
            version: self.version,
            memory: self.memory.join(name),
            pids: self.pids.join(name),
            cpu: self.cpu.join(name),
        }
    }

    /// Each directory once.
    fn distinct(&self) -> Vec<&Path> {
        let mut all = vec![
            self.memory.as_path(),
            self.pids.as_path(),
            self.cpu.as_path(),
        ];
        all.sort_unstable();
        all.dedup();
        all
    }

    fn create(&self) -> io::Result<()> {
        for dir in self.distinct() {
            fs::create_dir(dir).map_err(|error| about(dir, &error))?;
        }
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        for dir in self.distinct() {
            remove_tree(dir)?;
        }
        Ok(())
    }
}

/// The server's own cgroup, in which every sandbox has one.
#[derive(Debug)]
pub(crate) struct Top(Directories);

impl Top {
    /// Finds the controllers, clears what dead servers left, and makes a directory for this server.
    pub fn open(tag: &Tag) -> Result<Self, SandboxError> {
        let missing = |reason| SandboxError::Missing {
            what: "the cgroup controllers memory, pids and cpu",
            reason,
            remedy: REMEDY,
        };
        let place = mounts::find()
            .and_then(|found| match found {
                mounts::Found::V1(directories) => Ok(directories),
                mounts::Found::V2 { mount, own } => v2::place(&mount, &own),
            })
            .map_err(missing)?;
        for parent in place.distinct() {
            stale::clear_stale_cgroups(parent);
        }
        let top = place.join(tag.as_str());
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let weight = SANDBOXES_CPU_WEIGHT.times(cores);
        let prepared = top.create().and_then(|()| match top.version {
            Version::V1 => v1::prepare_top(&top, weight),
            Version::V2 => v2::prepare_top(&top, weight),
        });
        prepared.map_err(|error| missing(error.to_string()))?;
        Ok(Self(top))
    }

    /// Writes into the server's directory where its cgroups are, for the server after it.
    pub fn record(&self, dir: &Path) -> io::Result<()> {
        stale::record(dir, &self.0.distinct())
    }

    /// Its directory in the memory hierarchy.
    pub fn memory(&self) -> &Path {
        &self.0.memory
    }

    /// v1 or v2.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Creates the cgroups of a sandbox, including its template's leaf. A pre-warmed sandbox gets its limits later.
    pub fn sandbox(&self, name: &str, limits: Option<&Limits>) -> io::Result<Group> {
        let directories = self.0.join(name);
        let mut group = Group {
            template: directories.memory.join(TEMPLATE),
            directories,
            limits: None,
        };
        let made = group.create().and_then(|()| match limits {
            Some(limits) => group.limit(limits),
            None => Ok(()),
        });
        made.inspect_err(|_| {
            // Best effort: what is left is cleared at the next start.
            let _ = group.remove();
        })?;
        Ok(group)
    }

    /// Removes the server's own cgroup; every sandbox must be gone.
    pub fn remove(&self) -> io::Result<()> {
        self.0.remove()
    }
}

/// The cgroups of one sandbox.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Directories,
    template: PathBuf,
    /// None while the sandbox is pre-warmed.
    limits: Option<Limits>,
}

impl Group {
    fn create(&self) -> io::Result<()> {
        self.directories.create()?;
        if self.directories.version == Version::V2 {
            v2::prepare_sandbox(&self.directories)?;
        }
        fs::create_dir(&self.template).map_err(|error| about(&self.template, &error))
    }

    /// Sets the limits, once.
    pub fn limit(&mut self, limits: &Limits) -> io::Result<()> {
        match self.directories.version {
            Version::V1 => v1::limit_sandbox(&self.directories, limits)?,
            Version::V2 => v2::limit_sandbox(&self.directories, limits)?,
        }
        self.template().limit_memory(limits.template_memory)?;
        self.limits = Some(limits.clone());
        Ok(())
    }

    /// The leaf of PID 1 and template.
    pub fn template(&self) -> Leaf {
        Leaf {
            version: self.directories.version,
            dir: self.template.clone(),
        }
    }

    /// Files into which init writes itself to join.
    pub fn procs_of_init(&self) -> Vec<PathBuf> {
        let mut procs = vec![self.template.join(PROCS)];
        for dir in self.directories.distinct() {
            if dir != self.directories.memory {
                procs.push(dir.join(PROCS));
            }
        }
        procs
    }

    /// The leaf of one instance.
    pub fn leaf(&self, number: u64) -> Leaf {
        Leaf::instance_of(self.directories.version, &self.directories.memory, number)
    }

    /// Makes the leaf of one instance.
    pub fn instance_cgroup(&self, number: u64) -> io::Result<Leaf> {
        let limits = self.limits.as_ref();
        let limits =
            limits.ok_or_else(|| io::Error::other("a pre-warmed sandbox has no instances"))?;
        let leaf = self.leaf(number);
        fs::create_dir(&leaf.dir).map_err(|error| about(&leaf.dir, &error))?;
        let limited = leaf
            .limit_memory(limits.cgroup_memory)
            .and_then(|()| match leaf.version {
                Version::V1 => Ok(()),
                Version::V2 => v2::limit_instance_cgroup(&leaf.dir),
            });
        limited.inspect_err(|_| {
            // Cleared with the sandbox, if not now.
            let _ = fs::remove_dir(&leaf.dir);
        })?;
        Ok(leaf)
    }

    /// Removes the sandbox's cgroups. Fails with `EBUSY` while processes are in them.
    pub fn remove(&self) -> io::Result<()> {
        self.directories.remove()
    }
}

/// A cgroup that holds processes: a template's or an instance's.
#[derive(Debug, Clone)]
pub struct Leaf {
    version: Version,
    dir: PathBuf,
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

    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
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

    /// Memory charged to what is in it, bytes, file cache left out. `None` when it is gone.
    pub fn memory(&self) -> Option<u64> {
        memory(self.version, &self.dir)
    }

    /// The same for all cgroups of its sandbox together, including the template's.
    pub fn memory_of_all(&self) -> Option<u64> {
        memory(self.version, self.dir.parent()?)
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

    /// Processes in it that belong to this host uid, PID 1 not being one.
    pub fn processes(&self, uid: u32) -> usize {
        let all = listed(&self.dir).into_iter();
        all.filter(|pid| belongs(*pid, uid)).count()
    }

    /// The same, with those that a process, which is one of them, had started before it was in here.
    pub fn processes_with(&self, parent: Pid, uid: u32) -> usize {
        let mut all = descendants(parent);
        all.extend(listed(&self.dir));
        all.into_iter().filter(|pid| belongs(*pid, uid)).count()
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

/// Memory charged to a cgroup and those below it, without the file cache.
fn memory(version: Version, dir: &Path) -> Option<u64> {
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

/// The value of `key` in lines of `key value`; 0 when it is not there.
fn keyed(text: &str, key: &str) -> u64 {
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
    fn the_remedy_is_what_compose_does_and_the_documentation_says() {
        let compose = include_str!("../../../docker-compose.yml");
        let docs = include_str!("../../../server/docs/sandbox.md");
        for setting in ["privileged: true", "cgroup: host"] {
            assert!(REMEDY.contains(&format!("`{setting}`")), "{REMEDY}");
            assert!(
                compose.lines().any(|line| line.trim() == setting),
                "docker-compose.yml has no `{setting}`"
            );
            assert!(docs.contains(&format!("`{setting}`")), "{setting}");
        }
        assert!(REMEDY.contains("--privileged --cgroupns=host"), "{REMEDY}");
    }

    #[test]
    fn keyed_values() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(keyed(text, "oom_kill"), 3);
        assert_eq!(keyed(text, "absent"), 0);
    }
}
