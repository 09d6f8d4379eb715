//! Goals: the target, the result, and the lower bound.

mod chaining;
mod holding;
mod measuring;
mod meeting;
mod reaching;
mod starting;

use self::chaining::chaining;
use self::holding::holding;
use self::measuring::measuring;
use self::meeting::meeting;
use self::reaching::reaching;
use self::starting::starting;
use super::Documents;
use super::format::{number, percentile, time};
use crate::results::Metrics;
use crate::suites::{ring, transports, warm};

const MS: f64 = 1e6;

/// One goal.
struct Goal {
    what: String,
    goal: String,
    /// What was measured, and whether that is good enough. None where it was not measured.
    measured: Option<(String, bool)>,
    floor: String,
}

/// Whether a percentile is there and holds its limit.
fn at_most(found: Option<f64>, limit: f64) -> bool {
    found.is_some_and(|found| found <= limit)
}

impl Goal {
    fn new(what: impl Into<String>, goal: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            goal: goal.into(),
            measured: None,
            floor: String::new(),
        }
    }

    /// A limit on the median, and perhaps on the 99th percentile.
    fn limits(mut self, found: Option<&Metrics>, p50: f64, p99: Option<f64>) -> Self {
        self.measured = found.map(|found| {
            let mut text = format!("p50 {}", time(found.median_ns));
            if p99.is_some() {
                text += &format!(", p99 {}", percentile(found.p99_ns));
            }
            let good =
                found.median_ns <= p50 && p99.is_none_or(|limit| at_most(found.p99_ns, limit));
            (text, good)
        });
        self
    }

    /// What nothing could be better than, in ns, and how many times that the median is.
    fn floor(mut self, what: &str, found: Option<&Metrics>, floor: Option<f64>) -> Self {
        self.floor = match (found, floor) {
            (Some(found), Some(floor)) => format!(
                "{what}: {}; we take {} times that",
                time(floor),
                number(found.median_ns / floor)
            ),
            _ => format!("{what}: not measured"),
        };
        self
    }

    /// How fast the machine was meanwhile, in ns, beside what the goal was set with.
    fn speed(mut self, found: Option<&Metrics>) -> Self {
        if let Some(found) = found {
            self.floor += &format!(
                "; yardstick {}, {} where the goal was set",
                time(found.median_ns),
                time(ring::YARDSTICK_GOAL_NS)
            );
        }
        self
    }
}

/// The table.
pub fn table(documents: &Documents) -> String {
    let mut text = String::from(
        "## Goals\n\n| what | goal | measured | | floor: what nothing can be better than, same run |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for goal in all(documents) {
        if documents.0.len() == 1 && goal.measured.is_none() {
            // Another suite's: a report on one of them has its own only.
            continue;
        }
        let (measured, verdict) = match goal.measured {
            Some((measured, true)) => (measured, "met"),
            Some((measured, false)) => (measured, "**missed**"),
            None => ("not measured".to_owned(), ""),
        };
        text += &format!(
            "| {} | {} | {measured} | {verdict} | {} |\n",
            goal.what, goal.goal, goal.floor
        );
    }
    text
}

fn all(documents: &Documents) -> Vec<Goal> {
    let mut goals = Vec::new();
    starting(documents, &mut goals);
    serving(documents, &mut goals);
    rings(documents, &mut goals);
    holding(documents, &mut goals);
    reaching(documents, &mut goals);
    meeting(documents, &mut goals);
    chaining(documents, &mut goals);
    looking(documents, &mut goals);
    measuring(documents, &mut goals);
    goals
}

/// The least HTTP server with 1 KB at one connection.
fn least_http(documents: &Documents) -> Option<&Metrics> {
    documents.timed("warm", &warm::category("1 KB", 1), warm::FLOOR)
}

fn serving(documents: &Documents, goals: &mut Vec<Goal>) {
    let one = warm::category("1 KB", 1);
    let (ours, axum) = (
        documents.timed("warm", &one, warm::HEARTH),
        documents.timed("warm", &one, warm::AXUM),
    );
    let floor = least_http(documents).map(|floor| floor.median_ns);
    let mut goal = Goal::new(
        "warm invoke, Python, 1 KB, 1 connection",
        "p50 ≤ 1.6 × bare axum",
    )
    .floor("the least HTTP echo over loopback, p50", ours, floor);
    goal.measured = ours.zip(axum).map(|(ours, axum)| {
        let ratio = ours.median_ns / axum.median_ns;
        let (ours, axum) = (time(ours.median_ns), time(axum.median_ns));
        (
            format!("{ours} / {axum} = {} ×", number(ratio)),
            ratio <= 1.6,
        )
    });
    goals.push(goal);

    let sixteen = warm::category("1 KB", 16);
    let mut goal = Goal::new(
        "warm invoke, Python, 1 KB, 16 connections",
        "≥ 25,000/s, p99 ≤ 2 ms, history complete",
    );
    let rate = |who: &str| documents.value("warm", &sixteen, who);
    let rows = format!("{}: invocations in the history", warm::HEARTH);
    let history = documents.value("warm", warm::HISTORY_ROWS, &rows);
    if let (Some(ours), Some(found), Some(history)) = (
        rate(warm::HEARTH),
        documents.timed("warm", &sixteen, warm::HEARTH),
        history,
    ) {
        let p99 = percentile(found.p99_ns);
        let text = format!(
            "{}/s, p99 {p99}, {} % in the history",
            number(ours),
            number(history)
        );
        let good = ours >= 25_000.0 && at_most(found.p99_ns, 2.0 * MS) && history >= 100.0;
        goal.measured = Some((text, good));
        if let Some(floor) = rate(warm::FLOOR) {
            goal.floor = format!(
                "the least HTTP echo: {}/s; we reach {} % of that",
                number(floor),
                number(100.0 * ours / floor)
            );
        }
    }
    goals.push(goal);
}

fn rings(documents: &Documents, goals: &mut Vec<Goal>) {
    for (size, limit) in [
        ("64 B", 40.0),
        ("1 KB", 100.0),
        ("4 KB", 320.0),
        ("16 KB", 1200.0),
        ("64 KB", 4700.0),
    ] {
        let found = documents.timed("ring", ring::ROUND_TRIP, size);
        let floor = documents.timed("ring", ring::COPIES, size);
        goals.push(
            Goal::new(
                format!("ring, one thread, {size}, CRC on both sides"),
                format!("p50 ≤ {}", time(limit)),
            )
            .limits(found, limit, None)
            .floor("two copies, p50", found, floor.map(|floor| floor.median_ns))
            .speed(documents.timed("ring", ring::YARDSTICK, size)),
        );
    }
    let found = documents.timed("ring", transports::TWO_PROCESSES, transports::RING_SPINNING);
    let line = documents.timed("ring", transports::TWO_PROCESSES, transports::CACHE_LINE);
    goals.push(
        Goal::new("ring, two spinning processes, echo of 1 KB", "p50 ≤ 350 ns")
            .limits(found, 350.0, None)
            .floor(
                "one cache line there and back, p50",
                found,
                line.map(|line| line.median_ns),
            )
            .speed(documents.timed("ring", ring::YARDSTICK, transports::RING_SPINNING)),
    );
}

/// The slowest of the console's pages.
fn looking(documents: &Documents, goals: &mut Vec<Goal>) {
    let mut goal = Goal::new(
        "each page of the console, 1,000 functions, 10 million invocations",
        "p95 ≤ 50 ms",
    );
    goal.measured = documents.slowest("console").and_then(|slowest| {
        let p95 = slowest.metrics.p95_ns?;
        let text = format!("slowest: {}, p95 {}", slowest.name, time(p95));
        Some((text, p95 <= 50.0 * MS))
    });
    goals.push(goal);
}
