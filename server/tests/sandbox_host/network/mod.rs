//! Sandboxes with a network, each test in a small internet of its own ([`world`]).
//!
//! - [`reach`]: what they reach. [`change`]: policies that change, names that resolve. [`limits`].
//! - [`restored`]: forks and restored templates. [`removal`]: what is left of them.

mod change;
mod figures;
mod limits;
mod reach;
mod removal;
mod restored;
mod world;
