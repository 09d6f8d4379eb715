//! Takes experiments from a server, runs them, and reports to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

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

/// Largest file that is kept with an experiment.
const FILE_MAX: u64 = 32 << 20;

/// What a server says of an experiment to be run.
#[derive(Debug, Deserialize)]
struct Assigned {
    id: i64,
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
    /// The object store of storage transfers.
    pub store: Source,
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
                        self.run(assigned, cancelled.clone(), tell).await;
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

    /// Runs one. What cannot be reported is told; the server finds that nobody reports.
    async fn run(
        &self,
        assigned: &Assigned,
        stopped: watch::Receiver<bool>,
        tell: &(dyn Fn(&str) + Sync),
    ) {
        let out = self.out.join(format!("experiment-{}", assigned.id));
        let (cancel, cancelled) = watch::channel(false);
        let latest = Mutex::new(Progress::default());
        let note = |progress: Progress| {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        };
        let running = self.attempt(assigned, &out, cancelled, &note);
        tokio::pin!(running);
        let mut heard = Instant::now();
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
            let is_lost = match said {
                Ok(answer) => {
                    heard = Instant::now();
                    answer["cancel"] == true
                }
                Err(error) => is_final(&error) || heard.elapsed() > SILENCE_MAX,
            };
            if is_lost || *stopped.borrow() {
                cancel.send_replace(true);
            }
        };
        if let Err(error) = self.report(assigned.id, outcome, tell).await {
            tell(&format!("experiment {}: {error}", assigned.id));
        }
        if let Err(error) = fs::remove_dir_all(&out)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tell(&format!("{}: {error}", out.display()));
        }
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
            store: self.store.clone(),
        };
        run(&job, &runner, cancelled, note).await
    }

    /// Sends the files and how it ended.
    async fn report(
        &self,
        id: i64,
        outcome: Result<Outcome, JobRunError>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ClientError> {
        let mut end = json!({ "state": "failed", "result": null });
        match outcome {
            Err(error) => end["error"] = error.to_string().into(),
            Ok(outcome) => {
                for (path, name) in files(&outcome.directory) {
                    match fs::metadata(&path).map(|metadata| metadata.len()) {
                        Ok(size) if size <= FILE_MAX => {}
                        _ => {
                            tell(&format!("{name} is too large to be kept"));
                            continue;
                        }
                    }
                    let Ok(content) = fs::read(&path) else {
                        continue;
                    };
                    let path = format!("/api/v1/experiments/{id}/files/{name}");
                    let content = Some(("application/octet-stream", content));
                    match self.client.send(Method::PUT, &path, content).await {
                        Ok(_) => {}
                        // The server has given the experiment up, or is not there.
                        Err(error) if is_over(&error) => return Err(error),
                        // The end is told all the same: the summary is worth more than the file.
                        Err(error) => tell(&format!("{name} is not kept: {error}")),
                    }
                }
                end["result"] = outcome.summary;
                end["state"] = match (&outcome.error, outcome.was_cancelled, outcome.fell_short) {
                    (_, true, _) => "cancelled",
                    (Some(_), ..) => "failed",
                    (None, false, true) => "fell_short",
                    (None, false, false) => "succeeded",
                }
                .into();
                end["error"] = outcome.error.filter(|_| !outcome.was_cancelled).into();
            }
        }
        // As long as the server waits for it: without it, what was measured is lost.
        let began = Instant::now();
        loop {
            match self.put(id, "end", end.clone()).await {
                Err(error) if !is_final(&error) && began.elapsed() < SILENCE_MAX => {
                    tell(&error.to_string());
                    sleep(RETRY_AFTER).await;
                }
                sent => return sent.map(drop),
            }
        }
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
fn is_final(error: &ClientError) -> bool {
    let for_now = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    matches!(error, ClientError::Refused { status, .. } if status.is_client_error() && !for_now.contains(status))
}

/// Whether nothing more of an experiment is taken: it is over or gone, or nobody answers.
fn is_over(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { status, .. } => {
            [StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(status)
        }
        _ => true,
    }
}

async fn is_cancelled(mut cancelled: watch::Receiver<bool>) {
    if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The files of a run, and those of its sub-experiments, each with its name in an address.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries(directory) {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if path.is_file() {
            found.push((path, encoded(&name)));
            continue;
        }
        for inner in entries(&path) {
            let inner_name = inner.file_name().to_string_lossy().into_owned();
            found.push((inner.path(), encoded(&format!("{name}/{inner_name}"))));
        }
    }
    found.sort();
    found
}

/// A name as a part of an address (RFC 3986, unreserved characters).
fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_for_addresses() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("table.csv"), "").expect("written");
        fs::create_dir(directory.path().join("warm & cold")).expect("made");
        fs::write(directory.path().join("warm & cold/result.json"), "").expect("written");
        let names: Vec<String> = files(directory.path())
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["table.csv", "warm%20%26%20cold%2Fresult.json"]);
        assert!(files(Path::new("/nowhere")).is_empty());
    }
}
