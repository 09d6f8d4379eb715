//! Sandboxes: made once per function version by a thread of its own, reached by typed messages and passed descriptors.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::model::Network;

/// Why a sandbox could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The host lacks something the sandbox needs: which, and how to get it, in one line.
    #[error("{what} is not available: {reason}; {remedy}")]
    Missing {
        /// "user namespaces", "Landlock", "the memory cgroup" …
        what: &'static str,
        /// What was tried and what the kernel said.
        reason: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// A step of the set-up failed.
    #[error("sandbox set-up failed at {step}: {detail}")]
    Step {
        /// The step.
        step: String,
        /// What went wrong.
        detail: String,
    },
}

/// What this host can do, for `GET /api/v1/node`.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    /// `userns`, `landlock`, `seccomp`, `cgroup`, `cgroup_fast_attach`, `criu`, `xdp`, `sk_msg` …
    pub name: &'static str,
    /// Whether Hearth can use it.
    pub available: bool,
    /// Why not, or null.
    pub reason: Option<String>,
    /// Its version, where it has one ("v1", "v2", Landlock ABI "7").
    pub version: Option<String>,
}

/// What a sandbox is made from.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Unique among live sandboxes, `[a-z0-9-]`: names its cgroup and its directory.
    pub id: String,
    /// Host name inside: the function's name.
    pub hostname: String,
    /// First of the two host uids (init; template and instances).
    pub uid_base: u32,
    /// The unpacked code, bound read-only to `/var/task`.
    pub code_dir: PathBuf,
    /// The runtime's files, bound read-only to `/opt/hearth/python` (or `…/node`): host directory and name.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: &'static str,
    /// Program and arguments of the template, as seen inside.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Memory of one instance, bytes.
    pub memory_bytes: u64,
    /// Most instances at one time.
    pub max_instances: u32,
    /// Network access.
    pub network: Network,
}

/// The narrow interface to everything that needs root: a thread with a mailbox. Cheap to clone.
#[derive(Clone)]
pub struct Host;

#[allow(unused_variables, clippy::unimplemented)]
impl Host {
    /// Probes the host and starts the sandbox thread. `dir` is a private directory for roots (`DATA_DIR/run`), `init`
    /// the path of the `hearth-init` binary. Clears what an earlier server left there and in the cgroups.
    pub fn start(dir: &Path, init: &Path) -> Result<Self, SandboxError> {
        unimplemented!()
    }
    /// Destroys all sandboxes and waits until nothing is left of them.
    pub async fn shut_down(&self) {
        unimplemented!()
    }
    /// What was probed.
    pub fn capabilities(&self) -> &[Capability] {
        unimplemented!()
    }
    /// Makes a sandbox and starts the template in it.
    pub async fn create(&self, spec: SandboxSpec) -> Result<Sandbox, SandboxError> {
        unimplemented!()
    }
}

/// A live sandbox. Dropping it destroys it (asynchronously); [`Sandbox::destroy`] waits.
pub struct Sandbox {
    /// Server's end of the template's control socket (SEQPACKET, non-blocking).
    pub control: Option<OwnedFd>,
    /// Read end of the template's stdout (non-blocking).
    pub stdout: Option<OwnedFd>,
    /// Read end of the template's stderr (non-blocking).
    pub stderr: Option<OwnedFd>,
}

#[allow(unused_variables, clippy::unimplemented)]
impl Sandbox {
    /// A cgroup leaf for one instance to come; kept prepared ahead, so usually at once.
    pub async fn cell(&self) -> Result<Cell, SandboxError> {
        unimplemented!()
    }
    /// Waits until PID 1 is gone (the template ended or was killed) and says how: "the template was killed by signal
    /// 9", "the template exited with status 1", "…ran out of memory". Cancel-safe.
    pub async fn exited(&self) -> String {
        unimplemented!()
    }
    /// Whether the template's own leaf met its memory limit.
    pub fn template_oom_killed(&self) -> bool {
        unimplemented!()
    }
    /// Kills everything in it, waits for it to be gone and removes its cgroups and directories.
    pub async fn destroy(self) {
        unimplemented!()
    }
}

/// The cgroup leaf of one instance. Dropping it kills what is in it and removes it (asynchronously).
pub struct Cell;

#[allow(unused_variables, clippy::unimplemented)]
impl Cell {
    /// Moves the instance (host pid) into the leaf; done on the sandbox thread, not waited for.
    pub fn attach(&self, pid: u32) {
        unimplemented!()
    }
    /// Kills every process of the instance, strays included; not waited for.
    pub fn kill(&self) {
        unimplemented!()
    }
    /// Whether a process in it was killed by the memory limit.
    pub fn oom_killed(&self) -> bool {
        unimplemented!()
    }
}

/// Finds the `hearth-init` program beside the executable.
///
/// # Errors
/// [`SandboxError::Missing`] says where it was looked for.
#[allow(clippy::unimplemented)]
pub fn find_init() -> Result<PathBuf, SandboxError> {
    unimplemented!()
}
