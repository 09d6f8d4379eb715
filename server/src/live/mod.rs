//! Sampler data of the console: the host, requests per second, every function's figures.
//!
//! One task samples once a second (`sampler`): a handful of files in `/proc` and existing counters. The list of
//! functions (`board`) is built at most once a second, by the first watcher that asks for it. Watchers get the newest
//! sample and no queue of old ones, so that a slow one holds no memory.

mod board;
mod host;
mod rates;
mod sampler;

pub use board::{Board, Row};
pub use host::Host;
pub use rates::Rate;
pub use sampler::{Sample, Sampler};
