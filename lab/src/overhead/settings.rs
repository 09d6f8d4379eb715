//! What to measure, and why it may fail.

use std::path::PathBuf;
use std::time::Duration;

use super::workloads::{Runtime, Workload};
use crate::load::process::GeneratorError;
use crate::load::{PlanError, Sketch};
use crate::platform::client::ClientError;
use crate::platform::hearth::HearthError;

/// Fewest warm samples, so that a 99th percentile is near something.
pub const SAMPLES_MIN: usize = 10;

/// Most of them, as many as STeLLAR's paper has; the study has 100,000, which a history does not keep.
pub const SAMPLES_MAX: usize = 3_000;

/// Most cold samples: each waits for 3 s.
pub const COLD_MAX: usize = 200;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Warm samples of each workload and runtime.
    pub samples: usize,
    /// Cold ones; 0 for none.
    pub cold: usize,
    /// The workloads.
    pub workloads: Vec<&'static Workload>,
    /// The runtimes.
    pub runtimes: Vec<&'static Runtime>,
    /// The processor that the load generator runs on.
    pub processor: Option<usize>,
    /// Begins the names of functions.
    pub prefix: String,
}

/// How far it is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being done.
    pub what: String,
    /// Requests that are over.
    pub done: u64,
    /// Requests in all.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// Time left, estimated.
    pub left: Option<Duration>,
    /// Latencies to the first byte of what is being measured.
    pub latencies: Sketch,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum OverheadError {
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A function cannot be deployed.
    #[error(transparent)]
    Hearth(#[from] HearthError),
    /// The plan is beyond the load generator's limits.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The load generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// A setting makes no sense.
    #[error("{0}: {1}")]
    Setting(&'static str, String),
    /// More requests failed than a tenth.
    #[error("{0}: given up after {1} failed requests")]
    TooManyFaults(String, u64),
    /// Files cannot be written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] std::io::Error),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Functions could not be removed.
    #[error("left behind: {0}")]
    LeftBehind(String),
}

impl Settings {
    /// Whether it can be carried out.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), OverheadError> {
        let refuse = |field, rule| Err(OverheadError::Setting(field, rule));
        if !(SAMPLES_MIN..=SAMPLES_MAX).contains(&self.samples) {
            let rule = format!(
                "{} is not within {SAMPLES_MIN} and {SAMPLES_MAX}",
                self.samples
            );
            return refuse("samples", rule);
        }
        if self.cold > COLD_MAX {
            return refuse("cold", format!("at most {COLD_MAX}"));
        }
        Ok(())
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        let of = |runtime: &&'static Runtime| {
            let runtime = *runtime;
            self.workloads.iter().map(move |workload| Target {
                name: format!("{}-{}-{}", self.prefix, workload.name, runtime.name),
                workload,
                runtime,
            })
        };
        self.runtimes.iter().flat_map(of).collect()
    }
}

/// A function.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) workload: &'static Workload,
    pub(super) runtime: &'static Runtime,
}
