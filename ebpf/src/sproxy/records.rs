//! The records of `bpf/sproxy.h`. Sizes are asserted here and there.
#![allow(unsafe_code)]

use crate::records::plain;

/// Reasons for which a message is refused, in the order of [`Refusal`].
pub const REFUSALS: usize = 6;
/// The kind of a descriptor that is none: of what the gateway is told of a refused one.
pub const KIND_NEWS: u8 = 7;

/// Why a message was refused: an index into [`Seat::refused`], and the `hop` of what the gateway gets in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one descriptor. Nothing of it arrives anywhere, and the sender's socket is dead.
    Size = 0,
    /// Members send no such kind.
    Kind = 1,
    /// The chain has no such instance.
    Target = 2,
    /// The two members have no edge for this kind.
    Edge = 3,
    /// The sender does not have the block in hand.
    Block = 4,
    /// The target's socket is gone.
    Gone = 5,
}

/// Who sends through a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaker {
    /// The chain.
    pub chain: u32,
    /// The instance whose pair the socket is an end of.
    pub instance: u16,
    /// The member that it is an instance of.
    pub member: u8,
    /// Whether it is the gateway's end.
    pub far: u8,
}

/// One end of an instance's pair of sockets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The chain.
    pub chain: u32,
    /// The instance.
    pub instance: u16,
    /// 1 is the gateway's end.
    pub far: u16,
}

/// An instance of a chain.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatKey {
    /// The chain.
    pub chain: u32,
    /// The instance.
    pub instance: u32,
}

/// What an instance did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// The member that it is an instance of.
    pub member: u32,
    /// Padding.
    pub unused: u32,
    /// Requests and calls that were sent to it.
    pub received: u64,
    /// Those of them that it passed on.
    pub handled: u64,
    /// From the one to the other in ns, of all that it passed on: waiting in its queue included.
    pub busy: u64,
    /// Descriptors that it sent.
    pub sent: u64,
    /// What was refused of it, by [`Refusal`].
    pub refused: [u64; REFUSALS],
}

/// Two members of a chain.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeKey {
    /// The chain.
    pub chain: u32,
    /// Who sends.
    pub from: u16,
    /// Who receives.
    pub to: u16,
}

/// What a member may send to another, and what it did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// A bit for each kind of descriptor.
    pub kinds: u32,
    /// Padding.
    pub unused: u32,
    /// Descriptors sent.
    pub sent: u64,
    /// Descriptors refused, of those that had a target.
    pub refused: u64,
}

/// A block of a chain's pool.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockKey {
    /// The chain.
    pub chain: u32,
    /// Its number.
    pub number: u32,
}

/// Who has a block in hand.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The instance; 0 is the gateway.
    pub holder: u32,
    /// Whether it came there as a request or a call.
    pub work: u16,
    /// Its generation, as the gateway sent it first.
    pub generation: u16,
    /// `CLOCK_MONOTONIC` in ns.
    pub since: u64,
}

plain! {
    Speaker = 8,
    End = 8,
    SeatKey = 8,
    Seat = 88,
    EdgeKey = 8,
    Edge = 24,
    BlockKey = 8,
    Block = 16,
}
