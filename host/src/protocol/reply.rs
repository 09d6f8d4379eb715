//! What the host process answers and reports.

use hearth_init::variants_of;

use super::message::{Message, cut, padded};
use super::{Key, LeafNumber, Sequence};
use crate::{Capability, SandboxError};

/// Longest text of one, in bytes. It leaves room for a name and for the numbers.
pub(crate) const TEXT_MAX: usize = 800;

/// One reply, or news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a server that was just started, and to nothing else: who it is to be. Comes with the data directory's lock, the
    /// socket to the gateway, the listener, that of the functions if it is separate, a socket with what the ingress has for the
    /// server, and sealed memory with the MQTT brokers.
    Start {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// Whether functions have a listener of their own.
        separate: bool,
        /// Whether there is an ingress.
        ingress: bool,
        /// Whether there are MQTT brokers.
        brokers: bool,
    },
    /// What the host can do: one of several, before [`Reply::Up`].
    Capability(Capability),
    /// Requests are taken from here on.
    Up {
        /// Whether the cgroups are of version 2.
        v2: bool,
        /// Directory of all sandboxes' cgroups in the memory hierarchy.
        cgroups: String,
        /// The same in that of the processor, which is the same directory on version 2.
        cpu_cgroups: String,
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
    /// A listener, a TCP connection that is being made, or a socket for datagrams. Comes with it.
    Socket(Sequence),
    /// A connection was made. Comes with the instance's end and the gateway's.
    Connection(Sequence),
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
    2 => Up { v2, cgroups, cpu_cgroups, init },
    3 => Created { sequence, key, name, uid, was_prewarmed, interface },
    4 => Refused(sequence, error),
    5 => Done(sequence),
    6 => InstanceCgroup(sequence, key, leaf),
    7 => Prepared(key, leaf),
    8 => AttachFailed(key, leaf, detail),
    9 => Ended { key, out_of_memory, code, signal, init_signal },
    10 => Destroyed(key),
    11 => Prewarmed { runtime, kept, ready },
    12 => Start { uid, gid, separate, ingress, brokers },
    13 => Socket(sequence),
    14 => Connection(sequence),
});

impl Message for Reply {
    const BYTES: usize = 1024;

    fn descriptors(&self) -> usize {
        match self {
            Self::Created { interface: 0, .. } => 3,
            Self::Created { .. } => 5,
            Self::Socket(_) => 1,
            Self::Connection(_) => 2,
            Self::Start {
                separate,
                ingress,
                brokers,
                ..
            } => 3 + usize::from(*separate) + usize::from(*ingress) + usize::from(*brokers),
            _ => 0,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut reply = self.clone();
        match &mut reply {
            Self::AttachFailed(_, _, text) => cut(text, TEXT_MAX),
            Self::Up {
                cgroups,
                cpu_cgroups,
                ..
            } => {
                cut(cgroups, TEXT_MAX);
                cut(cpu_cgroups, TEXT_MAX);
            }
            _ => {}
        }
        padded(&reply)
    }
}
