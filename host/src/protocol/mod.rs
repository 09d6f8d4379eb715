//! What the server and the host process say to each other, over a `SOCK_SEQPACKET` pair.
//!
//! - [`request`]: from the server. Every message has [`REQUEST_BYTES`] bytes and is decoded as if a hostile server had
//!   sent it; one that does not decode ends the conversation, and with it everything.
//! - [`papers`]: what has no fixed size comes along as a sealed memfd: of which function a sandbox is.
//! - [`policy`]: what a sandbox may reach over the network; comes as papers do.
//! - [`reply`]: from the host process, [`REPLY_BYTES`] each; replies to a request and news that were not asked for.
//! - [`message`]: the layout of both.
//!
//! `server/docs/privileges.md` lists the messages and what each one lets a compromised server do.

mod message;
pub mod papers;
pub mod policy;
pub mod reply;
pub mod request;

pub use message::{Malformed, NAME_MAX};
pub use papers::{Papers, PapersError};
pub use policy::{Counters, KernelPolicy, NetworkLimits, Prefix, Prefixed, Protocol, Resolved};
pub use reply::{REPLY_BYTES, Reply};
pub use request::{Purpose, REQUEST_BYTES, Request};

/// Where a sandbox finds the server's broker of secrets, in its own network namespace.
pub const BROKER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(127, 0, 0, 2);

/// A sandbox, by the host's count; never used twice.
pub type Key = u64;
/// An instance's cgroup in its sandbox, by the sandbox's count; never used twice.
pub type LeafNumber = u64;
/// Ties a reply to its request; the server's choice.
pub type Sequence = u64;
