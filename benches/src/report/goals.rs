//! What Hearth is meant to reach, what was measured, and what nothing could be better than.

use super::Documents;
use super::format::{number, percentile, time};
use crate::baselines::Baseline;
use crate::results::Metrics;
use crate::server::Runtime;
use crate::suites::{bursts, busy, memory, ring, slow, starts, transports, warm};

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
    looking(documents, &mut goals);
    goals
}

fn starting(documents: &Documents, goals: &mut Vec<Goal>) {
    let loopback = least_http(documents);
    for (runtime, p50, p99, first) in [
        (Runtime::Python, 0.9, 2.0, 1.5),
        (Runtime::Node, 2.0, 4.0, 3.0),
    ] {
        let name = runtime.name();
        let start = documents.timed("starts", starts::STARTS, &starts::fork_to_ready(runtime));
        let floor = documents
            .timed("starts", starts::STARTS, &starts::fork_floor(runtime))
            .map(|floor| floor.median_ns);
        goals.push(
            Goal::new(
                format!("{name}: `fork()` to READY"),
                format!("p50 ≤ {p50} ms, p99 ≤ {p99} ms"),
            )
            .limits(start, p50 * MS, Some(p99 * MS))
            .floor("C `fork()` of the same process, p50", start, floor),
        );
        let request = documents.timed("starts", starts::FIRST, &starts::first(runtime));
        let both = floor
            .zip(loopback)
            .map(|(fork, loopback)| fork + loopback.median_ns);
        goals.push(
            Goal::new(
                format!("{name}: first HTTP request without an instance"),
                format!("p50 ≤ {first} ms"),
            )
            .limits(request, first * MS, None)
            .floor("that and the least HTTP echo, p50", request, both),
        );
        let restored = starts::restored_with_threads(runtime);
        let restored = documents.timed("starts", starts::WITH_THREADS, &restored);
        goals.push(
            Goal::new(
                format!("{name}: first HTTP request, import with threads running, restored (a sandbox is kept made ahead)"),
                "p50 ≤ 25 ms",
            )
            .limits(restored, 25.0 * MS, None),
        );
    }
    let restore = documents.timed("starts", starts::RESTORES, starts::RESTORE_TO_READY);
    let mut goal = Goal::new(
        "CRIU restore of a Python template, whole sandbox (one is kept made ahead), to READY",
        "p50 ≤ 15 ms, p99 ≤ 30 ms",
    )
    .limits(restore, 15.0 * MS, Some(30.0 * MS));
    goal.floor = "CRIU restoring a static C program: 6 to 7 ms, not measured in this run".into();
    if let Some(anew) = documents.timed("starts", starts::RESTORES, starts::RESTORE_ANEW) {
        let anew = anew.median_ns / MS;
        goal.floor = format!("{}; with nothing made ahead {anew:.1} ms", goal.floor);
    }
    goals.push(goal);
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

fn holding(documents: &Documents, goals: &mut Vec<Goal>) {
    let size = bursts::title(100);
    let burst = |cold| {
        let category = bursts::category(Runtime::Python, cold, 0);
        documents.timed("bursts", &category, &size)
    };
    let mut goal = Goal::new(
        "burst of 100 cold, Python, run time 0",
        "p99 ≤ 100 ms, tail-to-median ≤ 3",
    )
    .floor(
        "the same burst with an idle instance for each, p50",
        burst(true),
        burst(false).map(|warm| warm.median_ns),
    );
    goal.measured = burst(true).and_then(|found| {
        let p99 = found.p99_ns?;
        let ratio = p99 / found.median_ns;
        let text = format!("p99 {}, ratio {}", time(p99), number(ratio));
        Some((text, p99 <= 100.0 * MS && ratio <= 3.0))
    });
    goals.push(goal);
    goals.push(innocent(documents));
    after_deploys(documents, goals);
    among_others(documents, goals);
    for (runtime, limit) in [(Runtime::Python, 2.0), (Runtime::Node, 8.0)] {
        let name = runtime.name();
        let mut goal = Goal::new(
            format!("{name}: further idle instance"),
            format!("≤ {limit} MiB PSS, no CPU"),
        );
        let value = |what: &str| documents.value("memory", name, what);
        if let (Some(extra), Some(cpu), Some(seconds)) = (
            value(memory::EXTRA),
            value(memory::CPU),
            value(memory::OBSERVED),
        ) {
            let text = format!(
                "{} MiB; all together {} ms of CPU in {} s",
                number(extra),
                number(cpu),
                number(seconds)
            );
            // A hundredth of a percent of one core is what the clock of the kernel may do on its own.
            goal.measured = Some((text, extra <= limit && cpu <= seconds / 10.0));
        }
        goal.floor = "the pages that a fork must write, and its page tables (not in PSS)".into();
        goals.push(goal);
    }
}

/// What slow clients cost one that is not.
fn innocent(documents: &Documents) -> Goal {
    let p99 = |who: &str| documents.timed("slow", slow::CATEGORY, who)?.p99_ns;
    let mut goal = Goal::new(
        "warm invoke, 1 connection, beside 500 slow clients",
        "p99 ≤ 3 × that alone",
    );
    goal.measured = p99(slow::BESIDE)
        .zip(p99(slow::ALONE))
        .map(|(beside, alone)| {
            let ratio = beside / alone;
            let text = format!("{} / {} = {} ×", time(beside), time(alone), number(ratio));
            (text, ratio <= 3.0)
        });
    goal.floor = "the same alone".into();
    goal
}

/// What making images and pre-forked instances costs the first requests after a deploy.
fn after_deploys(documents: &Documents, goals: &mut Vec<Goal>) {
    let p90 = |name| documents.value("starts", starts::AFTER_DEPLOY, &starts::p90_of(name));
    let mut goal = Goal::new(
        "python3: first HTTP request within a second of its deploy",
        "p90 ≤ 2 × the same half a minute later",
    );
    goal.measured = p90(starts::AT_ONCE)
        .zip(p90(starts::HALF_A_MINUTE))
        .map(|(soon, later)| (beside(soon * MS, later * MS), soon <= 2.0 * later));
    goals.push(goal);
}

/// What other processes cost on a busy host, ours beside what people know.
fn among_others(documents: &Documents, goals: &mut Vec<Goal>) {
    let echo = busy::warm(busy::Work::Echo, busy::Host::Busy);
    let p99 = |category: &str, who: &str| documents.timed("busy", category, who)?.p99_ns;
    let uvicorn = p99(&echo, Baseline::Uvicorn.name());
    for runtime in Runtime::ALL {
        let mut goal = Goal::new(
            format!("{}: warm invoke on a busy host", runtime.name()),
            "p99 ≤ 1.5 × uvicorn's",
        );
        goal.measured = p99(&echo, &busy::hearth(runtime))
            .zip(uvicorn)
            .map(|(ours, theirs)| (beside(ours, theirs), ours <= 1.5 * theirs));
        goals.push(goal);
    }
    for host in [busy::Host::Quiet, busy::Host::Busy] {
        let category = busy::reads(host);
        let found = |who: &str| documents.timed("busy", &category, who);
        let mut goal = Goal::new(
            format!("node: first file that an instance reads, {}", host.name()),
            "p50 and p99 ≤ 1.5 × those of a plain Node.js",
        );
        goal.measured = found(busy::FIRST)
            .zip(found(busy::PLAIN))
            .and_then(|(ours, plain)| {
                let (ours99, plain99) = (ours.p99_ns?, plain.p99_ns?);
                let text = format!(
                    "p50 {}; p99 {}",
                    beside(ours.median_ns, plain.median_ns),
                    beside(ours99, plain99)
                );
                let good = ours.median_ns <= 1.5 * plain.median_ns && ours99 <= 1.5 * plain99;
                Some((text, good))
            });
        goals.push(goal);
    }
}

/// Ours beside theirs.
fn beside(ours: f64, theirs: f64) -> String {
    let ratio = number(ours / theirs);
    format!("{} / {} = {ratio} ×", time(ours), time(theirs))
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
