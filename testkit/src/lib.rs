//! What the tests and benchmarks of several crates share. Nothing here is part of Hearth.
//!
//! - [`server`]: starts the real server ([`Launch`](server::Launch)), reads its announcement, stops it.
//! - [`program`]: child processes that end with the value that stands for them.
//! - [`processes`], [`threads`], [`figures`], [`cgroups`]: what the kernel tells of processes.
//! - [`namespaces`]: network namespaces.
//! - [`wait`]: looks until something is so, up to a limit.
//! - [`skipped`]: counts tests that found the host lacking something.
//! - [`worker`]: the server's side of a template and its instances, outside of any sandbox.

pub mod cgroups;
pub mod figures;
mod launch;
pub mod namespaces;
pub mod processes;
pub mod program;
pub mod server;
pub mod skipped;
pub mod threads;
pub mod wait;
pub mod worker;
