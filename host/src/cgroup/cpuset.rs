//! Cores of an instance's own, by cpusets: `sched_setaffinity` cannot go beyond one, so nothing in a sandbox can.
//!
//! On v1 the thread that starts sandboxes is in a cpuset `shared`, which they inherit, so that a start needs no move for it. An
//! instance with dedicated cores is moved into one of its own, and `shared` gets the cores that nobody has. On v2 each leaf
//! has its cores, from the first dedicated core on.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::processes::{belongs, descendants, listed};
use super::tree::{about, put};
use super::{Directories, Group, Leaf, PROCS, Version};
use crate::{Capability, cores};

const CPUS: &str = "cpuset.cpus";
const MEMS: &str = "cpuset.mems";
/// v1: threads of a cgroup, of which one can be moved without its process.
const TASKS: &str = "tasks";
const SUBTREE_CONTROL: &str = "cgroup.subtree_control";
/// The cpuset of everything without cores of its own.
const SHARED: &str = "shared";
/// Times the processes of an instance are moved before that counts as failed: new ones come only from those not moved yet.
const MOVE_ROUNDS: usize = 8;

/// Prepares the cpuset of all sandboxes, where there is one to be had. The capability's version lists the cores that there are.
pub(crate) fn prepare(top: &mut Directories) -> Capability {
    const NAME: &str = "cpuset";
    let Some(dir) = top.cpuset.clone() else {
        let reason = match top.version {
            Version::V1 => "the cpuset controller is not mounted as a v1 hierarchy of its own",
            Version::V2 => "the cgroup of the server does not offer the cpuset controller",
        };
        return Capability::unavailable(NAME, reason.to_owned());
    };
    let prepared = match top.version {
        Version::V1 => prepare_v1(&dir),
        Version::V2 => put(&dir, SUBTREE_CONTROL, "+cpuset")
            .and_then(|()| usable(&dir, "cpuset.cpus.effective")),
    };
    match prepared {
        Ok(all) => Capability::available(NAME, Some(cores::list(&all))),
        Err(error) => {
            if top.version == Version::V1 {
                // Cleared at the next start, if not now.
                let _ = super::remove_tree(&dir);
            }
            top.cpuset = None;
            Capability::unavailable(NAME, error.to_string())
        }
    }
}

fn prepare_v1(dir: &Path) -> io::Result<BTreeSet<u32>> {
    make(dir)?;
    let all = usable(dir, "cpuset.effective_cpus")?;
    let shared = dir.join(SHARED);
    make(&shared)?;
    put(&shared, CPUS, cores::list(&all))?;
    Ok(all)
}

/// The cores of a cpuset that this thread may use: whoever started the server may have given it fewer.
fn usable(dir: &Path, file: &str) -> io::Result<BTreeSet<u32>> {
    let path = dir.join(file);
    let text = fs::read_to_string(&path).map_err(|error| about(&path, &error))?;
    let own = rustix::thread::sched_getaffinity(None)?;
    let online = cores::parse(&text).ok_or_else(|| io::Error::other(format!("{text:?}")))?;
    let of_kernel = |core: &u32| usize::try_from(*core).ok();
    Ok(online
        .into_iter()
        .filter(|core| {
            of_kernel(core).is_some_and(|core| core < CpuSet::MAX_CPU && own.is_set(core))
        })
        .collect())
}

/// v1: makes a cpuset with all that the one above has; a new one has nothing, and takes no process.
fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(about(dir, &error));
        }
        _ => {}
    }
    let above = dir.parent().unwrap_or(dir);
    for (file, effective) in [
        (MEMS, "cpuset.effective_mems"),
        (CPUS, "cpuset.effective_cpus"),
    ] {
        let path = above.join(effective);
        let all = fs::read_to_string(&path).map_err(|error| about(&path, &error))?;
        put(dir, file, all.trim())?;
    }
    Ok(())
}

impl Directories {
    /// v1: this thread, and with it what it starts, gets the cores that nobody has for itself.
    pub(crate) fn enter_shared_cores(&self) -> io::Result<()> {
        match (self.version, &self.cpuset) {
            (Version::V1, Some(dir)) => put(&dir.join(SHARED), TASKS, 0),
            _ => Ok(()),
        }
    }

    /// v1: it goes back, so that this can be removed.
    pub(crate) fn leave_shared_cores(&self) -> io::Result<()> {
        match (
            self.version,
            self.cpuset.as_ref().and_then(|dir| dir.parent()),
        ) {
            (Version::V1, Some(above)) => put(above, TASKS, 0),
            _ => Ok(()),
        }
    }

    /// v1: the cores that nobody has for itself.
    pub(crate) fn share_cores(&self, shared: &BTreeSet<u32>) -> io::Result<()> {
        match (self.version, &self.cpuset) {
            (Version::V1, Some(dir)) => put(&dir.join(SHARED), CPUS, cores::list(shared)),
            _ => Ok(()),
        }
    }
}

impl Group {
    /// v2: the cores of a leaf.
    pub fn set_cores(&self, leaf: &Leaf, of_leaf: &BTreeSet<u32>) -> io::Result<()> {
        put(&self.directories.memory, SUBTREE_CONTROL, "+cpuset")?;
        put(&leaf.dir, CPUS, cores::list(of_leaf))
    }

    /// v1: what an instance needs to be moved to cores of its own.
    pub fn own_cores(&self, number: u64, uid: u32, pid: Option<Pid>) -> Option<OwnCores> {
        let sandbox = self.directories.cpuset.clone()?;
        let leaf = self.leaf(number);
        Some(OwnCores {
            instance: sandbox.join(leaf.dir.file_name()?),
            sandbox,
            leaf,
            uid,
            pid,
        })
    }
}

/// v1: an instance and its cpuset.
pub(crate) struct OwnCores {
    sandbox: PathBuf,
    instance: PathBuf,
    leaf: Leaf,
    uid: u32,
    pid: Option<Pid>,
}

impl OwnCores {
    /// Moves the instance, with what it has started, to these cores.
    pub fn take(&self, own: &BTreeSet<u32>) -> io::Result<()> {
        make(&self.sandbox)?;
        make(&self.instance)?;
        put(&self.instance, CPUS, cores::list(own))?;
        for _ in 0..MOVE_ROUNDS {
            let there = listed(&self.instance);
            let mut all = listed(&self.leaf.dir);
            if let Some(pid) = self.pid {
                all.push(pid);
                all.extend(descendants(pid));
            }
            all.retain(|pid| !there.contains(pid) && belongs(*pid, self.uid));
            if all.is_empty() {
                return Ok(());
            }
            for pid in all {
                // It may have ended; one that cannot be moved is found again.
                let _ = fs::write(self.instance.join(PROCS), pid.to_string());
            }
        }
        Err(io::Error::other(format!(
            "the instance's processes cannot be moved to {}",
            self.instance.display()
        )))
    }
}
