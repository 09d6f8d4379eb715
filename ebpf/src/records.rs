//! The records of `bpf/shared.h`. Sizes are asserted here and there.
//!
//! One file: it mirrors one header, record by record.
#![allow(unsafe_code)]

/// Counters of drops by reason, in the order of [`Drop`].
pub const DROPS: usize = 4;
/// Counters of packets by how far they could be read, in the order of [`Outcome`](crate::packet::Outcome).
pub const OUTCOMES: usize = 8;
/// Counters of packets left to the stack by the redirect programs.
pub const LEFTS: usize = 4;

/// Most AF_XDP sockets.
pub const SOCKETS: u32 = 64;

/// Index of a port in the map `ports`.
pub(crate) const PORTS_OF_A_PROTOCOL: u32 = 65_536;
pub(crate) const PORT_REDIRECT: u32 = 1;
pub(crate) const PORT_STEER: u32 = 2;
pub(crate) const FUNCTION_TRACKS_SOURCES: u32 = 1;
pub(crate) const SETTINGS_CHECK_ADDRESS: u32 = 1;
pub(crate) const SETTINGS_STEER_ADDRESS: u32 = 2;
pub(crate) const SETTINGS_STEER_IPV4: u32 = 4;
pub(crate) const SETTINGS_LISTED4: u32 = 8;
pub(crate) const SETTINGS_LISTED6: u32 = 16;
pub(crate) const LISTED_ALLOW: u32 = 1;
pub(crate) const LISTED_DENY: u32 = 2;
/// Sources that share a set.
pub(crate) const WAYS: u32 = 4;
pub(crate) const STAMP_MAGIC: u32 = 0x4865_6172;
pub(crate) const LISTENERS: [u32; 2] = [0, 1];

/// Why a packet for a function was dropped: an index into [`Traffic::drops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The TCP or UDP header contradicts itself.
    Malformed = 0,
    /// The source is on the deny list.
    Denied = 1,
    /// The source exceeds what one source may do.
    SourceLimit = 2,
    /// All sources together exceed what the function takes.
    TotalLimit = 3,
}

/// Who has a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// The function's index; 0 is nobody.
    pub function: u32,
    /// `PORT_…` of `bpf/shared.h`.
    pub flags: u32,
}

/// The limits of a function, in nanoseconds: see [`limits`](crate::limits).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Between two tokens of one source; 0 is no limit.
    pub source_interval: u64,
    /// How far one source may be ahead.
    pub source_slack: u64,
    /// Between two tokens of all sources; 0 is no limit.
    pub total_interval: u64,
    /// How far all sources may be ahead.
    pub total_slack: u64,
    /// `FUNCTION_…` of `bpf/shared.h`.
    pub flags: u32,
    /// Padding.
    pub unused: u32,
}

/// What a function received or sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets, dropped ones included.
    pub packets: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// SYNs and datagrams that were let through.
    pub starts: u64,
    /// Datagrams handed to AF_XDP.
    pub redirected: u64,
    /// Drops, indexed by [`Drop`].
    pub drops: [u64; DROPS],
}

/// What an interface's program saw, in all.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Bytes of the frames.
    pub bytes: u64,
    /// Packets for a function.
    pub ours: u64,
    /// Indexed by [`Outcome`](crate::packet::Outcome).
    pub outcomes: [u64; OUTCOMES],
    /// Datagrams for AF_XDP that found no socket on their queue, or were larger than its frames.
    pub no_socket: u64,
    /// Packets that came while another CPU changed who is in their source's set: not limited by source.
    pub untracked: u64,
}

impl Node {
    /// All packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// TCP and UDP packets for nobody here.
    #[must_use]
    pub fn not_ours(&self) -> u64 {
        let ports = self.outcomes[crate::packet::Outcome::Ports as usize];
        // A packet that comes while this is read may be in one of the two only.
        ports.saturating_sub(self.ours)
    }
}

/// What a source did to a function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The source's prefix, IPv4 as `::ffff:a.b.c.d`.
    pub prefix: [u8; 16],
    /// The function's index; 0 is nobody.
    pub function: u32,
    /// In the first way of a set: somebody changes who is in it.
    pub changing: u32,
    /// When the bucket is full again, in nanoseconds of the kernel's ticks.
    pub next: u64,
    /// SYNs and datagrams within the source's limit.
    pub admitted: u64,
    /// Those beyond it.
    pub refused: u64,
    /// When the last was refused, on the [`clock`](crate::clock); 0 is never.
    pub refused_at: u64,
    /// Padding.
    pub unused: u64,
}

/// The sources that share an entry of the map `sources`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// In no order.
    pub ways: [Source; WAYS as usize],
}

/// An entry of the lists.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// On the [`clock`](crate::clock); 0 is never.
    pub expires: u64,
    /// `LISTED_…` of `bpf/shared.h`.
    pub verdict: u32,
    /// Length of the prefix.
    pub length: u32,
}

/// What holds for all functions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `SETTINGS_…` of `bpf/shared.h`.
    pub flags: u32,
    /// Bytes of the largest frame that goes to AF_XDP.
    pub largest_redirect: u32,
    /// Index of the last set of sources: a power of two less one.
    pub last_set: u32,
    /// Nanoseconds between two ticks of the kernel's clock.
    pub tick: u32,
    /// What of an IPv4 source, as `::ffff:a.b.c.d`, is its prefix.
    pub mask4: [u8; 16],
    /// What of an IPv6 source is its prefix.
    pub mask6: [u8; 16],
    /// Which sources share a set: secret, so that nobody can choose addresses that do.
    pub hash: [u64; 5],
    /// To which address connections are steered, IPv4 as `::ffff:a.b.c.d`.
    pub steer: [u8; 16],
}

/// A receive queue of an interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Index of the interface.
    pub interface: u32,
    /// Its number there.
    pub number: u32,
}

/// In front of a frame in AF_XDP's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When the program saw the packet, on the [`clock`](crate::clock).
    pub time: u64,
    /// The function's index.
    pub function: u32,
    /// Shows that there is a stamp.
    pub magic: u32,
}

/// From which interface to which.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Index of the interface that receives.
    pub from: u32,
    /// Index of the interface that sends.
    pub to: u32,
}

/// What was forwarded past the stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Packets.
    pub packets: u64,
    /// Bytes of the frames.
    pub bytes: u64,
}

/// What the redirect programs left to the stack: shape, hop limit, route, pair not listed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Indexed by the reasons of `enum left`.
    pub packets: [u64; LEFTS],
}

/// Lets aya copy records from and to maps.
macro_rules! plain {
    ($($record:ty = $size:literal),* $(,)?) => {
        $(
            const _: () = assert!(size_of::<$record>() == $size);
            // SAFETY: repr(C), made of integers without padding (the size above is the sum of its fields), so that every
            // bit pattern is a value and all bytes are initialised.
            unsafe impl aya::Pod for $record {}
        )*
    };
}

pub(crate) use plain;

plain! {
    Port = 8,
    Function = 40,
    Traffic = 64,
    Node = 96,
    Source = 64,
    Set = 256,
    Listed = 16,
    Settings = 104,
    Queue = 8,
    Stamp = 16,
    Pair = 8,
    Forwarded = 16,
    Left = 32,
    crate::packet::Packet = 48,
}

/// Sums what each CPU counted.
pub(crate) trait Sum: Sized {
    /// Adds `other`.
    fn add(&mut self, other: &Self);
}

fn add_each(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

impl Sum for Traffic {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.starts += other.starts;
        self.redirected += other.redirected;
        add_each(&mut self.drops, &other.drops);
    }
}

impl Sum for Node {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.ours += other.ours;
        add_each(&mut self.outcomes, &other.outcomes);
        self.no_socket += other.no_socket;
        self.untracked += other.untracked;
    }
}

impl Sum for Forwarded {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Sum for Left {
    fn add(&mut self, other: &Self) {
        add_each(&mut self.packets, &other.packets);
    }
}
