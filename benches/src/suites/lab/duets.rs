//! Duets of a hundred benchmarks: of a version with itself, of two versions that do the same, and of versions that were made slower.
//!
//! It is one experiment of a hundred events, as `hearth lab duet busy@1 busy@3` is: all of its verdicts together are there by chance
//! with the probability of one. The function computes for as long as its event says, from 1 ms with the first to 2 ms with the last; the
//! iterations are calibrated on it.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use hearth_lab::duet::events::Event;
use hearth_lab::duet::report::Stage;
use hearth_lab::duet::{self, Report, Settings, Subject};
use hearth_lab::platform::calibrate::stage;
use hearth_lab::statistics::quantile::{linear, sort};
use hearth_lab::statistics::{Bootstrap, Verdict};
use serde_json::json;
use tokio::sync::watch;

use super::{client, runtime};
use crate::client::Connection;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, invocation};

/// The category.
pub const DUETS: &str = "duets";
/// Units: benchmarks that were compared, and changes that were found.
pub const BENCHMARKS: &str = "benchmarks";
/// The same.
pub const FOUND: &str = "changes found";
/// Percentiles of the benchmarks' changes that are kept.
pub const PERCENTILES: [f64; 11] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0,
];

/// Changes that others may be by chance, changes into the other direction, the changes' median, least and largest, the intervals'
/// median width, and how long it took.
const POSSIBLE: &str = "possible changes";
const WRONG: &str = "found the other way";
const MEDIAN: &str = "%, median change";
const WIDTH: &str = "%, median width of intervals";
const TOOK: &str = "s";

const FUNCTION: &str = "busy";
/// Busy time of the first and of the last benchmark.
const BUSY_MS: [f64; 2] = [1.0, 2.0];
const QUICK_BUSY_MS: [f64; 2] = [0.1, 0.2];
/// Trials are repeats in calls; a repeat's execution is the mean of so many invocations. All are those of `hearth lab duet` without options.
const CALLS: usize = 15;
const REPEATS: usize = 3;
const INVOCATIONS: usize = 10;
const QUICK_CALLS: usize = 4;

/// Iterations and runs that are timed for the calibration, of which the shortest counts.
const ITERATIONS: u64 = 20_000;
const RUNS: usize = 20;

/// What is compared with version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duet {
    /// Itself.
    Itself,
    /// A version of other text that does the same.
    Copy,
    /// 5 % more iterations.
    Slower5,
    /// 10 % more.
    Slower10,
}

impl Duet {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Itself, Self::Copy, Self::Slower5, Self::Slower10];

    /// Its row.
    pub fn row(self) -> &'static str {
        match self {
            Self::Itself => "A/A: a version and itself",
            Self::Copy => "A/A: two versions that do the same",
            Self::Slower5 => "5 % slower",
            Self::Slower10 => "10 % slower",
        }
    }

    /// Its line in the plot.
    pub fn in_short(self) -> &'static str {
        match self {
            Self::Itself => "A/A, itself",
            Self::Copy => "A/A, two versions",
            Self::Slower5 => "5 % slower",
            Self::Slower10 => "10 % slower",
        }
    }

    /// How many times as much the second version does.
    fn factor(self) -> f64 {
        match self {
            Self::Itself | Self::Copy => 1.0,
            Self::Slower5 => 1.05,
            Self::Slower10 => 1.1,
        }
    }
}

/// The category of the changes' percentiles, for the plot.
pub fn changes(duet: Duet) -> String {
    format!("{DUETS}, changes: {}", duet.row())
}

/// The row of a percentile.
pub fn percentile(percent: f64) -> String {
    format!("p{percent}")
}

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    if let Err(reason) = server.runtime(Runtime::Python)? {
        document.skip(DUETS, reason);
        return Ok(());
    }
    for duet in Duet::ALL {
        // Version 1 is compared with itself.
        if duet == Duet::Itself {
            server.deploy(FUNCTION, Runtime::Python, &code(duet), &json!({}))?;
        } else {
            let version = json!({"code": {"inline": code(duet)}});
            server.call("POST", &format!("/functions/{FUNCTION}/versions"), &version)?;
        }
    }
    let events = events(iteration(&server)?, scale);
    for (number, duet) in Duet::ALL.into_iter().enumerate() {
        let second = number as u32 + 1;
        let begun = Instant::now();
        let report = compare(&server, second, &events, scale).context(duet.row())?;
        conclude(duet, &report, begun.elapsed(), document)?;
    }
    Ok(())
}

/// A version's code; the name of the duet makes its text another one.
fn code(duet: Duet) -> String {
    format!(
        "FACTOR = {}  # {}\n\n\
         def handler(event, context):\n    value = 1\n    for _ in range(round(event[\"iterations\"] * FACTOR)):\n\
         \x20       value = value * 31 + 7 & 0xffff\n    return value\n",
        duet.factor(),
        duet.row()
    )
}

fn event(iterations: u64) -> String {
    json!({ "iterations": iterations }).to_string()
}

/// What an iteration takes.
fn iteration(server: &Server) -> anyhow::Result<Duration> {
    let call = invocation(FUNCTION, event(ITERATIONS).as_bytes());
    let mut connection = Connection::open(server.address)?;
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let answer = connection.exchange(&call)?;
        answer.good()?;
        let timing = answer.header("server-timing");
        let run = timing.and_then(|timing| stage(timing, Stage::Run.name()));
        least = least.min(run.context("no run in Server-Timing")?);
    }
    let each = least / ITERATIONS as u32;
    ensure!(!each.is_zero(), "{ITERATIONS} iterations took {least:?}");
    Ok(each)
}

fn events(iteration: Duration, scale: Scale) -> Vec<Event> {
    let count = scale.pick(100, 10);
    let [from, to] = scale.pick(BUSY_MS, QUICK_BUSY_MS);
    (0..count)
        .map(|number| {
            let ms = from + (to - from) * f64::from(number) / f64::from(count - 1);
            let iterations = (ms * 1e6 / iteration.as_nanos() as f64) as u64;
            Event {
                name: format!("{number:02}: {ms:.2} ms"),
                text: event(iterations.max(1)),
            }
        })
        .collect()
}

fn compare(server: &Server, second: u32, events: &[Event], scale: Scale) -> anyhow::Result<Report> {
    let subject = |version| Subject {
        function: FUNCTION.to_owned(),
        version: Some(version),
    };
    let settings = Settings {
        first: subject(1),
        second: subject(second),
        events: events.to_vec(),
        calls: scale.pick(CALLS, QUICK_CALLS),
        repeats: REPEATS,
        invocations: scale.pick(INVOCATIONS, 1),
        stage: Stage::Run,
        with_control: false,
        // Others for each duet: what chance does to one it does not do to all.
        seed: u64::from(second),
        bootstrap: Bootstrap {
            resamples: scale.pick(Bootstrap::default().resamples, 500),
            ..Bootstrap::default()
        },
        // Nobody asks after how many trials intervals are narrow.
        width: 1.0,
    };
    let (_sender, cancelled) = watch::channel(false);
    let client = client(server)?;
    Ok(runtime()?.block_on(duet::run(&client, &settings, cancelled, |_| {}))?)
}

fn conclude(
    duet: Duet,
    report: &Report,
    took: Duration,
    document: &mut Document,
) -> anyhow::Result<()> {
    let verdicts = report.benchmarks.iter().filter_map(|one| one.verdict);
    let verdicts: Vec<Verdict> = verdicts.collect();
    let count = |wanted: &[Verdict]| {
        let found = verdicts.iter().filter(|verdict| wanted.contains(verdict));
        found.count() as f64
    };
    let compared = report.benchmarks.iter().filter_map(|one| one.comparison);
    let (mut changes, mut widths) = (Vec::new(), Vec::new());
    for found in compared {
        changes.push(100.0 * found.change.estimate);
        widths.push(100.0 * found.change.percentile.width());
    }
    let faults: usize = report
        .benchmarks
        .iter()
        .map(|one| one.trials.faults())
        .sum();
    ensure!(
        faults == 0 && changes.len() == report.benchmarks.len(),
        "{faults} executions failed, and {} of {} benchmarks were compared",
        changes.len(),
        report.benchmarks.len()
    );
    sort(&mut changes);
    sort(&mut widths);
    let row = duet.row();
    let mut add = |unit, value| document.figure(DUETS, row, value, unit);
    add(BENCHMARKS, verdicts.len() as f64);
    // Where nothing differs, whatever is found is wrong.
    let (found, wrong) = match duet {
        Duet::Itself | Duet::Copy => (count(&[Verdict::Slower, Verdict::Faster]), None),
        Duet::Slower5 | Duet::Slower10 => {
            (count(&[Verdict::Slower]), Some(count(&[Verdict::Faster])))
        }
    };
    add(FOUND, found);
    if let Some(wrong) = wrong {
        add(WRONG, wrong);
    }
    add(POSSIBLE, count(&[Verdict::Possible]));
    add(MEDIAN, linear(&changes, 0.5).unwrap_or_default());
    add(WIDTH, linear(&widths, 0.5).unwrap_or_default());
    add(TOOK, took.as_secs_f64());
    for percent in PERCENTILES {
        let change = linear(&changes, percent / 100.0).unwrap_or_default();
        document.figure(&self::changes(duet), &percentile(percent), change, "%");
    }
    Ok(())
}

/// The columns of the report's table: units.
pub const COLUMNS: [&str; 7] = [BENCHMARKS, FOUND, WRONG, POSSIBLE, MEDIAN, WIDTH, TOOK];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_a_hundred_of_one_to_two_ms() {
        let events = events(Duration::from_nanos(50), Scale { quick: false });
        assert_eq!(events.len(), 100);
        assert!(events.len() <= hearth_lab::duet::events::EVENTS_MAX);
        assert_eq!(events[0].text, event(20_000));
        assert_eq!(events[99].text, event(40_000));
        assert_eq!(events[99].name, "99: 2.00 ms");
        let texts: std::collections::HashSet<&str> =
            events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts.len(), 100);
    }

    #[test]
    fn each_version_has_a_text_of_its_own() {
        let codes: std::collections::HashSet<String> = Duet::ALL.map(code).into();
        assert_eq!(codes.len(), Duet::ALL.len());
        assert!(code(Duet::Slower5).starts_with("FACTOR = 1.05  # 5 % slower\n"));
    }
}
