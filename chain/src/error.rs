//! Errors: [`Refused`] for a descriptor, [`Violation`] for a ring, [`ChainError`] for what sets them up.

use std::io;

use crate::id::{Instance, Owner};

/// A descriptor that was not followed. Its sender's request fails; nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The kind is none of this version.
    #[error("unknown kind {0}")]
    UnknownKind(u8),
    /// It is addressed to somebody else.
    #[error("addressed to {0}")]
    Misdelivered(Instance),
    /// There is no edge from its sender.
    #[error("no edge from {0}")]
    NoEdge(Instance),
    /// The pool has no such block.
    #[error("block {block} of a pool of {blocks}")]
    OutsidePool {
        /// The block's number.
        block: u32,
        /// The pool's blocks.
        blocks: u32,
    },
    /// It says that the message goes on in another block. A payload's blocks lie side by side, and go by one descriptor.
    #[error("a message that goes on elsewhere")]
    Continued,
    /// The payload is longer than the block that it is in, or the run of blocks.
    #[error("{len} bytes in a block, or a run of blocks, of {room}")]
    TooLong {
        /// The payload's length, in bytes.
        len: u32,
        /// Bytes that there are.
        room: u32,
    },
    /// The block is free, or belongs to a later use than the descriptor's.
    #[error("block {block} is not of generation {generation}, or is free")]
    Stale {
        /// The block's number.
        block: u32,
        /// The descriptor's generation.
        generation: u16,
    },
    /// The block belongs to another request, or to an instance that may not send it here.
    #[error("block {block} belongs to {owner:?}")]
    ForeignBlock {
        /// The block's number.
        block: u32,
        /// Its owner; none if the ledger was changing just then.
        owner: Option<Owner>,
    },
}

/// The peer's half of a ring, or its connection, says what cannot be true. It is closed for good; others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The peer's position went back, or further than the ring allows.
    #[error("position {position} is not in {from}..={to}")]
    Position {
        /// As loaded, in descriptors.
        position: u32,
        /// The last one seen.
        from: u32,
        /// The furthest that can be true.
        to: u32,
    },
    /// What comes by its connection is not from it.
    #[error("its connection says that it is {0}")]
    Source(Instance),
}

/// Why a descriptor was not sent. The sender still has the block.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no edge to that instance.
    #[error("no edge to {0}")]
    NoEdge(Instance),
    /// The ring is full. A ring with as many slots as the pool has blocks never is, unless the receiver does not read.
    #[error("the ring to {0} is full")]
    Full(Instance),
    /// The receiver has ended.
    #[error("{0} has ended")]
    Gone(Instance),
    /// The receiver's half of the ring is broken, and the edge closed.
    #[error("{to} broke the ring: {violation}")]
    Broken {
        /// The receiver.
        to: Instance,
        /// What it wrote.
        violation: Violation,
    },
    /// The descriptor's fields do not fit into 16 bytes.
    #[error("the descriptor cannot be encoded: {0}")]
    Unencodable(Refused),
    /// A system call failed. The descriptor is in the ring, but the receiver may sleep on.
    #[error("{call}: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// Why nothing was received.
#[derive(Debug, thiserror::Error)]
pub enum RecvError {
    /// Nothing came before the deadline.
    #[error("nothing came before the deadline")]
    TimedOut,
    /// [`crate::Waker::wake`] or [`crate::Board::notify`] ended the wait.
    #[error("the wait was interrupted")]
    Interrupted,
    /// The server closed this instance's own board.
    #[error("this instance was closed")]
    Closed,
    /// A peer has ended and its ring is read to the end: the edge is closed. Reported once.
    #[error("{0} has ended")]
    Gone(Instance),
    /// A peer's half of a ring is broken, and the edge closed. Reported once.
    #[error("{from} broke the ring: {violation}")]
    Broken {
        /// The sender.
        from: Instance,
        /// What it wrote.
        violation: Violation,
    },
    /// A peer sent what is no descriptor for this instance. The edge stays open.
    #[error("{from} sent a bad descriptor: {refused}")]
    Refused {
        /// The sender.
        from: Instance,
        /// What is wrong with it.
        refused: Refused,
    },
    /// A system call failed.
    #[error("{call}: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// A pool, board or table could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// A size is out of bounds.
    #[error("{what} of {found}: must be {rule}")]
    Size {
        /// Of what.
        what: &'static str,
        /// The size.
        found: u64,
        /// What it must be.
        rule: &'static str,
    },
    /// The file is not what it was passed as.
    #[error("not a {0}")]
    NotA(&'static str),
    /// The file has another size than its contents need.
    #[error("a {what} of {found} bytes where {expected} are needed")]
    FileSize {
        /// The kind of file.
        what: &'static str,
        /// Bytes needed.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// The file is not sealed as it must be.
    #[error("the {0} is not sealed")]
    NotSealed(&'static str),
    /// A number names no lane or input of the board, or one that is in use.
    #[error("{what} {number} does not exist or is in use")]
    Taken {
        /// Lane or input.
        what: &'static str,
        /// Its number.
        number: u16,
    },
    /// A system call failed.
    #[error("{call}: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

#[cfg(not(loom))]
impl ChainError {
    pub(crate) fn os(call: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Os {
            call,
            source: source.into(),
        }
    }
}

/// The pool has no free block, or no run of so many. Callers answer at once (503 with `Retry-After`) instead of waiting for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pool has no free block, or no run of so many")]
pub struct Exhausted;
