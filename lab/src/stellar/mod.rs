//! STeLLAR's experiments (github.com/vhive-serverless/STeLLAR): its configuration is read, and its files are written, as its own
//! client does.
//!
//! - [`experiment`]: the configuration, and what of it is refused. [`duration`]: Go's durations in it.
//! - [`schedule`]: the pauses and bursts that it asks for.
//! - [`files`]: directory layout and CSV files. [`go`]: how Go formats what is in them.

pub mod duration;
pub mod experiment;
pub mod files;
mod go;
pub mod schedule;

pub use experiment::{Experiment, ExperimentError, SubExperiment};
