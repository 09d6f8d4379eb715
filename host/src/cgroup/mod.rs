//! Cgroups of sandboxes: `hearth-<tag>/<sandbox>/{template,instance-<n> …}`, on v1 and on v2.
//!
//! On v2 all controllers share one hierarchy. On v1 each has its own: the memory hierarchy has the whole tree, pids and
//! CPU only the sandbox, since every further hierarchy costs one more move per start.
//!
//! The kernel lets anybody read them, so the server looks for itself: see [`Leaf::template_of`].

mod cpuset;
mod leaf;
mod processes;
pub(crate) mod real_time;
mod tree;
mod v1;
mod v2;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hearth_init::{fields_of, variants_of};

pub(crate) use self::cpuset::prepare as prepare_cpuset;
pub use self::leaf::{Leaf, keyed};
pub use self::processes::{belongs, descendants, listed};
pub(crate) use self::processes::{kill_listed, owner, signal_process};
use self::tree::about;
pub(crate) use self::tree::{put, remove_tree};
use crate::limits::Limits;

pub(crate) const PROCS: &str = "cgroup.procs";
const TEMPLATE: &str = "template";
/// The smallest quota of a period that the kernel takes, µs (`min_cfs_quota_period` in kernel/sched/core.c).
const LEAST_CPU_US: u64 = 1_000;

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
pub(crate) struct Directories {
    pub(crate) version: Version,
    /// In the memory hierarchy (v2: the only one).
    pub(crate) memory: PathBuf,
    /// v1: in those of pids and CPU, which may be one and the same or that of memory.
    pub(crate) pids: PathBuf,
    pub(crate) cpu: PathBuf,
    /// In that of cpusets, where it can be used; v1: made for instances with dedicated cores only.
    pub(crate) cpuset: Option<PathBuf>,
}

variants_of!(Version { 1 => V1, 2 => V2, });
fields_of!(Directories {
    version,
    memory,
    pids,
    cpu,
    cpuset,
});

impl Directories {
    pub(crate) fn join(&self, name: &str) -> Self {
        Self {
            version: self.version,
            memory: self.memory.join(name),
            pids: self.pids.join(name),
            cpu: self.cpu.join(name),
            cpuset: self.cpuset.as_ref().map(|dir| dir.join(name)),
        }
    }

    /// Each directory once that a sandbox has from the beginning.
    pub(crate) fn distinct(&self) -> Vec<&Path> {
        let mut all = vec![
            self.memory.as_path(),
            self.pids.as_path(),
            self.cpu.as_path(),
        ];
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same, and that of cpusets.
    pub(crate) fn all(&self) -> Vec<&Path> {
        let mut all = self.distinct();
        all.extend(self.cpuset.as_deref());
        all.dedup();
        all
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        for dir in self.distinct() {
            fs::create_dir(dir).map_err(|error| about(dir, &error))?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        for dir in self.all() {
            remove_tree(dir)?;
        }
        Ok(())
    }
}

impl Directories {
    /// Creates the cgroups of a sandbox, including its template's leaf. A pre-warmed sandbox gets its limits later.
    pub(crate) fn sandbox(&self, name: &str, limits: Option<&Limits>) -> io::Result<Group> {
        let directories = self.join(name);
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

    /// Lets an instance have so many µs of each [`CPU_PERIOD_US`], of what the sandbox has: 1 ms at least, which is the least that
    /// the kernel takes. It can be said again.
    pub fn limit_cpu(&self, number: u64, quota_us: u64) -> io::Result<()> {
        let limits = self.limits.as_ref();
        let limits =
            limits.ok_or_else(|| io::Error::other("a pre-warmed sandbox has no instances"))?;
        // v1 refuses more than the sandbox has.
        let quota_us = quota_us.min(limits.cpu_quota_us).max(LEAST_CPU_US);
        let leaf = self.leaf(number);
        match leaf.version {
            Version::V1 => v1::limit_cpu(&leaf.dir, &self.cpu_of(&leaf), quota_us),
            Version::V2 => v2::limit_cpu(&self.directories.memory, &leaf.dir, quota_us),
        }
    }

    /// The directory of a leaf in the hierarchy of the CPU, where only instances with limits of their own have one.
    fn cpu_of(&self, leaf: &Leaf) -> PathBuf {
        let name = leaf.dir.file_name().unwrap_or_default();
        self.directories.cpu.join(name)
    }

    /// Removes that of an instance whose leaf is removed, and its cpuset; true when they are gone.
    pub fn remove_cpu(&self, number: u64) -> bool {
        let leaf = self.leaf(number);
        let cpuset = self.directories.cpuset.as_ref();
        let cpuset = cpuset.zip(leaf.dir.file_name());
        let cpuset = cpuset.map(|(sandbox, name)| sandbox.join(name));
        let mut dirs = [Some(self.cpu_of(&leaf)), cpuset].into_iter().flatten();
        dirs.all(|dir| match fs::remove_dir(dir) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        })
    }

    /// Removes the sandbox's cgroups. Fails with `EBUSY` while processes are in them.
    pub fn remove(&self) -> io::Result<()> {
        self.directories.remove()
    }
}
