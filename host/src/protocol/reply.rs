//! What the host process answers and reports.

use hearth_init::variants_of;

use super::message::{self, Malformed, NAME_MAX};
use super::{Counters, Key, LeafNumber, Sequence};
use crate::{Capability, SandboxError};

/// Size of every reply.
pub const REPLY_BYTES: usize = 1024;
/// Longest text of one, in bytes; longer ones are cut. It leaves room for a name and for the numbers.
pub const REPLY_TEXT_MAX: usize = 800;

/// One reply, or news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a server that was just started, and to nothing else: who it is to be. Comes with the data directory's lock, the
    /// listener, that of the functions if it is separate, and a socket with what the ingress has for the server.
    Start {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// Whether functions have a listener of their own.
        separate: bool,
        /// Whether there is an ingress.
        ingress: bool,
    },
    /// What the host can do: one of several, before [`Reply::Up`].
    Capability(Capability),
    /// Sandboxes can have a network. Comes with a netlink socket on which the kernel reports what it refused; before
    /// [`Reply::Up`].
    Refusals,
    /// Requests are taken from here on.
    Up {
        /// Whether the cgroups are of version 2.
        v2: bool,
        /// Directory of all sandboxes' cgroups in the memory hierarchy.
        cgroups: String,
        /// Which `hearth-init` it is: another one has another text.
        init: String,
    },
    /// A sandbox runs. Comes with the template's control socket, standard output and error, and, if it has a network, with
    /// the UDP socket and the TCP listener at which it asks for names.
    Created {
        /// The request that it answers.
        sequence: Sequence,
        /// The sandbox.
        key: Key,
        /// Name of its cgroup.
        name: String,
        /// Host uid of template and instances: of a pre-warmed sandbox, another one than was asked for.
        uid: u32,
        /// Whether it was pre-warmed.
        was_prewarmed: bool,
        /// Number of its network interface in the gateway, by which the kernel names it in reports; 0 without a network.
        interface: u32,
    },
    /// A request was not granted.
    Refused(Sequence, SandboxError),
    /// A request was done.
    Done(Sequence),
    /// An instance cgroup was asked for, and is there.
    InstanceCgroup(Sequence, Key, LeafNumber),
    /// One was made for later.
    Prepared(Key, LeafNumber),
    /// An instance could not be moved into its cgroup.
    AttachFailed(Key, LeafNumber, String),
    /// A sandbox's processes are gone.
    Ended {
        /// The sandbox.
        key: Key,
        /// Whether the template's leaf met its memory limit.
        out_of_memory: bool,
        /// Status and signal of the template, as far as PID 1 has reported them.
        code: Option<i32>,
        /// See above.
        signal: Option<i32>,
        /// The signal that killed PID 1, if one did.
        init_signal: Option<i32>,
    },
    /// What the kernel has counted for a sandbox.
    Counters(Sequence, Counters),
    /// A listener, a TCP connection that is being made, or a socket for datagrams. Comes with it.
    Socket(Sequence),
    /// A sandbox was removed.
    Destroyed(Key),
    /// Whether there is a pre-warmed sandbox for the runtime of this name, and whether it is ready.
    Prewarmed {
        /// The runtime.
        runtime: String,
        /// Whether there is one.
        kept: bool,
        /// Whether it is ready.
        ready: bool,
    },
}

variants_of!(Reply {
    1 => Capability(capability),
    2 => Up { v2, cgroups, init },
    3 => Created { sequence, key, name, uid, was_prewarmed, interface },
    4 => Refused(sequence, error),
    5 => Done(sequence),
    6 => InstanceCgroup(sequence, key, leaf),
    7 => Prepared(key, leaf),
    8 => AttachFailed(key, leaf, detail),
    9 => Ended { key, out_of_memory, code, signal, init_signal },
    10 => Destroyed(key),
    11 => Prewarmed { runtime, kept, ready },
    12 => Start { uid, gid, separate, ingress },
    13 => Refusals,
    14 => Counters(sequence, counters),
    15 => Socket(sequence),
});

impl Reply {
    /// As bytes. Texts are cut where they do not fit: nothing that matters is that long.
    #[must_use]
    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        let mut reply = self.clone();
        match &mut reply {
            Self::Refused(_, SandboxError::Step { step, detail }) => {
                step.truncate(step.floor_char_boundary(NAME_MAX));
                cut(detail);
            }
            Self::Capability(capability) => capability.reason.iter_mut().for_each(cut),
            Self::AttachFailed(_, _, text) | Self::Up { cgroups: text, .. } => cut(text),
            _ => {}
        }
        message::encode(&reply)
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        message::decode::<REPLY_BYTES, _>(bytes)
    }

    /// How many descriptors come with it.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        match self {
            Self::Created { interface: 0, .. } => 3,
            Self::Created { .. } => 5,
            Self::Refusals | Self::Socket(_) => 1,
            Self::Start {
                separate, ingress, ..
            } => 2 + usize::from(*separate) + usize::from(*ingress),
            _ => 0,
        }
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(REPLY_TEXT_MAX));
}
