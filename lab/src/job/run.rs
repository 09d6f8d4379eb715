//! Runs an experiment of any kind.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::endpoints::Endpoints;
use super::spec::{Job, JobError, Tail};
use super::{compare, load, overhead, what_if};
use crate::duet::DuetError;
use crate::duet::events::EventError;
use crate::duet::render::machine;
use crate::load::process::Generator;
use crate::load::{Sketch, Trust};
use crate::overhead::OverheadError;
use crate::platform::client::Client;
use crate::platform::hearth::Hearth;
use crate::replay::ReplayError;
use crate::run::{self, Entry, Event, RunError, Settings, Target};
use crate::stellar::{Experiment, schedule};
use crate::store::Source;
use crate::suite::SuiteError;
use crate::table::{Table, render};

/// How far an experiment is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Progress {
    /// What is being done.
    pub what: String,
    /// Steps of it that are over: requests, functions, calls.
    pub done: u64,
    /// Steps in all.
    pub total: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Seconds left of the whole experiment, estimated.
    pub left_s: Option<f64>,
    /// What was measured so far.
    pub rows: Vec<Value>,
    /// Latencies of what is being measured.
    pub latencies: Sketch,
}

/// An experiment that is over.
#[derive(Debug)]
pub struct Outcome {
    /// Where its files are.
    pub directory: PathBuf,
    /// What came of it, in short.
    pub summary: Value,
    /// The same for a terminal.
    pub text: String,
    /// Whether it ran and shows what should not be: an A/A experiment that differs from itself, a gate that was not
    /// passed.
    pub fell_short: bool,
    /// What ended it before its end.
    pub error: Option<String>,
    /// Whether that was a cancel.
    pub was_cancelled: bool,
}

/// Why an experiment did not begin.
#[derive(Debug, thiserror::Error)]
pub enum JobRunError {
    /// Its settings make no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// It could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It could not be compared.
    #[error(transparent)]
    Duet(#[from] DuetError),
    /// It could not be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// What the layers have could not be measured.
    #[error(transparent)]
    Overhead(#[from] OverheadError),
    /// The trees could not be compared.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The agent has no trees.
    #[error("this agent has no source trees: hearth lab agent --trees DIR gives it some")]
    NoTrees,
    /// The agent sends nothing there.
    #[error("this agent sends no requests to {0}: hearth lab agent --endpoint {0} allows it")]
    Endpoint(String),
    /// There are no events.
    #[error(transparent)]
    Event(#[from] EventError),
}

/// With what experiments are run.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The server.
    pub client: Client,
    /// The load generator.
    pub generator: Generator,
    /// Where directories are created.
    pub out: PathBuf,
    /// Begins the names of functions that are deployed.
    pub prefix: String,
    /// Where source trees are that suites may name.
    pub trees: Option<PathBuf>,
    /// Addresses that experiments may name.
    pub endpoints: Endpoints,
    /// The processor of the load generator.
    pub processor: Option<usize>,
    /// The object store of storage transfers.
    pub store: Source,
}

/// Runs an experiment. What was deployed is removed in any case.
///
/// # Errors
/// What keeps it from beginning.
pub async fn run(
    job: &Job,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    match job {
        Job::Stellar(experiment) => {
            let done = measure(experiment, runner, cancelled, tell).await?;
            let rows: Vec<Value> = done.sub_experiments.iter().map(row).collect();
            Ok(Outcome {
                summary: json!({
                    "rows": rows,
                    "generator": generator(&done, runner),
                    "noise": done.noise,
                }),
                text: format!("{}\n", machine(&done.noise)),
                directory: done.directory,
                fell_short: false,
                was_cancelled: matches!(done.error, Some(RunError::Cancelled)),
                error: done.error.map(|error| error.to_string()),
            })
        }
        Job::Load(settings) => load::run::run(settings, runner, cancelled, tell).await,
        Job::Tail(tail) => table(tail, runner, cancelled, tell).await,
        Job::Overhead(settings) => overhead::run(settings, runner, cancelled, tell).await,
        Job::WhatIf(settings) => what_if::run(settings, runner, cancelled).await,
        Job::Duet(settings) => compare::duet(settings, runner, cancelled, tell).await,
        Job::Replay(settings) => compare::replay(settings, runner, cancelled, tell).await,
        Job::Suite(settings) => compare::suite(settings, runner, cancelled, tell).await,
    }
}

async fn measure(
    experiment: &Experiment,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<run::Done, JobRunError> {
    let target = match &experiment.endpoint {
        Some(url) => {
            runner.endpoints.check(url)?;
            Target::Endpoint(url.clone())
        }
        None => Target::Hearth(Hearth::new(runner.client.clone())),
    };
    let settings = Settings {
        target,
        generator: runner.generator.clone(),
        out: runner.out.clone(),
        only: None,
        seed: 1,
        processor: runner.processor,
        prefix: Some(runner.prefix.clone()),
        trust: Trust::default(),
        store: runner.store.clone(),
    };
    let all = &experiment.sub_experiments;
    let rows = Mutex::new(Vec::new());
    let watch = |event: Event<'_>| {
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        let after = |number: usize| -> f64 {
            let rest = all
                .iter()
                .skip(number + 1)
                .filter(|_| experiment.sequential);
            rest.map(schedule::seconds).sum()
        };
        let title =
            |number: usize| format!("{} ({} of {})", all[number].title, number + 1, all.len());
        let mut progress = Progress::default();
        match event {
            Event::Deployed {
                number,
                done,
                total,
            } => {
                progress.what = format!("{}: functions deployed", title(number));
                (progress.done, progress.total) = (done as u64, total as u64);
                progress.left_s = Some(schedule::seconds(&all[number]) + after(number));
            }
            Event::Progress {
                number,
                done,
                total,
                faults,
                latencies,
                left,
            } => {
                progress.what = format!("{}: requests", title(number));
                (progress.done, progress.total, progress.failed) = (done, total, faults);
                progress.left_s = Some(left.as_secs_f64() + after(number));
                progress.latencies = latencies.clone();
            }
            Event::Measured {
                number,
                title: name,
                report,
                ..
            } => {
                progress.what = title(number);
                (progress.done, progress.total) = (report.sent, report.sent);
                let tail = report.to_first_byte.uncorrected_ns;
                rows.push(json!({ "title": name, "latency_ns": tail }));
                progress.left_s = Some(after(number));
            }
            Event::Removing => progress.what = "functions are removed".to_owned(),
        }
        progress.rows.clone_from(&rows);
        tell(progress);
    };
    Ok(run::run(experiment, &settings, cancelled, &watch).await?)
}

/// What the load generator took, and where it ran.
fn generator(done: &run::Done, runner: &Runner) -> Value {
    let reports = done.sub_experiments.iter().map(|entry| &entry.report);
    let took: u64 = reports.map(|report| report.processor_ns).sum();
    json!({ "processor_ns": took, "processor": runner.processor })
}

/// A sub-experiment in short.
fn row(entry: &Entry) -> Value {
    json!({
        "title": entry.title,
        "latency_ns": entry.report.to_first_byte.uncorrected_ns,
        "corrected_ns": entry.report.to_first_byte.corrected_ns,
        "failed": entry.report.faults.values().sum::<u64>(),
        "starts": entry.starts,
        "steal_share": entry.steal_share,
    })
}

async fn table(
    tail: &Tail,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let (experiment, left_out) = tail
        .measurable(&runner.client, &runner.store, &runner.prefix)
        .await?;
    let done = measure(&experiment, runner, cancelled, tell).await?;
    let table = Table::of(&done.sub_experiments, tail.samples).without(left_out);
    table.write(&done.directory)?;
    let rows: Vec<Value> = table
        .rows
        .iter()
        .map(|row| {
            json!({
                "title": row.factor,
                "means": row.means,
                "latency_ns": row.latency_ns,
                "ratios": row.ratios,
                "cold_share": row.cold_share,
                "failed": row.failed,
                "steal_share": row.steal_share,
                "paper_tmr": row.paper_tmr,
            })
        })
        .collect();
    Ok(Outcome {
        summary: json!({
            "rows": rows,
            "left_out": table.left_out,
            "generator": generator(&done, runner),
            "noise": done.noise,
        }),
        text: format!("{}{}\n", render::text(&table), machine(&done.noise)),
        directory: done.directory,
        fell_short: false,
        was_cancelled: matches!(done.error, Some(RunError::Cancelled)),
        error: done.error.map(|error| error.to_string()),
    })
}
