//! Experiments as a server keeps them: a configuration in JSON, run by an agent that reports what comes of it.
//!
//! - [`spec`]: the configuration. [`load`], [`duet`], [`replay`], [`overhead`], [`suite`], [`what_if`]: those of loads, duets, replays,
//!   overhead studies, suites and simulations.
//! - [`run`]: from a configuration to files and a summary. `stellar`, `compare`: of those in STeLLAR's format, and of those that compare.
//! - [`agent`]: takes experiments from a server and reports to it. [`endpoints`]: the addresses that it sends requests to.

pub mod agent;
mod compare;
pub mod duet;
pub mod endpoints;
pub mod load;
pub mod overhead;
pub mod replay;
pub mod run;
pub mod spec;
mod stellar;
pub mod suite;
pub mod what_if;

pub use run::{Outcome, Progress, run};
pub use spec::{Job, JobError};
