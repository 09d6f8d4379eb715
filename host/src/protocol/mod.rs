//! What the server and the host process say to each other, over a `SOCK_SEQPACKET` pair; and the gateway and the host process.
//!
//! - [`request`]: from the server. Every message is decoded as if a hostile server had sent it; one that does not decode ends the conversation, and with it everything.
//! - [`papers`]: what has no fixed size comes along as a sealed memfd: of which function a sandbox is.
//! - [`reply`]: from the host process, replies to a request and news that were not asked for.
//! - [`gateway`]: to the gateway, and from it, which is not trusted either.
//! - [`message`]: the layout of all.
//!
//! `server/docs/privileges.md` lists the messages and what each one lets a compromised server do.

pub mod gateway;
mod message;
pub mod papers;
pub mod reply;
pub mod request;
mod transport;

pub use gateway::{FromGateway, ToGateway};
pub(crate) use message::cut;
pub use message::{Malformed, Message, NAME_MAX};
pub use papers::{Papers, PapersError};
pub use reply::Reply;
pub(crate) use reply::TEXT_MAX;
pub use request::{Purpose, Request};
pub use transport::Protocol;

/// Where a sandbox finds the server's broker of secrets, in its own network namespace.
pub const BROKER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(127, 0, 0, 2);

/// A sandbox, by the host's count; never used twice.
pub type Key = u64;
/// An instance's cgroup in its sandbox, by the sandbox's count; never used twice.
pub type LeafNumber = u64;
/// A chain's version in service; the server's choice, and never used twice.
pub type ChainNumber = u32;
/// Ties a reply to its request; the server's choice.
pub type Sequence = u64;
