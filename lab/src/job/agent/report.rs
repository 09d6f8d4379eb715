//! What a server gets at the end of an experiment: its files, and how it ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::time::sleep;

use super::{Agent, REPORT_EVERY, RETRY_AFTER, SILENCE_MAX, is_final};
use crate::job::run::{JobRunError, Outcome, Progress};
use crate::platform::client::{ClientError, encoded};

/// Largest file that is kept with an experiment.
const FILE_MAX: u64 = 32 << 20;

impl Agent {
    /// Sends the files and how it ended.
    pub(super) async fn report(
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
                    let sent = self.client.send(Method::PUT, &path, content);
                    match self.reporting(id, sent).await {
                        Ok(_) => {}
                        // The server has given the experiment up.
                        Err(error) if is_over(&error) => return Err(error),
                        // The end is told all the same: the summary is worth more than the file.
                        Err(error) => {
                            tell(&format!("{name} is not kept: {error}"));
                            if is_silent(&error) {
                                break;
                            }
                        }
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
}

impl Agent {
    /// Reports while something else is sent, which may take longer than the server waits for a report.
    async fn reporting<T>(&self, id: i64, sent: impl Future<Output = T>) -> T {
        let progress = Progress {
            what: "files are sent".to_owned(),
            ..Progress::default()
        };
        let report = async {
            loop {
                sleep(REPORT_EVERY).await;
                let _ = self.put(id, "progress", json!(progress)).await;
            }
        };
        tokio::select! {
            sent = sent => sent,
            () = report => unreachable!("it goes on"),
        }
    }
}

/// Whether nothing more of an experiment is taken: it is over or gone.
fn is_over(error: &ClientError) -> bool {
    let ClientError::Refused { status, .. } = error else {
        return false;
    };
    [StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(status)
}

/// Whether the server has not answered: what follows is not tried, so that the end is told while it still waits for that.
fn is_silent(error: &ClientError) -> bool {
    !matches!(error, ClientError::Refused { .. })
}

/// The files of a run, with those of its sub-experiments and their bursts, each with its name in an address.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(directory, "", DEPTH_MAX, &mut found);
    found.sort();
    found
}

/// How deep a run's files are below its directory.
const DEPTH_MAX: usize = 2;

fn collect(directory: &Path, prefix: &str, depth: usize, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_file() {
            found.push((path, encoded(&name)));
        } else if depth > 0 {
            collect(&path, &format!("{name}/"), depth - 1, found);
        }
    }
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
        let deeper = directory.path().join("warm & cold/histograms/deeper");
        fs::create_dir_all(&deeper).expect("made");
        fs::write(deeper.join("not.svg"), "").expect("written");
        fs::write(deeper.with_file_name("burst0.svg"), "").expect("written");
        let names: Vec<String> = files(directory.path())
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        let expected = [
            "table.csv",
            "warm%20%26%20cold%2Fhistograms%2Fburst0.svg",
            "warm%20%26%20cold%2Fresult.json",
        ];
        assert_eq!(names, expected);
        assert!(files(Path::new("/nowhere")).is_empty());
    }
}
