//! One sub-experiment.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::load::drive::Progress;
use crate::load::{Ended, Plan, Request, Sample, Schedule};
use crate::platform::chain::member;
use crate::stellar::SubExperiment;
use crate::stellar::files::{
    create_directory, data_transfers, directory_name, latencies, statistics,
};
use crate::stellar::schedule::rounds;

use super::deploy::{Prepared, since};
use super::environment::Steal;
use super::pictures::{HISTOGRAMS_MAX, pictures};
use super::result::{self, Entry, Measured};
use super::{Context, Event, RunError, Target};

/// Idle connections that are kept: as many as Go's HTTP client keeps to a host, which STeLLAR uses as it is.
const KEEP_ALIVE: usize = 2;

/// STeLLAR's time limit of a request.
const TIMEOUT: Duration = Duration::from_mins(15);

/// Prepares, measures, writes files, removes.
pub(super) async fn measure(
    context: &Context<'_>,
    number: usize,
    experiment: &SubExperiment,
) -> Result<Entry, RunError> {
    context.log("info", &format!("[sub-experiment {number}] Starting..."));
    let prepared = Prepared::new(context, number, experiment).await?;
    let plan = plan(context, number, experiment, &prepared);
    plan.check()?;
    let starts = prepared.starts(context).await?;
    let steal = Steal::read();
    let running = context.settings.generator.run(&plan, |progress| {
        tell_progress(context, number, &plan, &progress);
    });
    let (report, samples) = tokio::select! {
        done = running => done?,
        () = context.cancelled() => return Err(RunError::Cancelled),
    };
    let steal_share = steal
        .zip(Steal::read())
        .and_then(|(before, after)| after.share_since(before));
    let starts = match (starts, prepared.starts(context).await?) {
        (Some(before), Some(after)) => Some(since(&before, after)),
        _ => None,
    };
    let name = directory_name(experiment);
    let failed = |path: &Path, error| RunError::File(path.to_owned(), error);
    let directory = create_directory(&context.directory, &name)
        .map_err(|error| failed(&context.directory, error))?;
    let host = |request: u32| host(&plan.requests[request as usize].url);
    let latencies_ns = to_first_byte(&samples);
    let rounds = match &plan.schedule {
        Schedule::Bursts { rounds } => rounds.as_slice(),
        _ => &[],
    };
    let mut files = vec![
        (
            "latencies.csv".to_owned(),
            latencies(&samples, report.began_at_ns, &context.zone, host),
        ),
        ("statistics.csv".to_owned(), statistics(&samples)),
    ];
    if experiment.is_chain() {
        let functions = experiment.data_transfer_chain_length;
        files.push((
            "data-transfers.csv".to_owned(),
            data_transfers(&samples, functions, host),
        ));
    }
    files.extend(pictures(experiment, rounds, &latencies_ns));
    for (name, text) in files {
        let path = directory.join(name);
        let parent = path.parent().unwrap_or(&directory);
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    if experiment.shows("histogram") && experiment.bursts > HISTOGRAMS_MAX {
        let text = format!(
            "[sub-experiment {number}] Histograms of the first {HISTOGRAMS_MAX} bursts only."
        );
        context.log("warning", &text);
    }
    let measured = Measured {
        config: experiment,
        functions: &prepared.functions,
        increments: &prepared.increments,
        service_times_ms: prepared
            .reached
            .iter()
            .map(|time| time.as_secs_f64() * 1e3)
            .collect(),
        pauses_ms: rounds.iter().map(|round| round.pause_ms).collect(),
        report: &report,
        starts: &starts,
        steal_share,
        samples: result::Columns::of(&samples),
    };
    let path = directory.join("result.json");
    result::write(&path, &measured).map_err(|error| failed(&path, error))?;
    (context.tell)(Event::Measured {
        number,
        title: &experiment.title,
        report: &report,
        directory: &directory,
    });
    if report.ended == Ended::TooManyFaults {
        return Err(RunError::TooManyFaults(
            number,
            report.faults.values().sum(),
        ));
    }
    if let Target::Hearth(hearth) = &context.settings.target {
        // A function cannot go while it is a chain's member.
        // What stays for now is removed at the end, and what was measured counts all the same.
        let mut left = Vec::new();
        for name in &prepared.chains {
            left.extend(hearth.remove_chain(name).await.err());
        }
        for name in &prepared.functions {
            left.extend(hearth.remove(name).await.err());
        }
        for error in left {
            context.log("warning", &format!("[sub-experiment {number}] {error}"));
        }
    }
    context.log(
        "info",
        &format!("[sub-experiment {number}] Successfully finished."),
    );
    Ok(Entry {
        number,
        title: experiment.title.clone(),
        directory: directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        report,
        starts,
        steal_share,
        latencies_ns,
    })
}

/// Of good answers, each with its burst.
fn to_first_byte(samples: &[Sample]) -> Vec<(u32, f64)> {
    let good = samples.iter().filter(|sample| sample.fault.is_none());
    good.map(|sample| (sample.burst, sample.to_first() as f64))
        .collect()
}

fn plan(
    context: &Context<'_>,
    number: usize,
    experiment: &SubExperiment,
    prepared: &Prepared,
) -> Plan {
    let times = prepared.increments.len();
    // Those after the first.
    let others: Vec<String> = (1..experiment.data_transfer_chain_length)
        .map(member)
        .collect();
    let others = others.join("%20");
    let store = context.store.as_ref();
    let store = store.filter(|_| experiment.storage_transfer);
    let storage = store.map_or_else(String::new, |store| {
        format!("&Bucket={}&StorageTransfer=true", store.access().bucket)
    });
    let mut requests = Vec::new();
    for url in &prepared.urls {
        let separator = if url.contains('?') { '&' } else { '?' };
        for increments in &prepared.increments {
            requests.push(Request {
                method: "GET".to_owned(),
                // STeLLAR's parameters; Go prints lists like this.
                url: format!(
                    "{url}{separator}IncrementLimit={increments}&PayloadLengthBytes={}&DataTransferChainIDs=[{others}]{storage}",
                    experiment.payload_length_bytes
                ),
                headers: prepared.headers.clone(),
                body: String::new(),
            });
        }
    }
    // Each sub-experiment has a sequence of its own.
    let seed = context.settings.seed.wrapping_add(number as u64);
    let rounds = rounds(
        experiment,
        prepared.urls.len(),
        times,
        seed,
        |endpoint, time| endpoint * times + time,
    );
    let sizes = &experiment.burst_sizes;
    Plan {
        requests,
        schedule: Schedule::Bursts { rounds },
        connections: sizes.iter().copied().max().unwrap_or(1),
        keep_alive: KEEP_ALIVE,
        timeout_ms: TIMEOUT.as_millis() as u64,
        capture_bytes: experiment.capture_bytes(),
        // STeLLAR gives up after a tenth of what there would be if all bursts were like the first.
        faults_max: Some((experiment.bursts * sizes.first().copied().unwrap_or(1) / 10) as u64),
        processor: context.settings.processor,
        trust: context.settings.trust.clone(),
    }
}

/// The host of an address, without its port, as STeLLAR writes it.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if let Some((inside, _)) = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return inside;
    }
    authority.split(':').next().unwrap_or_default()
}

/// Tells how far it is. What is left are pauses, which are known, and answers, which take as long as those before.
fn tell_progress(context: &Context<'_>, number: usize, plan: &Plan, progress: &Progress) {
    let Schedule::Bursts { rounds } = &plan.schedule else {
        return;
    };
    let total = progress.total.unwrap_or(progress.done).max(1);
    let pauses: u64 = rounds.iter().map(|round| round.pause_ms).sum();
    let pauses = pauses as f64 / 1e3;
    let share = progress.done as f64 / total as f64;
    let elapsed = progress.elapsed as f64 / 1e9;
    let answering = (elapsed - pauses * share).max(0.0);
    let per_share = if share > 0.0 { answering / share } else { 0.0 };
    let left = (pauses + per_share) * (1.0 - share);
    (context.tell)(Event::Progress {
        number,
        done: progress.done,
        total,
        faults: progress.faults,
        latencies: &progress.latencies,
        left: Duration::try_from_secs_f64(left).unwrap_or_default(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_without_ports() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/fn/x?y=z", "127.0.0.1"),
            ("http://example.org", "example.org"),
            ("http://[::1]:80/", "::1"),
            ("http://a?b", "a"),
        ] {
            assert_eq!(host(url), expected);
        }
    }
}
