//! The policy of the start tiers: what to start, what to keep, what to let go. Pure: no I/O, no locks, the clock is a parameter,
//! so that units and property tests exercise it with plain numbers.
//!
//! - [`estimate`]: what is learned of a function: how long it runs, what its starts cost, how often it is called.
//! - [`burst`]: how many instances to start for those who wait.
//! - [`starts`]: how many starts of all functions may be under way, and whose turn it is.
//! - [`periodic`]: when a function that is called at regular times will be called next.
//! - [`controllers`]: which of these are on.
//! - [`keep`]: what to let go when memory is short. [`pressure`]: how short it is.
//! - [`priority`]: when the server's threads take precedence over the host's other work.
//!
//! `server/docs/starts.md` tells the whole, with its sources.

pub mod burst;
pub mod controllers;
pub mod estimate;
pub mod keep;
pub mod periodic;
pub mod pressure;
pub mod priority;
pub mod starts;
