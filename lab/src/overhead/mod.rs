//! The overhead study: where the time of a small invocation goes, layer by layer from the function out to the client.
//!
//! - [`workloads`]: what is invoked, in which runtimes.
//! - [`layers`]: one invocation's time, divided among the layers.
//! - [`settings`]: what to measure. [`run`]: deploys, measures and removes. [`join`], [`records`]: the stages that the server's history
//!   has, beside the client's times.
//! - [`report`], [`render`]: the table, as text, JSON, CSV and SVG.

mod join;
pub mod layers;
mod records;
pub mod render;
pub mod report;
pub mod run;
pub mod settings;
pub mod workloads;

pub use report::Report;
pub use run::run;
pub use settings::{OverheadError, Settings};
