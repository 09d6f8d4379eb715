//! What the host process and the gateway say to each other. Both are few words: a policy passes through the host process
//! unopened, and what changes it the server says to the gateway itself.

use hearth_init::variants_of;

use super::message::Message;
use super::{Key, Reply};
use crate::SandboxError;

/// From the host process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToGateway {
    /// First, and once. Comes with the gateway's settings as a sealed memfd, and with its socket to the server.
    Start,
    /// Connect a sandbox. Comes with its policy, its network namespace, and two netlink sockets in that: of routes, and of
    /// sockets' diagnosis.
    Attach(Key),
    /// Disconnect it.
    Detach(Key),
}

/// From the gateway, about a sandbox that the host process has named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromGateway {
    /// It is connected, by the interface with this number.
    Attached(Key, u32),
    /// It could not be connected. It must be disconnected all the same.
    Failed(Key, SandboxError),
    /// Nothing is left of its network.
    Detached(Key),
}

variants_of!(ToGateway {
    1 => Start,
    2 => Attach(key),
    3 => Detach(key),
});
variants_of!(FromGateway {
    1 => Attached(key, interface),
    2 => Failed(key, error),
    3 => Detached(key),
});

impl Message for ToGateway {
    const BYTES: usize = 16;

    fn descriptors(&self) -> usize {
        match self {
            Self::Start => 2,
            Self::Attach(_) => 4,
            Self::Detach(_) => 0,
        }
    }
}

impl Message for FromGateway {
    const BYTES: usize = Reply::BYTES;
}
