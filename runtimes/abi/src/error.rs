//! Errors: [`Violation`] for the peer's, [`AbiError`] for all.

use std::io;

use crate::frame::Kind;

/// The peer broke the protocol. The channel is unusable afterwards: the receiver or sender that found it answers every
/// later call with the same violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The peer's position is not on a frame boundary.
    #[error("position {position} is not a multiple of {align}")]
    Misaligned {
        /// The position as loaded, in bytes.
        position: u64,
        /// What it must be a multiple of ([`crate::layout::FRAME_ALIGN`]).
        align: u64,
    },
    /// The peer's position went back, or further than the ring allows.
    #[error("position {position} is outside of {from}..={to}")]
    PositionOutOfRange {
        /// The position as loaded, in bytes.
        position: u64,
        /// The last position seen: positions never go back.
        from: u64,
        /// The furthest position that can be true.
        to: u64,
    },
    /// A frame is longer than what the peer has published.
    #[error("a frame of {frame} bytes where {published} are published")]
    BeyondPublished {
        /// Header, payload and padding, in bytes.
        frame: u64,
        /// Bytes between the two positions.
        published: u64,
    },
    /// A frame runs over the ring's end: frames are contiguous.
    #[error("a frame of {frame} bytes where the ring ends after {left}")]
    BeyondEnd {
        /// Header, payload and padding, in bytes.
        frame: u64,
        /// Bytes up to the ring's end.
        left: u64,
    },
    /// A payload is longer than one frame may carry.
    #[error("a payload of {len} bytes where a frame carries at most {max}")]
    PayloadTooLong {
        /// The header's length, in bytes.
        len: u32,
        /// The ring's [`crate::layout::max_payload`].
        max: u32,
    },
    /// A kind that this version does not know.
    #[error("unknown frame kind {0:#06x}")]
    UnknownKind(u16),
    /// Flag bits that this version does not know, or a flag on filler.
    #[error("unknown frame flags {0:#06x}")]
    UnknownFlags(u16),
    /// The header's reserved word is not zero.
    #[error("the header's reserved word is {0:#010x}")]
    ReservedNotZero(u32),
    /// Filler that does not end at the ring's end, or that no frame can have needed.
    #[error("filler of {frame} bytes where the ring ends after {left}")]
    BadPad {
        /// Header and filler, in bytes.
        frame: u64,
        /// Bytes up to the ring's end.
        left: u64,
    },
    /// The checksum does not match the bytes that were copied out.
    #[error("checksum {found:#010x} where the bytes make {computed:#010x}")]
    Checksum {
        /// What the header says.
        found: u32,
        /// What header and payload make.
        computed: u32,
    },
    /// A message was continued by a frame of another kind or invocation.
    #[error(
        "a {expected:?} message was continued by a {found:?} frame of this or another invocation"
    )]
    BrokenMessage {
        /// The kind of the message's first frame.
        expected: Kind,
        /// The kind of the frame that came.
        found: Kind,
    },
    /// An access would have left the ring. The checks before make this unreachable; it is there so that a
    /// mistake in them is an error and not a stray access.
    #[error("an access of {len} bytes at {offset} is outside of the ring")]
    OutsideRing {
        /// Offset into the ring, in bytes.
        offset: u64,
        /// Length of the access, in bytes.
        len: u64,
    },
}

/// An operation on the channel failed.
#[derive(Debug, thiserror::Error)]
pub enum AbiError {
    /// A ring's size is not a power of two within the limits.
    #[error("a ring of {0} bytes: it must be a power of two from 4 KiB to 64 MiB")]
    RingSize(u32),
    /// A system call failed.
    #[error("{call}: {source}")]
    Os {
        /// The call that failed.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The descriptor is not a region: its magic number is another.
    #[error("not a channel: magic {0:#018x}")]
    Magic(u64),
    /// The region was made by another version of the protocol.
    #[error(
        "the channel speaks protocol {found}, this side {}",
        crate::layout::PROTOCOL_VERSION
    )]
    Version {
        /// The version in the region's header.
        found: u32,
    },
    /// The region's header and the file's size disagree.
    #[error("the channel's file has {found} bytes, its header asks for {expected}")]
    FileSize {
        /// Bytes that header page and rings make.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// The file can still be resized, so that an access could fault.
    #[error("the channel's file is not sealed")]
    NotSealed,
    /// A worker has used this region before: positions start at zero, once.
    #[error("the channel has been used before")]
    AlreadyUsed,
    /// A payload does not fit into a frame: stream it.
    #[error("a payload of {len} bytes where a frame carries at most {max}")]
    TooLarge {
        /// The payload's length, in bytes.
        len: usize,
        /// The ring's [`crate::Sender::max_payload`].
        max: usize,
    },
    /// Filler is the ring's own and cannot be sent.
    #[error("frames of kind {0:?} cannot be sent")]
    NotSendable(Kind),
    /// A received message grew past the caller's limit. The message has been read to its end and dropped,
    /// so that the channel can go on.
    #[error("a message longer than {limit} bytes")]
    MessageTooLarge {
        /// The caller's limit, in bytes.
        limit: usize,
    },
    /// The peer closed its end of the bell: it is gone.
    #[error("the peer is gone")]
    PeerGone,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(#[from] Violation),
}

impl AbiError {
    /// Wraps the error of the system call `call`.
    #[cfg(not(loom))]
    pub(crate) fn os(call: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Os {
            call,
            source: source.into(),
        }
    }
}
