//! What a chain of functions shares.
#![deny(unsafe_code)]

pub mod accounts;
pub mod descriptor;
pub mod error;
pub mod free_list;
pub mod id;
pub mod latest;
pub mod ring;
pub mod routes;
pub mod sync;

// Loom replaces the atomics by its own, which cannot lie in a mapping: its build holds the cores alone.
#[cfg(not(loom))]
pub mod board;
#[cfg(not(loom))]
mod file;
#[cfg(not(loom))]
mod futex;
#[cfg(not(loom))]
mod inbox;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod memory;
#[cfg(not(loom))]
mod outbox;
#[cfg(not(loom))]
pub mod pool;
#[cfg(not(loom))]
pub mod shape;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
pub mod transport;
#[cfg(not(loom))]
mod view;

pub use descriptor::{Descriptor, Kind, Table};
pub use error::{ChainError, Exhausted, RecvError, Refused, SendError, Violation};
pub use id::{Instance, Member, Owner};
#[cfg(not(loom))]
pub use {
    board::{Board, PeerBoard},
    inbox::{Arrival, Inbox},
    outbox::Outbox,
    pool::{Block, Note, Pool, PoolFiles},
    transport::{Edges, Poll, Ring, Transport, Waker},
    view::{Payload, PoolView},
};
