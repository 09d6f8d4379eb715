//! The load generator: HTTP/1.1 requests at planned times, each with its own time stamps.
//!
//! One thread, one epoll instance, no allocation per request; it runs in a process of its own ([`process`]), so that the
//! processor time that it takes can be told apart from everybody else's.
//!
//! - [`plan`]: what to send, when, and within which limits. [`arrivals`]: the times of an open loop.
//! - [`engine`]: connections and time stamps. [`drive`], [`pace`]: sends by plan.
//! - [`sample`], [`report`]: what came of each request, and of all. [`sketch`]: latencies so far.

mod alarm;
mod arrivals;
mod clock;
mod connection;
pub mod drive;
mod endpoint;
mod engine;
mod pace;
pub mod plan;
pub mod process;
pub mod report;
mod response;
pub mod sample;
pub mod sketch;
mod targets;
mod tls;

pub(crate) use endpoint::origin;

pub use drive::{Ended, Outcome, run};
pub use plan::{Arrivals, Burst, Plan, PlanError, Request, Round, Schedule, Trust};
pub use report::Report;
pub use sample::{Fault, Sample};
pub use sketch::Sketch;
