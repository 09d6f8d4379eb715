//! Sandboxes with a network, each test in a small internet of its own ([`world`]).
//!
//! - [`reach`]: what they reach. [`rules`]: each kind of rule. [`change`]: policies that change, names that resolve. [`limits`].
//! - [`load`]: thousands of connections. [`sockets`]: those that the host process makes inside.
//! - [`restored`]: forks and restored templates. [`removal`]: what is left of them.

mod change;
mod limits;
mod load;
mod reach;
mod removal;
mod restored;
mod rules;
mod sockets;
mod world;
