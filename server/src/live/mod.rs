//! What the console shows as it changes: the host, requests a second, every function's numbers.
//!
//! One task samples once a second (`sampler`), whoever watches; a sample is a handful of files of `/proc` and the counters
//! that are kept anyway. What lists show of every function (`board`) is put together at most once a second, by the first
//! watcher that asks for it. Watchers get the newest sample and no queue of old ones, so that a slow one holds no
//! memory.

mod board;
mod host;
mod rates;
mod sampler;

pub use board::{Board, Row};
pub use host::Host;
pub use rates::Rate;
pub use sampler::{Sample, Sampler};
