//! Runs experiments that compare two versions.

use std::path::Path;

use serde_json::Value;
use tokio::sync::watch;

use super::duet::Duet;
use super::replay::Replay;
use super::run::{JobRunError, Outcome, Progress, Runner};
use super::suite::Suite;
use crate::duet::gate::{Decision, judge};
use crate::duet::{self, DuetError, Report, events, render};
use crate::replay::{self, ReplayError};
use crate::suite::{self, SuiteError};

/// A duet.
pub(super) async fn duet(
    job: &Duet,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let settings = job.settings(Vec::new())?;
    let recorded = match job.recorded {
        0 => Vec::new(),
        count => events::recorded(&runner.client, &settings.first.function, count).await?,
    };
    let mut found = events::saved(&runner.client, &settings.first.function, &job.saved).await?;
    found.extend(recorded);
    // A gate must be passable by functions that are never called so.
    if job.recorded > 0 && found.is_empty() && job.events.is_empty() && job.threshold.is_none() {
        return Err(events::EventError::None(settings.first.function).into());
    }
    let settings = job.settings(found)?;
    let watch = |progress| tell(told("trials", progress));
    let report = match duet::run(&runner.client, &settings, cancelled, watch).await {
        Ok(report) => report,
        Err(DuetError::Cancelled) => return Ok(was_cancelled(&runner.out)),
        Err(error) => return Err(error.into()),
    };
    outcome(report, job.threshold, runner)
}

/// A replay.
pub(super) async fn replay(
    job: &Replay,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let settings = job.settings(&runner.prefix)?;
    let traffic = job.traffic(&runner.client).await?;
    let watch = |progress| tell(told("arrivals", progress));
    let replayed = replay::run(&runner.client, &settings, &traffic, cancelled, watch);
    match replayed.await {
        Ok(report) => outcome(report, None, runner),
        Err(ReplayError::Cancelled) => Ok(was_cancelled(&runner.out)),
        Err(error) => Err(error.into()),
    }
}

/// A suite.
pub(super) async fn suite(
    job: &Suite,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let trees = runner.trees.as_deref().ok_or(JobRunError::NoTrees)?;
    let settings = job.settings(trees, &runner.prefix)?;
    let watch = |what: &str, progress| tell(told(what, progress));
    match suite::run(&runner.client, &settings, cancelled, watch).await {
        Ok(report) => outcome(report, None, runner),
        Err(SuiteError::Duet(DuetError::Cancelled)) => Ok(was_cancelled(&runner.out)),
        Err(error) => Err(error.into()),
    }
}

fn told(what: &str, progress: duet::run::Progress) -> Progress {
    Progress {
        what: what.to_owned(),
        done: progress.done as u64,
        total: progress.total as u64,
        left_s: progress.left.map(|left| left.as_secs_f64()),
        latencies: progress.durations,
        ..Progress::default()
    }
}

/// Writes a report's files and sums it up.
fn outcome(
    mut report: Report,
    threshold: Option<f64>,
    runner: &Runner,
) -> Result<Outcome, JobRunError> {
    let directory = report.create(&runner.out)?;
    let left_out = report.duets().count() - report.compared();
    let mut summary = report.summary();
    let mut text = render::text(&report);
    let (fell_short, error) = match threshold {
        Some(threshold) => {
            let decision = judge(&report, threshold);
            summary["gate"] = decision.summary();
            match decision {
                Decision::Held => {
                    text += "held: the second version may replace the first\n";
                    (false, None)
                }
                Decision::FellShort(reasons) => {
                    text += &format!("fell short: the second version {}\n", reasons.join("; "));
                    (true, None)
                }
                Decision::Unknown(reason) => (false, Some(format!("not judged: {reason}"))),
            }
        }
        None => (
            report.is_noisy(),
            (report.compared() == 0).then(|| format!("too few trials: {left_out} left out")),
        ),
    };
    Ok(Outcome {
        directory,
        summary,
        text,
        fell_short,
        error,
        was_cancelled: false,
    })
}

/// Trials that were cut short decide nothing.
pub(super) fn was_cancelled(out: &Path) -> Outcome {
    Outcome {
        directory: out.to_owned(),
        summary: Value::Null,
        text: String::new(),
        fell_short: false,
        error: Some(DuetError::Cancelled.to_string()),
        was_cancelled: true,
    }
}
