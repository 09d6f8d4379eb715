//! The overhead study as an experiment.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::run::{JobRunError, Outcome, Progress, Runner};
use super::spec::JobError;
use crate::duet::render::machine;
use crate::overhead::workloads::{runtimes, workloads};
use crate::overhead::{self, OverheadError, Settings, render};

/// The study's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overhead {
    kind: String,
    /// Warm samples of each workload and runtime.
    pub samples: usize,
    /// Cold ones; 0 for none.
    pub cold: usize,
    /// Names of the workloads; all without one.
    pub workloads: Vec<String>,
    /// Names of the runtimes; all without one.
    pub runtimes: Vec<String>,
}

impl Default for Overhead {
    fn default() -> Self {
        Self {
            kind: "overhead".to_owned(),
            samples: 200,
            cold: 0,
            workloads: Vec::new(),
            runtimes: Vec::new(),
        }
    }
}

impl Overhead {
    /// What is measured.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn settings(&self, prefix: &str) -> Result<Settings, JobError> {
        let field = |name| move |rule| JobError::Field(name, rule);
        let settings = Settings {
            samples: self.samples,
            cold: self.cold,
            workloads: workloads(&self.workloads).map_err(field("workloads"))?,
            runtimes: runtimes(&self.runtimes).map_err(field("runtimes"))?,
            processor: None,
            prefix: prefix.to_owned(),
        };
        settings.check().map_err(|error| match error {
            OverheadError::Setting(field, rule) => JobError::Field(field, rule),
            other => JobError::Field("overhead", other.to_string()),
        })?;
        Ok(settings)
    }
}

/// Runs the study, and writes its files.
pub(super) async fn run(
    job: &Overhead,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let mut settings = job.settings(&runner.prefix)?;
    settings.processor = runner.processor;
    let watch = |progress: overhead::settings::Progress| {
        tell(Progress {
            what: progress.what,
            done: progress.done,
            total: progress.total,
            failed: progress.failed,
            left_s: progress.left.map(|left| left.as_secs_f64()),
            rows: Vec::new(),
            latencies: progress.latencies,
        });
    };
    let ran = overhead::run(
        &runner.client,
        &runner.generator,
        &settings,
        cancelled,
        &watch,
    );
    match ran.await {
        Ok(mut report) => Ok(Outcome {
            directory: report.create(&runner.out)?,
            summary: report.summary(),
            text: format!("{}{}\n", render::text(&report), machine(&report.noise)),
            fell_short: false,
            error: report.without_rows(),
            was_cancelled: false,
        }),
        Err(error @ OverheadError::Cancelled) => Ok(Outcome {
            directory: runner.out.clone(),
            summary: Value::Null,
            text: String::new(),
            fell_short: false,
            error: Some(error.to_string()),
            was_cancelled: true,
        }),
        Err(error) => Err(error.into()),
    }
}
