//! Runs an experiment of any kind.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::endpoints::Endpoints;
use super::spec::{Job, JobError};
use super::{compare, load, overhead, stellar, what_if};
use crate::duet::DuetError;
use crate::duet::events::EventError;
use crate::load::Sketch;
use crate::load::process::Generator;
use crate::overhead::OverheadError;
use crate::platform::client::Client;
use crate::replay::ReplayError;
use crate::run::RunError;
use crate::store::Source;
use crate::suite::SuiteError;

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
        Job::Stellar(experiment) => stellar::run(experiment, runner, cancelled, tell).await,
        Job::Load(settings) => load::run::run(settings, runner, cancelled, tell).await,
        Job::Tail(tail) => stellar::table(tail, runner, cancelled, tell).await,
        Job::Overhead(settings) => overhead::run(settings, runner, cancelled, tell).await,
        Job::WhatIf(settings) => what_if::run(settings, runner, cancelled).await,
        Job::Duet(settings) => compare::duet(settings, runner, cancelled, tell).await,
        Job::Replay(settings) => compare::replay(settings, runner, cancelled, tell).await,
        Job::Suite(settings) => compare::suite(settings, runner, cancelled, tell).await,
    }
}
