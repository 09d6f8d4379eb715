//! Sandboxes as the server sees them: whatever needs root is requested from the host process (`hearth-host`), over one
//! socket, and what concerns their network from the gateway (`hearth-gateway`), over another.
//!
//! - [`client`], [`gateway`]: the [sockets](link). [`host`]: what can be asked for. [`sandbox`], [`instance_cgroup`]: what
//!   comes of it.
//! - [`network`]: a sandbox's way out. [`reports`]: what the kernel tells of packets and connections.
//! - [`prewarmed`]: what is known of pre-warmed sandboxes. [`usage`]: what is in cgroups.
//!
//! What anybody may read of processes and cgroups is read here, without asking. `server/docs/sandbox.md` explains how each
//! resource is contained, `server/docs/privileges.md` which process may do what.

mod client;
mod gateway;
mod host;
mod instance_cgroup;
mod link;
mod network;
mod prewarmed;
mod reports;
#[allow(clippy::module_inception)]
mod sandbox;
mod throttling;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use hearth_host::{SandboxError, find_init};

pub use self::host::Host;
pub use self::instance_cgroup::InstanceCgroup;
pub use self::prewarmed::{PrewarmedBoard, PrewarmedSpec};
pub use self::sandbox::{Dumpable, MemoryUse, Sandbox};
pub use self::throttling::Throttling;

pub use self::network::{
    BROKER, Connection, Counters, KernelPolicy, NetworkError, NetworkLimits, Outbound, OutboundId,
    Prefix, Prefixed, Protocol, Refusal, RefusalReason, Report, Reports, Resolved,
};

/// What this host supports, for `GET /api/v1/node`.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    /// `userns`, `landlock`, `seccomp`, `cgroup`, `cgroup_fast_attach`, `criu`, `xdp`, `sk_msg` …
    pub name: String,
    /// Whether Hearth can use it.
    pub available: bool,
    /// Why not, or null.
    pub reason: Option<String>,
    /// Its version, where it has one ("v1", "v2", Landlock ABI "7").
    pub version: Option<String>,
}

impl From<hearth_host::Capability> for Capability {
    fn from(of_host: hearth_host::Capability) -> Self {
        Self {
            name: of_host.name,
            available: of_host.available,
            reason: of_host.reason,
            version: of_host.version,
        }
    }
}

/// Where a sandbox has [`SandboxSpec::trust`]: alone, and with the host's certificates.
pub const TRUST: &str = "/etc/ssl/hearth.pem";
/// See [`TRUST`].
pub const TRUST_ALL: &str = "/etc/ssl/hearth-all.pem";

/// The specification of a sandbox.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Unique among live sandboxes, `[a-z0-9-]`: names its cgroup and its directory.
    pub id: String,
    /// Host name inside: the function's name.
    pub hostname: String,
    /// First of the two host uids (init; template and instances).
    pub uid_base: u32,
    /// The unpacked code in the data directory's `code`, bound read-only to `/var/task`. World-readable, since its owner
    /// does not exist inside.
    pub code_dir: PathBuf,
    /// The runtime: its files are bound read-only to a directory of this name below `/opt/hearth`.
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
    /// What it may reach over the network from its first moment on; [`Sandbox::outbound`] changes it. None: a sandbox without
    /// a network, which it cannot get later.
    pub network: Option<KernelPolicy>,
    /// A certificate, PEM, that programs in it find at [`TRUST`], and at [`TRUST_ALL`] with those that the host trusts.
    pub trust: Option<String>,
    /// Which of its processors is the only one that the template and its instances use, by its place among them. None: all.
    pub processor: Option<u32>,
    /// Whether the template will be dumped: then CRIU needs its notes on the kernel in `/run`.
    pub dumpable: bool,
    /// An image to restore the template from, instead of starting `argv`.
    pub restore: Option<RestoreSource>,
}

/// The image to restore a template from.
#[derive(Debug, Clone)]
pub struct RestoreSource {
    /// Name of the image.
    pub image: String,
    /// Longest time it may take, sandbox included.
    pub limit: Duration,
}
