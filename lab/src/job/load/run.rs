//! Runs a load.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::render::{failures, latencies, text};
use super::{Load, Target, files};
use crate::duet::render::machine;
use crate::duet::run::aside;
use crate::job::compare::was_cancelled;
use crate::job::run::{JobRunError, Outcome, Progress, Runner};
use crate::load::plan::REQUESTS_MAX;
use crate::load::{Ended, Plan, Report, Schedule, drive};
use crate::platform::client::Client;
use crate::platform::hearth::Hearth;
use crate::run::environment::Environment;
use crate::run::noise::{Noise, Watched};
use crate::run::{RunError, result, since};
use crate::stellar::files::create_directory;

/// `load.json`: everything but the samples.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    lab_version: &'static str,
    began_at: Timestamp,
    ended_at: Timestamp,
    config: &'a Load,
    environment: Environment,
    noise: &'a Noise,
    /// What the server says of itself; none of other addresses.
    node: &'a Option<Value>,
    /// How all requests to the function meanwhile got their instances, others' included; none of chains and other addresses.
    starts: &'a Option<BTreeMap<String, u64>>,
    report: &'a Report,
}

/// Sends, and writes `load.json`, `samples.csv` and plots.
pub(in crate::job) async fn run(
    job: &Load,
    runner: &Runner,
    mut cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
    let hearth = Hearth::new(runner.client.clone());
    let url = job.address(|path| runner.client.url(path))?;
    let mut plan = job.plan(url.clone())?;
    plan.processor = runner.processor;
    let node = match job.target()? {
        Target::Url(_) => {
            runner.endpoints.check(&url)?;
            None
        }
        Target::Function(_) | Target::Chain(_) => {
            for_a_function(&mut plan, &runner.client);
            Some(hearth.node().await.map_err(RunError::from)?)
        }
    };
    let before = starts(job, &hearth).await?;
    let (began_at, watched) = (Timestamp::now(), Watched::begin());
    let sending = runner
        .generator
        .run(&plan, |progress| tell(told(&plan, progress)));
    let (report, samples) = tokio::select! {
        done = sending => done.map_err(RunError::from)?,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => return Ok(was_cancelled(&runner.out)),
    };
    // What was measured counts without it.
    let after = starts(job, &hearth).await.ok().flatten();
    let starts = before
        .zip(after)
        .map(|(before, after)| since(&before, after));
    let directory = directory(&runner.out, began_at)?;
    let environment = Environment::read();
    let noise = watched.end(&environment, Some(&directory));
    let (title, of, into) = (job.title(), report.clone(), directory.clone());
    // Millions of samples take seconds, in which an agent has to report.
    let written = aside(move || files::write(&into, &title, &of, &samples)).await;
    let summary = Summary {
        lab_version: env!("CARGO_PKG_VERSION"),
        began_at,
        ended_at: Timestamp::now(),
        config: job,
        environment,
        noise: &noise,
        node: &node,
        starts: &starts,
        report: &report,
    };
    let written = written.and_then(|()| result::write(&directory.join("load.json"), &summary));
    let unwritten = written
        .err()
        .map(|error| RunError::File(directory.clone(), error).to_string());
    let failed = report.sent - report.good;
    let row = |(name, tail)| json!({ "title": name, "latency_ns": tail, "failed": failed });
    let rows: Vec<Value> = latencies(&report).into_iter().map(row).collect();
    Ok(Outcome {
        text: format!("{}{}\n", text(&report), machine(&noise)),
        summary: json!({
            "rows": rows,
            "load": report,
            "failures": failures(&report),
            "starts": starts,
            "samples_step": files::step(report.sent),
            "is_full": job.count.is_none() && report.sent >= REQUESTS_MAX,
            "generator": { "processor_ns": report.processor_ns, "processor": runner.processor },
            "noise": noise,
        }),
        directory,
        fell_short: false,
        error: fault(&report).or(unwritten),
        was_cancelled: false,
    })
}

/// What a private function asks for, and the type of what is sent, which decides how the function gets it.
fn for_a_function(plan: &mut Plan, client: &Client) {
    for request in &mut plan.requests {
        let mut add = |name: &str, value: String| {
            let is_there = |(one, _): &(String, String)| one.eq_ignore_ascii_case(name);
            if !request.headers.iter().any(is_there) {
                request.headers.push((name.to_owned(), value));
            }
        };
        add("authorization", client.authorization());
        if !request.body.is_empty() {
            add("content-type", "application/json".to_owned());
        }
    }
}

async fn starts(job: &Load, hearth: &Hearth) -> Result<Option<BTreeMap<String, u64>>, RunError> {
    match job.target() {
        Ok(Target::Function(name)) => Ok(Some(hearth.starts_in_all(name).await?)),
        _ => Ok(None),
    }
}

fn directory(out: &Path, began_at: Timestamp) -> Result<PathBuf, RunError> {
    let failed = |error| RunError::File(out.to_owned(), error);
    fs::create_dir_all(out).map_err(failed)?;
    create_directory(out, &began_at.as_second().to_string()).map_err(failed)
}

/// What keeps its figures from saying anything.
fn fault(report: &Report) -> Option<String> {
    let failed = failures(report);
    match report.ended {
        Ended::TooManyFaults => Some(format!("given up, too many requests failed: {failed}")),
        _ if report.sent == 0 => Some("no request was due in that time".to_owned()),
        _ if report.good == 0 => Some(format!("no request was answered with 200: {failed}")),
        _ => None,
    }
}

/// How far it is: in requests or in seconds, whichever ends it.
pub fn told(plan: &Plan, progress: drive::Progress) -> Progress {
    let elapsed = progress.elapsed as f64 / 1e9;
    // The generator tells a total only where nothing else ends the run.
    let (seconds, count) = match &plan.schedule {
        Schedule::Closed { duration_ms, count }
        | Schedule::Open {
            duration_ms, count, ..
        } => (duration_ms.map(|ms| ms as f64 / 1e3), *count),
        Schedule::Bursts { .. } => (None, progress.total),
    };
    let by_time = seconds.map(|seconds| (seconds - elapsed).max(0.0));
    let by_count = count.map(|total| {
        let one = elapsed / progress.done.max(1) as f64;
        one * total.saturating_sub(progress.done) as f64
    });
    let left_s = match (by_time, by_count) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let is_by_time = match (by_time, by_count) {
        (Some(by_time), Some(by_count)) => by_time < by_count,
        (by_time, _) => by_time.is_some(),
    };
    let (what, done, total) = match seconds.filter(|_| is_by_time) {
        Some(seconds) => (
            format!("{} requests, seconds", progress.done),
            elapsed.min(seconds) as u64,
            seconds.ceil() as u64,
        ),
        None => ("requests".to_owned(), progress.done, count.unwrap_or(0)),
    };
    Progress {
        what,
        done,
        total,
        failed: progress.faults,
        left_s,
        rows: Vec::new(),
        latencies: progress.latencies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Sketch;

    fn plan(config: Value) -> Plan {
        let load: Load = serde_json::from_value(config).expect("a load");
        load.plan("http://127.0.0.1:1/".to_owned()).expect("a plan")
    }

    fn progress(done: u64, total: Option<u64>) -> drive::Progress {
        drive::Progress {
            done,
            faults: 1,
            total,
            elapsed: 4_000_000_000,
            latencies: Sketch::default(),
        }
    }

    #[test]
    fn progress_is_in_requests_or_in_seconds() {
        let counted = told(&plan(json!({"count": 100})), progress(40, Some(100)));
        assert_eq!(
            (counted.what.as_str(), counted.done, counted.total),
            ("requests", 40, 100)
        );
        assert_eq!((counted.left_s, counted.failed), (Some(6.0), 1));
        let timed = told(&plan(json!({"duration_s": 9.5})), progress(40, None));
        assert_eq!(
            (timed.what.as_str(), timed.done, timed.total),
            ("40 requests, seconds", 4, 10)
        );
        assert_eq!(timed.left_s, Some(5.5));
        // Whichever comes first.
        let both = plan(json!({"count": 100, "duration_s": 5}));
        let by_time = told(&both, progress(40, None));
        assert_eq!((by_time.left_s, by_time.total), (Some(1.0), 5));
        let both = plan(json!({"count": 100, "duration_s": 3600}));
        let by_count = told(&both, progress(40, None));
        assert_eq!((by_count.left_s, by_count.total), (Some(6.0), 100));
    }

    #[test]
    fn functions_get_what_they_ask_for_unless_it_is_given() {
        let client = Client::new("http://127.0.0.1:1", "hth_x").expect("a client");
        let mut asked = plan(json!({"body": "{}", "headers": {"Authorization": "mine"}}));
        for_a_function(&mut asked, &client);
        let headers = [
            ("Authorization", "mine"),
            ("content-type", "application/json"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(asked.requests[0].headers, headers);
        let mut asked = plan(json!({}));
        for_a_function(&mut asked, &client);
        let (name, value) = &asked.requests[0].headers[0];
        assert_eq!(
            (name.as_str(), value.as_str()),
            ("authorization", "Bearer hth_x")
        );
    }
}
