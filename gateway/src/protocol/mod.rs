//! What the server and the gateway say to each other, over a `SOCK_SEQPACKET` pair; coded as the
//! [messages](hearth_host::protocol) of the host process are, and decoded as if a hostile server had sent them.
//!
//! - [`policy`]: what a sandbox may reach; has no fixed size, and comes as a sealed memfd.
//! - `told`: connections, over a socket of their own.
//!
//! `server/docs/privileges.md` lists the messages and what each one lets a compromised server do.

pub mod policy;
mod told;

use hearth_host::protocol::{Key, Message, Sequence};
use hearth_host::{Capability, SandboxError};
use hearth_init::variants_of;

pub use policy::{
    Counters, GroupId, KernelPolicy, NetworkLimits, Prefix, Prefixed, Protocol, Resolved,
};
pub use told::{TOLD_AT_ONCE, TOLD_BYTES, ToldConnection};

/// One request, about a sandbox that has a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Give it another policy, which comes along. Cuts what is not allowed any more.
    SetPolicy(Sequence, Key),
    /// Allow an address that a name resolved to.
    Allow(Sequence, Key, Resolved),
    /// What has the kernel counted?
    Counters(Sequence, Key),
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// First, and once: whether sandboxes can have a network. If so, a netlink socket comes along on which the kernel reports
    /// what it refused, and one on which the gateway tells of connections that the kernel does not report, as lists of
    /// [`ToldConnection`].
    Up(Capability),
    /// A request was done.
    Done(Sequence),
    /// It was not granted.
    Refused(Sequence, SandboxError),
    /// What the kernel has counted.
    Counters(Sequence, Counters),
    /// Whether connections go the fast way, and why not: after [`Reply::Up`], and when it changes.
    Fast(Capability),
}

variants_of!(Request {
    1 => SetPolicy(sequence, key),
    2 => Allow(sequence, key, resolved),
    3 => Counters(sequence, key),
});
variants_of!(Reply {
    1 => Up(capability),
    2 => Done(sequence),
    3 => Refused(sequence, error),
    4 => Counters(sequence, counters),
    5 => Fast(capability),
});

impl Message for Request {
    const BYTES: usize = 64;

    fn descriptors(&self) -> usize {
        usize::from(matches!(self, Self::SetPolicy(..)))
    }
}

impl Message for Reply {
    const BYTES: usize = 1024;

    fn descriptors(&self) -> usize {
        match self {
            Self::Up(capability) => 2 * usize::from(capability.available),
            _ => 0,
        }
    }
}
