//! Sandboxes with a network, each test in a small internet of its own ([`world`]).
//!
//! - [`reach`]: what they reach. [`rules`]: each kind of rule. [`change`]: policies that change, names that resolve. [`limits`].
//! - [`fast`]: the way past the rules.
//! - [`load`]: thousands of connections. [`sockets`]: those that the host process makes inside.
//! - [`restored`]: forks and restored templates. [`removal`]: what is left of them.

mod change;
mod fast;
mod limits;
mod load;
mod reach;
mod removal;
mod restored;
mod rules;
mod sockets;
mod world;
