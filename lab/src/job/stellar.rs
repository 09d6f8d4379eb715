//! STeLLAR's experiments, and the tail table, which is one of them.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::run::{JobRunError, Outcome, Progress, Runner};
use super::spec::Tail;
use crate::duet::render::machine;
use crate::load::Trust;
use crate::platform::hearth::Hearth;
use crate::run::{self, Entry, Event, RunError, Settings, Target};
use crate::stellar::{Experiment, schedule};
use crate::table::{Table, render};

/// Runs an experiment in STeLLAR's format.
pub(super) async fn run(
    experiment: &Experiment,
    runner: &Runner,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, JobRunError> {
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

/// Makes the tail table.
pub(super) async fn table(
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
                "below_paper": row.is_below_paper(),
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
