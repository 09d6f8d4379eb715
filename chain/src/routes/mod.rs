//! Who is next: routes, edges and instances, in a table that members read and only the server writes.
//!
//! The table is one memory file, sealed against every writer but the server (`file.rs`). It holds two **route tables** and one
//! **directory** of instances, because the two change differently:
//!
//! - A request keeps the routes that it began with. Its descriptors carry which [`crate::Table`] they are in, and the
//!   gateway, which sees each request begin and end, counts them ([`pins`]). New routes are written to the table
//!   that no request uses; until there is one, [`RouteTable::publish`] refuses. So a change under load neither loses a request nor sends
//!   it half by the old routes and half by the new.
//! - An instance is there or not, whatever a request began with. Each entry of the directory is one word, so a reader
//!   has an old entry or a new one, and the server removes an instance in this order: the entry first; then it
//!   closes the edges to it, each sender confirming; then the instance answers what is on its rings, and ends.
//!
//! A request that the gateway has given up may still be in a member's hands when its table is written anew. Its blocks are stale by
//! then, and whoever gets them next refuses them. Should it look up a route while the table is being written, the
//! table's sequence number tells ([`RouteError::Retired`]).
//!
//! Edges are denied unless a route or a declared call needs them ([`Plan`]).

pub mod choice;
pub mod pins;

#[cfg(not(loom))]
mod look;
#[cfg(not(loom))]
mod plan;
#[cfg(not(loom))]
mod table;

#[cfg(not(loom))]
pub use {
    look::{MAX_SEATS, RouteError, Seat},
    plan::{MAX_HOPS, MAX_ROUTES, Plan, PlanError},
    table::{Busy, Pin, RouteTable, RouteView},
};
