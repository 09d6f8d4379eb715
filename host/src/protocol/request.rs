//! What the server asks for.

use std::net::IpAddr;
use std::time::Duration;

use hearth_init::{fields_of, variants_of};

use super::message::Message;
use super::{ChainNumber, Key, LeafNumber, Protocol, Sequence};

/// The numbers of a sandbox to be made; its [`Papers`](super::Papers) come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// First of its two host uids.
    pub uid_base: u32,
    /// Memory of one instance, bytes.
    pub memory_bytes: u64,
    /// Most instances at one time.
    pub max_instances: u32,
    /// Whether the template forks its instances.
    pub forks: bool,
    /// Whether the template will be dumped.
    pub dumpable: bool,
    /// Longest time that the restore of the image in the papers may take. None without an image.
    pub restore_limit: Option<Duration>,
    /// Whether it has a network.
    pub network: bool,
    /// Which of its processors is the only one that it uses.
    pub processor: Option<u32>,
}

/// One instance, as its sandbox's owner means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its sandbox.
    pub key: Key,
    /// Its cgroup.
    pub leaf: LeafNumber,
    /// Its process, as the server's pid namespace, which is the host's, numbers it; 0 before there is one.
    pub pid: u32,
}

/// What a TCP socket in a sandbox's network namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To listen at this port of [`BROKER`](super::BROKER).
    Listen(u16),
    /// To connect to this address and port.
    Dial(IpAddr, u16),
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Make a sandbox. Comes with its papers, and with the policy of its network if it has one.
    Create(Sequence, Order),
    /// Destroy one, and say so.
    Destroy(Key),
    /// Make an instance cgroup at once.
    InstanceCgroup(Sequence, Key),
    /// Create this many instance cgroups in advance.
    FillPool(Key, u32),
    /// Move an instance into its cgroup.
    Attach(Target),
    /// Kill an instance and what it started.
    Kill(Target),
    /// The same, and remove its cgroup.
    Release(Target),
    /// Stop an instance and what it started; with what its import started, if true.
    Freeze(Target, bool),
    /// Resume what [`Request::Freeze`] has stopped.
    Thaw(Target, bool),
    /// Let an instance have so much of a processor, in µs of each [`CPU_PERIOD_US`](crate::CPU_PERIOD_US), and not all that
    /// its sandbox has.
    LimitCpu(Target, u32),
    /// Let an instance alone have the cores whose bits are set.
    Dedicate(Sequence, Target, u128),
    /// Stop a template and what it started.
    FreezeTemplate(Key),
    /// Resume it.
    ThawTemplate(Key),
    /// Keep a pre-warmed sandbox for the runtime of this name, with this first uid.
    KeepPrewarmed(u32, String),
    /// End that of a runtime.
    EndPrewarmed(String),
    /// Dump a sandbox's template to the image of this name, unless it has more memory mappings than allowed.
    Dump(Sequence, Key, u64, String),
    /// Remove an image.
    RemoveImage(Sequence, String),
    /// Destroy all sandboxes, and say so. Nothing can be made after that.
    Shutdown(Sequence),
    /// Open a port for functions.
    OpenPort(Sequence, Protocol, u16),
    /// Give a thread of the server the raised priority, if true, or the ordinary one.
    Prioritize(u32, bool),
    /// Create a TCP socket in the network namespace of a sandbox that has a network.
    Socket(Sequence, Key, Purpose),
    /// Make a connection for an instance of a chain, in a network namespace that only this chain has.
    Connect(Sequence, ChainNumber),
    /// Make no more for this chain.
    EndChain(ChainNumber),
}

fields_of!(Order {
    uid_base,
    memory_bytes,
    max_instances,
    forks,
    dumpable,
    restore_limit,
    network,
    processor,
});
fields_of!(Target { key, leaf, pid });
variants_of!(Purpose {
    1 => Listen(port),
    2 => Dial(address, port),
});
variants_of!(Request {
    1 => Create(sequence, order),
    2 => Destroy(key),
    3 => InstanceCgroup(sequence, key),
    4 => FillPool(key, count),
    5 => Attach(target),
    6 => Kill(target),
    7 => Release(target),
    8 => Freeze(target, with_template),
    9 => Thaw(target, with_template),
    10 => FreezeTemplate(key),
    11 => ThawTemplate(key),
    12 => KeepPrewarmed(uid_base, runtime),
    13 => EndPrewarmed(runtime),
    14 => Dump(sequence, key, mappings, image),
    15 => RemoveImage(sequence, image),
    16 => Shutdown(sequence),
    17 => Prioritize(thread, raised),
    18 => Socket(sequence, key, purpose),
    19 => OpenPort(sequence, protocol, port),
    20 => Connect(sequence, chain),
    21 => EndChain(chain),
    22 => LimitCpu(target, quota_us),
    23 => Dedicate(sequence, target, cores),
});

impl Message for Request {
    // Room for all numbers that any has, and a name.
    const BYTES: usize = 192;

    fn descriptors(&self) -> usize {
        match self {
            Self::Create(_, order) => 1 + usize::from(order.network),
            _ => 0,
        }
    }
}
