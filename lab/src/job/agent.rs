//! Takes experiments from a server, runs them, and reports to it.

mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::endpoints::Endpoints;
use super::run::{JobRunError, Outcome, Progress, Runner, run};
use super::spec::Job;
use crate::load::process::Generator;
use crate::platform::client::{Client, ClientError};
use crate::store::Source;

/// Between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Longest time that a report waits for its answer.
const REPORT_WITHIN: Duration = Duration::from_secs(10);

/// An experiment whose server cannot be reached for so long is given up: the server has given it up, too.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Pause after a server that could not be asked for an experiment.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Longest time that a server has no experiment before it is asked again. It says so itself after 20 s.
const ASK_WITHIN: Duration = Duration::from_mins(1);

/// Between two questions, whatever the answer is: one that drains has none at once.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// What a server says of an experiment to be run.
#[derive(Debug, Deserialize)]
pub struct Assigned {
    /// Its number.
    pub id: i64,
    config: Value,
    prefix: String,
}

/// An agent.
#[derive(Debug)]
pub struct Agent {
    /// The server.
    pub client: Client,
    /// The load generator.
    pub generator: Generator,
    /// Where files are written until they are sent.
    pub out: PathBuf,
    /// Where source trees are that suites may name.
    pub trees: Option<PathBuf>,
    /// Addresses that experiments may name.
    pub endpoints: Endpoints,
    /// The processor of the load generator.
    pub processor: Option<usize>,
    /// The object store of storage transfers.
    pub store: Source,
}

/// What came of one, for a terminal.
#[derive(Debug, Clone, Default)]
pub struct Ran {
    /// Its figures.
    pub text: String,
    /// Whether it shows what should not be.
    pub fell_short: bool,
    /// What ended it before its end, or kept it from beginning.
    pub error: Option<String>,
}

impl Ran {
    fn of(outcome: &Result<Outcome, JobRunError>) -> Self {
        match outcome {
            Ok(outcome) => Self {
                text: outcome.text.clone(),
                fell_short: outcome.fell_short,
                error: outcome.error.clone(),
            },
            Err(error) => Self {
                error: Some(error.to_string()),
                ..Self::default()
            },
        }
    }
}

impl Agent {
    /// Runs experiments one after the other until it is cancelled; `once` only the next one, which it waits for. `tell` gets lines for
    /// people.
    ///
    /// # Errors
    /// A server that refuses. One that does not answer is asked again, unless `once`.
    pub async fn serve(
        &self,
        once: bool,
        cancelled: watch::Receiver<bool>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ClientError> {
        loop {
            let path = "/api/v1/experiments/next";
            let ask = self
                .client
                .send_within(Method::POST, path, None, ASK_WITHIN);
            let next = tokio::select! {
                next = ask => next,
                () = is_cancelled(cancelled.clone()) => return Ok(()),
            };
            let pause = match next {
                Ok(answer) => {
                    let assigned = serde_json::from_value::<Assigned>(answer.json()).ok();
                    if let Some(assigned) = &assigned {
                        tell(&format!("experiment {}", assigned.id));
                        let watch = |_: &Progress| {};
                        self.run(assigned, cancelled.clone(), tell, &watch).await;
                    }
                    if once && assigned.is_some() {
                        return Ok(());
                    }
                    ASK_EVERY
                }
                Err(error) if once || is_final(&error) => return Err(error),
                Err(error) => {
                    tell(&error.to_string());
                    RETRY_AFTER
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = is_cancelled(cancelled.clone()) => return Ok(()),
            }
        }
    }

    /// Runs one, and returns what came of it in short. What cannot be reported is told; the server finds that nobody reports.
    pub async fn run(
        &self,
        assigned: &Assigned,
        stopped: watch::Receiver<bool>,
        tell: &(dyn Fn(&str) + Sync),
        watch: &(dyn Fn(&Progress) + Sync),
    ) -> Ran {
        let out = self.out.join(format!("experiment-{}", assigned.id));
        let (cancel, cancelled) = watch::channel(false);
        let latest = Mutex::new(Progress::default());
        let note = |progress: Progress| {
            watch(&progress);
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        };
        let running = self.attempt(assigned, &out, cancelled, &note);
        tokio::pin!(running);
        let mut heard = Instant::now();
        let mut lost = None;
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = sleep(REPORT_EVERY) => {}
            }
            let progress = latest
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            // Reporting must not hold up what is measured; nor must the experiment wait for an answer.
            let report = self.put(assigned.id, "progress", json!(progress));
            let said = tokio::select! {
                outcome = &mut running => break outcome,
                said = report => said,
            };
            let is_cancelled = match said {
                Ok(answer) => {
                    heard = Instant::now();
                    answer["cancel"] == true
                }
                Err(error) => {
                    let is_lost = is_final(&error) || heard.elapsed() > SILENCE_MAX;
                    if is_lost {
                        lost.get_or_insert_with(|| error.to_string());
                    }
                    is_lost
                }
            };
            if is_cancelled || *stopped.borrow() {
                cancel.send_replace(true);
            }
        };
        let mut ran = Ran::of(&outcome);
        if let Some(reason) = lost {
            ran.error = Some(format!("given up: {reason}"));
        }
        if let Err(error) = self.report(assigned.id, outcome, tell).await {
            tell(&format!("experiment {}: {error}", assigned.id));
            ran.error
                .get_or_insert_with(|| format!("not kept: {error}"));
        }
        if let Err(error) = fs::remove_dir_all(&out)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tell(&format!("{}: {error}", out.display()));
        }
        ran
    }

    async fn attempt(
        &self,
        assigned: &Assigned,
        out: &Path,
        cancelled: watch::Receiver<bool>,
        note: &(dyn Fn(Progress) + Sync),
    ) -> Result<Outcome, JobRunError> {
        let job = Job::read(assigned.config.to_string().as_bytes())?;
        let runner = Runner {
            client: self.client.clone(),
            generator: self.generator.clone(),
            out: out.to_owned(),
            prefix: assigned.prefix.clone(),
            trees: self.trees.clone(),
            endpoints: self.endpoints.clone(),
            processor: self.processor,
            store: self.store.clone(),
        };
        run(&job, &runner, cancelled, note).await
    }

    async fn put(&self, id: i64, what: &str, content: Value) -> Result<Value, ClientError> {
        let path = format!("/api/v1/experiments/{id}/{what}");
        let content = Some(("application/json", content.to_string().into_bytes()));
        let sent = self
            .client
            .send_within(Method::PUT, &path, content, REPORT_WITHIN);
        Ok(sent.await?.json())
    }
}

/// Whether asking again would be refused again.
pub(crate) fn is_final(error: &ClientError) -> bool {
    let for_now = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    matches!(error, ClientError::Refused { status, .. } if status.is_client_error() && !for_now.contains(status))
}

async fn is_cancelled(mut cancelled: watch::Receiver<bool>) {
    if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}
