//! A duet against a Hearth server.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{oneshot, watch};

use super::benchmark::benchmarks;
use super::events::Event;
use super::execution::{Execution, numbered};
use super::order::rounds;
use super::report::{Report, Stage};
use super::subject::Subject;
use super::trials::{self, Trials, Turn};
use super::unit::Unit;
use crate::load::Sketch;
use crate::platform::client::{Client, ClientError};
use crate::platform::hearth::Hearth;
use crate::run::environment::{Environment, Steal};
use crate::run::noise::yardstick;
use crate::statistics::Bootstrap;

/// Most trials of a duet, of all benchmarks together.
const TRIALS_MAX: usize = 1_000_000;

/// Most samples that are drawn for one interval of each benchmark, all together: some minutes of one processor for a whole report.
const DRAWN_MAX: usize = 1_000_000_000;

/// How narrow an interval is wanted unless told otherwise: 2 % from end to end.
pub const WIDTH: f64 = 0.02;

/// How to compare.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The first version.
    pub first: Subject,
    /// The second version; the same for an A/A experiment.
    pub second: Subject,
    /// The benchmarks.
    pub events: Vec<Event>,
    /// Calls of each benchmark.
    pub calls: usize,
    /// Repeats of each call.
    pub repeats: usize,
    /// Invocations of each execution, whose mean counts.
    pub invocations: usize,
    /// What is measured of each.
    pub stage: Stage,
    /// Whether the first version runs once more in each repeat.
    pub with_control: bool,
    /// Seed of the order.
    pub seed: u64,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// How narrow an interval is wanted.
    pub width: f64,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum DuetError {
    /// A setting makes no sense.
    #[error("{0}: {1}")]
    Setting(&'static str, String),
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// How far a duet is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Parts that are over: trials of a duet, calls of a suite.
    pub done: usize,
    /// Parts in all.
    pub total: usize,
    /// Time left, estimated; none at first.
    pub left: Option<Duration>,
    /// Durations of all executions so far, both versions'.
    pub durations: Sketch,
}

impl Progress {
    /// Of what has no durations, and nobody knows how long it takes.
    pub(crate) fn steps(done: usize, total: usize) -> Self {
        Self {
            done,
            total,
            left: None,
            durations: Sketch::default(),
        }
    }
}

impl Settings {
    /// Whether they can be carried out.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), DuetError> {
        let refuse = |setting, rule: String| Err(DuetError::Setting(setting, rule));
        for (setting, value, most) in [
            ("invocations", self.invocations, 10_000),
            ("events", self.events.len(), super::events::EVENTS_MAX),
        ] {
            if !(1..=most).contains(&value) {
                return refuse(setting, format!("{value} is not within 1 and {most}"));
            }
        }
        check(
            self.calls,
            self.repeats,
            self.events.len(),
            &self.bootstrap,
            self.width,
        )
    }
}

/// Whether so many benchmarks can be compared so.
///
/// # Errors
/// The first setting that makes no sense.
pub(crate) fn check(
    calls: usize,
    repeats: usize,
    benchmarks: usize,
    bootstrap: &Bootstrap,
    width: f64,
) -> Result<(), DuetError> {
    let refuse = |setting, rule: String| Err(DuetError::Setting(setting, rule));
    for (setting, value, most) in [
        ("calls", calls, 10_000),
        ("repeats", repeats, 1_000),
        ("resamples", bootstrap.resamples, 1_000_000),
    ] {
        if !(1..=most).contains(&value) {
            return refuse(setting, format!("{value} is not within 1 and {most}"));
        }
    }
    let trials = calls * repeats * benchmarks;
    if trials > TRIALS_MAX {
        return refuse(
            "calls",
            format!("with repeats and {benchmarks} benchmarks more than {TRIALS_MAX} trials"),
        );
    }
    if trials.saturating_mul(bootstrap.resamples) > DRAWN_MAX {
        let most = DRAWN_MAX / trials;
        return refuse(
            "resamples",
            format!("at most {most} with {trials} trials in all"),
        );
    }
    if !(0.5..1.0).contains(&bootstrap.confidence) {
        return refuse("confidence", "from 0.5 to below 1, such as 0.99".to_owned());
    }
    if width.is_nan() || width <= 0.0 {
        return refuse("width", "more than 0, such as 0.02".to_owned());
    }
    Ok(())
}

/// Compares both versions.
///
/// # Errors
/// Settings that make no sense, a server that does not know the functions, or a cancel. Executions that fail are counted instead.
pub async fn run(
    client: &Client,
    settings: &Settings,
    mut cancelled: watch::Receiver<bool>,
    tell: impl Fn(Progress),
) -> Result<Report, DuetError> {
    settings.check()?;
    let node = Hearth::new(client.clone()).node().await?;
    let first = numbered(client, &settings.first).await?;
    let second = numbered(client, &settings.second).await?;
    let rounds = rounds(
        settings.events.len(),
        settings.calls * settings.repeats,
        settings.with_control,
        settings.seed,
    );
    let total = rounds.len() * settings.events.len();
    let began_at = Timestamp::now();
    let began = Instant::now();
    let (steal, speed) = (Steal::read(), yardstick());
    let execution = Execution {
        client,
        settings,
        first: &first,
        second: &second,
        // Others' duets of the same versions have other numbers.
        templates_from: fastrand::u32(1..u32::MAX / 2),
        processors: node["cpus"].as_u64().map_or(1, |count| count.max(1) as u32),
    };
    let prepare = async |turn: Turn| {
        // Boots the template, starts an instance and warms it up. If this fails, so does what is measured, which says why.
        let invocations = if turn.is_new { settings.invocations } else { 1 };
        let _ = execution.run(turn, invocations).await;
    };
    let execute = async |turn| execution.run(turn, settings.invocations).await;
    let tell = |done: usize, durations: &Sketch| {
        let each = began.elapsed().checked_div(done as u32);
        tell(Progress {
            done,
            total,
            left: each.map(|each| each * (total - done) as u32),
            durations: durations.clone(),
        });
    };
    let running = trials::run(&rounds, settings.repeats, prepare, execute, tell);
    let all = tokio::select! {
        all = running => all,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => return Err(DuetError::Cancelled),
    };
    let steal_share = steal
        .zip(Steal::read())
        .and_then(|(before, after)| after.share_since(before));
    let yardstick_ns = [speed, yardstick()];
    let names = settings.events.iter().map(|event| event.name.clone());
    let named: Vec<(String, Trials)> = names.zip(all).collect();
    let (bootstrap, width, step) = (settings.bootstrap, settings.width, settings.repeats);
    let benchmarks = tokio::select! {
        made = aside(move || benchmarks(named, Unit::Trial, &bootstrap, width, step)) => made,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => return Err(DuetError::Cancelled),
    };
    Ok(Report {
        lab_version: env!("CARGO_PKG_VERSION"),
        began_at,
        ended_at: Timestamp::now(),
        first: first.to_string(),
        second: second.to_string(),
        stage: Some(settings.stage),
        calls: settings.calls,
        repeats: settings.repeats,
        invocations: settings.invocations,
        seed: settings.seed,
        bootstrap: settings.bootstrap,
        benchmarks,
        against: None,
        replayed: None,
        suite: None,
        left_behind: None,
        noise: None,
        steal_share,
        environment: Environment::read(),
        width,
        node,
    }
    .certified(yardstick_ns))
}

/// Computes on a thread of its own, so that an agent goes on reporting. Nobody waits for it when this is dropped.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::spawn(move || drop(sender.send(work())));
    match receiver.await {
        Ok(done) => done,
        Err(_) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("it sends before it ends"),
        },
    }
}
