//! The foundation of chains: functions that pass a request on to each other with no copy and no network between them.
//!
//! A payload lies in a block of a [`Pool`], which all processes of one chain map. What travels is a [`Descriptor`] of 16
//! bytes, by a [`Transport`], from one instance to the next that the [`routes`] name. The gateway, in the server, begins and ends
//! each request; between two members it has no part.
//!
//! **Trust ends at the chain.** A member may break the requests of its own chain, and must never crash, hang or deceive the
//! gateway. So what decides where an access goes, who gets a block or who sent something is nowhere that a member can
//! write: the ledger and the routes are sealed against all but the gateway (`file.rs`), the free list is in the gateway's
//! private memory ([`pool`]), and each instance writes one [`Board`] and nothing else, whose words its peers load once and
//! check ([`board`]). Whatever it writes there, its peers get descriptors or a typed error, and lose that edge at most.
//!
//! Read in this order: [`descriptor`], [`pool`] with [`accounts`], [`free_list`] and [`runs`], [`board`] with [`ring`], [`sleeper`] and [`latest`],
//! [`transport`], [`sk_msg`], [`routes`]. The cores [`accounts`], [`free_list`], [`runs`], [`ring`], [`sleeper`], [`latest`] and [`routes::pins`] touch neither
//! mappings nor the system, and loom models them.
//!
//! Integers in shared memory are native: it is shared by processes of one machine.
#![deny(unsafe_code)]

pub mod accounts;
pub mod descriptor;
#[cfg(not(loom))]
pub mod envelope;
pub mod error;
pub mod free_list;
pub mod id;
pub mod latest;
pub mod ring;
pub mod routes;
pub mod runs;
pub mod sleeper;
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
pub mod join;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod mapping;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod memory;
#[cfg(not(loom))]
mod near;
#[cfg(not(loom))]
mod notes;
#[cfg(not(loom))]
mod outbox;
#[cfg(not(loom))]
pub mod pool;
#[cfg(not(loom))]
pub mod shape;
#[cfg(not(loom))]
pub mod sk_msg;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
pub mod trace;
#[cfg(not(loom))]
pub mod transport;
#[cfg(not(loom))]
mod turn;
#[cfg(not(loom))]
mod view;

pub use descriptor::{Descriptor, Kind, Table};
pub use error::{ChainError, Exhausted, RecvError, Refused, SendError, Violation};
pub use id::{Instance, Member, Owner};
#[cfg(not(loom))]
pub use {
    board::{Board, PeerBoard},
    envelope::{Envelope, Looks, TraceContext},
    inbox::{Arrival, Inbox},
    notes::Note,
    outbox::Outbox,
    pool::{Block, Pool, PoolFiles},
    sk_msg::{Lines, SkMsg},
    trace::Stay,
    transport::{Edges, Poll, Ring, Transport, Waker},
    view::{LeftCopy, Payload, PoolView},
};
