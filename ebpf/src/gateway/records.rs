//! The records of `bpf/gateway.h`. Sizes are asserted here and there.
//!
//! One file: it mirrors one header, record by record.
#![allow(unsafe_code)]

use std::net::IpAddr;

use crate::records::Sum;

/// Sandboxes, each with a slot.
pub const SLOTS: u32 = 4096;
pub(crate) const NETWORK_OPEN: u32 = 1;
/// The lowest port that a connection has on the host.
pub const LOWEST_PORT: u16 = 16_384;
pub(crate) const SANDBOX_KNOWN: u32 = 1;
pub(crate) const SANDBOX_ACTIVE: u32 = 2;
pub(crate) const SANDBOX_INTERNET: u32 = 4;
pub(crate) const SANDBOX_NAMES: u32 = 8;
pub(crate) const SANDBOX_PREFIXES: u32 = 16;
pub(crate) const ANY_SLOT: u16 = u16::MAX;
pub(crate) const RANGES: usize = 8;
pub(crate) const CLASS_PERMITTED: u16 = 1;
pub(crate) const CLASS_FORBIDDEN: u16 = 2;
pub(crate) const FLOW_ESTABLISHED: u32 = 1;
pub(crate) const FLOW_FIN_OUT: u32 = 2;
pub(crate) const FLOW_FIN_IN: u32 = 4;
pub(crate) const FLOW_CLOSED: u32 = 8;
pub(crate) const FLOW_WAITS: u32 = 16;
pub(crate) const FLOW_DOUBTED: u32 = 64;

/// An address as the records have it: that of IPv4 as `::ffff:a.b.c.d`.
pub(crate) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// What holds for all sandboxes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) flags: u32,
    pub(crate) epoch: u32,
    pub(crate) interface: u32,
    pub(crate) host: u32,
    pub(crate) first: [u8; 16],
    pub(crate) stack: [u16; 2],
    pub(crate) unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(crate) flags: u32,
    pub(crate) group: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) new_interval: u64,
    pub(crate) new_slack: u64,
    pub(crate) bytes_per_second: u64,
    pub(crate) bytes_slack: u64,
    pub(crate) connections: u32,
    pub(crate) unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) next_new: u64,
    pub(crate) next_bytes: [u64; 2],
    pub(crate) open: i32,
    pub(crate) unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Prefix {
    pub(crate) length: u32,
    pub(crate) family: [u8; 2],
    pub(crate) slot: [u8; 2],
    pub(crate) address: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) count: u16,
    pub(crate) class: u16,
    pub(crate) ports: [[u16; 2]; RANGES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Resolved {
    pub(crate) address: [u8; 16],
    pub(crate) slot: u16,
    pub(crate) port: [u8; 2],
}

/// What was seen of the way to a destination.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: [u8; 16],
    pub(crate) until: u64,
    pub(crate) class: u32,
    pub(crate) next: u32,
}

/// A sandbox's end of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) address: [u8; 16],
    pub(crate) sport: [u8; 2],
    pub(crate) dport: [u8; 2],
    pub(crate) slot: u16,
    pub(crate) protocol: u8,
    pub(crate) unused: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) source: [u8; 16],
    pub(crate) port: [u8; 2],
    pub(crate) unused: u16,
    pub(crate) state: u32,
    pub(crate) group: u32,
    pub(crate) opened: u32,
    pub(crate) seen: u32,
    pub(crate) closed: u32,
    pub(crate) acknowledged: u32,
    pub(crate) unused2: u32,
}

/// The world's end of a fast connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BackKey {
    pub(crate) address: [u8; 16],
    pub(crate) sport: [u8; 2],
    pub(crate) dport: [u8; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Back {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) source: [u8; 16],
    pub(crate) port: [u8; 2],
    pub(crate) slot: u16,
    pub(crate) group: u32,
    pub(crate) seen: u32,
    pub(crate) unused: u32,
}

/// What went the fast way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// To the world, and to the sandbox.
    pub packets: [u64; 2],
    /// Bytes of these, IP headers included.
    pub bytes: [u64; 2],
    /// Connections that were begun.
    pub connections: u64,
}

/// What became of packets that begin a TCP connection, and which packets were dropped on the fast way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The connection was begun on the fast way.
    pub fast: u64,
    /// Left to the rules: not plainly allowed.
    pub policy: u64,
    /// Left to the rules: the way to the destination is not known, or was not asked for lately.
    pub route: u64,
    /// Left to the rules: a limit of the group is used up.
    pub limit: u64,
    /// Left to the rules: no port is free on the host.
    pub ports: u64,
    /// Left to the rules: the maps are full.
    pub full: u64,
    /// Dropped: the route of a connection is gone.
    pub lost: u64,
    /// Dropped: over the group's limit of bytes.
    pub rate: u64,
    /// Begun by the rules, and noted.
    pub rules: u64,
}

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

plain! {
    Network = 40,
    Sandbox = 8,
    Group = 40,
    Usage = 32,
    Prefix = 24,
    Allowed = 36,
    Resolved = 20,
    Route = 32,
    FlowKey = 24,
    Flow = 64,
    BackKey = 20,
    Back = 48,
    Sums = 40,
    Ways = 72,
}

impl Sum for Sums {
    fn add(&mut self, other: &Self) {
        for direction in 0..2 {
            self.packets[direction] += other.packets[direction];
            self.bytes[direction] += other.bytes[direction];
        }
        self.connections += other.connections;
    }
}

impl Sum for Ways {
    fn add(&mut self, other: &Self) {
        self.fast += other.fast;
        self.policy += other.policy;
        self.route += other.route;
        self.limit += other.limit;
        self.ports += other.ports;
        self.full += other.full;
        self.lost += other.lost;
        self.rate += other.rate;
        self.rules += other.rules;
    }
}
