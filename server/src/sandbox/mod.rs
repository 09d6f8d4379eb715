//! Sandboxes: created once per function version by a dedicated thread, which takes typed messages and passes
//! descriptors.
//!
//! ```text
//! Host::create ─▶ Starting ──Ready──▶ Running ──template ends──▶ Ended
//!                    │ a step fails       │ destroy, drop           │ destroy, drop
//!                    ▼                    ▼                         ▼
//!                 (removed) ◀───────── Destroying ◀─────────────────┘
//! ```
//!
//! - [`limits`]: resource limits of a sandbox. [`cgroup`]: enforces them, on v1 and v2.
//! - [`probe`]: what the host can do. [`launch`]: starts `hearth-init`, which builds the sandbox and is its PID 1.
//! - [`host`]: the interface; [`handle`]: a live sandbox for its owner. [`mailbox`]: the messages to the thread.
//! - [`thread`]: owns the sandboxes' state; [`lifecycle`] and [`ending`]: its transitions; [`jobs`]: what it does later.
//!   [`site`]: cgroups and directory of a sandbox. [`attach`]: moves instances into their cgroups.
//! - [`prewarmed`]: pre-warmed sandboxes for restores.
//!
//! `server/docs/sandbox.md` explains how each resource is contained.

mod attach;
mod cgroup;
mod ending;
mod handle;
mod host;
mod instance_cgroup;
mod jobs;
mod launch;
mod lifecycle;
mod limits;
mod live;
mod mailbox;
mod prewarmed;
mod probe;
mod site;
mod thread;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use hearth_init::criu::Outside;
use serde::Serialize;

pub use self::handle::{MemoryUse, Sandbox};
pub use self::host::Host;
pub use self::instance_cgroup::InstanceCgroup;
pub use self::prewarmed::{PrewarmedBoard, PrewarmedSpec};
pub use self::probe::find_init;
use crate::model::Network;

/// Instance cgroups kept ready in each sandbox, so that a start need not wait for one. Each costs the kernel some ten
/// KiB.
const INSTANCE_CGROUP_POOL: usize = 4;
/// The step of `hearth-init` in which CRIU is at work.
const RESTORE_STEP: &str = "restore";

/// Why there is no sandbox.
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
    /// It has ended.
    #[error("the sandbox is gone")]
    Gone,
}

impl SandboxError {
    fn step(step: &str, detail: impl ToString) -> Self {
        Self::Step {
            step: step.to_owned(),
            detail: detail.to_string(),
        }
    }

    /// Whether it was restoring that failed, or took too long.
    pub fn is_of_restore(&self) -> bool {
        matches!(self, Self::Step { step, .. } if step == RESTORE_STEP)
    }

    /// The thread that makes sandboxes has ended.
    fn shut_down() -> Self {
        Self::step("thread", "the sandboxes are shut down")
    }
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
    /// The unpacked code, bound read-only to `/var/task`. World-readable, since its owner does not exist inside.
    pub code_dir: PathBuf,
    /// The runtime's files, bound read-only to `/opt/hearth/python` (or `…/node`); readable by everybody.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: &'static str,
    /// Program and arguments of the template, as seen inside.
    pub argv: Vec<String>,
    /// Whether the template forks its instances. Else they boot by themselves, and what they took until they were ready
    /// stays on the template's account.
    pub forks: bool,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Memory of one instance, bytes.
    pub memory_bytes: u64,
    /// Most instances at one time.
    pub max_instances: u32,
    /// Network access.
    pub network: Network,
    /// Whether the template is to be dumped: CRIU needs its notes on the kernel in `/run` then.
    pub dumpable: bool,
    /// An image to restore the template from, instead of starting `argv`.
    pub restore: Option<RestoreSource>,
}

/// What a template is restored from.
#[derive(Debug, Clone)]
pub struct RestoreSource {
    /// Directory of CRIU's image files.
    pub images: PathBuf,
    /// Longest time it may take, sandbox included.
    pub limit: Duration,
}

/// What CRIU needs to know of a sandbox to dump its template.
#[derive(Debug)]
pub struct Dumpable {
    /// PID 1.
    pub init: OwnedFd,
    /// The template's descriptors that lead outside.
    pub outside: Outside,
    /// Inode of the server's end of the control socket.
    pub control_peer: u64,
}
