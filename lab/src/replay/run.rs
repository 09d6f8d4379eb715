//! A replay against a Hearth server.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use super::network::Network;
use super::parts::parts;
use super::sending::{Execution, Part, Sent};
use super::shadow::Shadow;
use super::traffic::{DURATION_MAX, SPEED_MAX, Traffic};
use super::variant::Variant;
use crate::duet::DuetError;
use crate::duet::benchmark::{Benchmark, benchmarks};
use crate::duet::report::{Report, Stage};
use crate::duet::run::{Progress, WIDTH, aside};
use crate::duet::unit::Unit;
use crate::load::Sketch;
use crate::platform::client::{Client, ClientError};
use crate::platform::hearth::{Hearth, HearthError};
use crate::run::environment::{Environment, Steal};
use crate::run::noise::yardstick;
use crate::statistics::Bootstrap;

/// How long copies stay beyond the last arrival, should nobody remove them: for what is under way then, and for deploying them.
const BEYOND: Duration = Duration::from_mins(15);

/// How to replay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The first version.
    pub first: Variant,
    /// The second one, or the first with other settings; the same for an A/A experiment.
    pub second: Variant,
    /// What all copies may reach.
    pub network: Network,
    /// Factor by which time is scaled: 10 sends ten minutes in one.
    pub speed: f64,
    /// What is measured of each.
    pub stage: Stage,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// Begins the names of copies.
    pub prefix: String,
}

/// What was replayed, and how well.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// Where the arrivals are from.
    pub source: String,
    /// How many there are.
    pub arrivals: usize,
    /// In how many parts, each of which had copies of its own.
    pub parts: usize,
    /// Those whose own event was kept; others were sent with one of a like size.
    pub own_events: usize,
    /// Those that were left out because too many were under way.
    pub left_out: usize,
    /// Factor by which time was scaled.
    pub speed: f64,
    /// From the first arrival to the last as recorded, in seconds.
    pub span_s: f64,
    /// How late arrivals were sent: the 99th percentile, in ns.
    pub late_p99_ns: f64,
    /// What all copies could reach: there, they may have had effects.
    pub network: Network,
    /// Secrets that the copies lack.
    pub lacks: Vec<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A copy cannot be deployed.
    #[error(transparent)]
    Hearth(#[from] HearthError),
    /// The history has none.
    #[error("the history has no invocation of {0} in that time")]
    Empty(String),
    /// The history has too many.
    #[error("more than {max} invocations: choose a shorter time", max = super::traffic::ARRIVALS_MAX)]
    TooMany,
    /// A setting makes no sense.
    #[error("{0}: {1}")]
    Setting(&'static str, String),
    /// Too many executions failed: so many, of so many, the last one for this reason.
    #[error("given up: {0} of {1} executions failed, the last one: {2}")]
    GivenUp(usize, usize, String),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Copies could not be removed.
    #[error("left behind: {0}")]
    LeftBehind(String),
}

impl From<ReplayError> for DuetError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Client(error) => Self::Client(error),
            ReplayError::Cancelled => Self::Cancelled,
            other => Self::Setting("replay", other.to_string()),
        }
    }
}

/// Replays traffic with copies of both versions, which are removed in any case.
///
/// # Errors
/// Settings that make no sense, a copy that cannot be deployed, or a cancel. Executions that fail are counted instead.
pub async fn run(
    client: &Client,
    settings: &Settings,
    traffic: &Traffic,
    mut cancelled: watch::Receiver<bool>,
    tell: impl Fn(Progress),
) -> Result<Report, ReplayError> {
    check(settings, traffic)?;
    let hearth = Hearth::new(client.clone());
    let node = hearth.node().await?;
    let work = measure(&hearth, settings, traffic, node, tell);
    let done = tokio::select! {
        done = work => done,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => Err(ReplayError::Cancelled),
    };
    match (done, hearth.remove_all().await) {
        (done, Ok(())) => done,
        (Ok(report), Err(left)) => Ok(report.leaving(left)),
        (Err(ReplayError::Cancelled), Err(left)) => Err(ReplayError::LeftBehind(left)),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Whether a replay can be carried out.
///
/// # Errors
/// The first setting that makes no sense.
pub fn check(settings: &Settings, traffic: &Traffic) -> Result<(), ReplayError> {
    if !(1.0..=SPEED_MAX).contains(&settings.speed) {
        let rule = format!("1 to {SPEED_MAX}");
        return Err(ReplayError::Setting("speed", rule));
    }
    for variant in [&settings.first, &settings.second] {
        let checked = variant.changes.check();
        checked.map_err(|rule| ReplayError::Setting("settings", rule))?;
    }
    let network = settings.network.check();
    network.map_err(|rule| ReplayError::Setting("network", rule))?;
    if !(0.5..1.0).contains(&settings.bootstrap.confidence) {
        let rule = "from 0.5 to below 1, such as 0.99".to_owned();
        return Err(ReplayError::Setting("confidence", rule));
    }
    if traffic.span().div_f64(settings.speed) > DURATION_MAX {
        let rule = format!(
            "takes longer than {} h: a higher one, or a shorter time",
            DURATION_MAX.as_secs() / 3600
        );
        return Err(ReplayError::Setting("speed", rule));
    }
    Ok(())
}

/// Sends all arrivals, part by part, and keeps what came of them.
async fn send_all(
    execution: &Execution<'_>,
    shadow: &mut Shadow<'_>,
    seed: u64,
    tell: impl Fn(Progress),
) -> Result<Sent, ReplayError> {
    let total = execution.traffic.arrivals.len();
    let parts = parts(total);
    let mut sent = Sent::default();
    let mut random = fastrand::Rng::with_seed(seed);
    // What copies and waiting for the last answers took.
    let mut between = Duration::ZERO;
    for (number, arrivals) in parts.iter().cloned().enumerate() {
        let began = Instant::now();
        let takes = execution.takes(&arrivals);
        let copies = shadow.copy(number + 1, takes + BEYOND).await?;
        // So that a copy that never works says so by its faults, and the part's first arrival meets instances.
        for copy in &copies {
            let _ = execution.run(copy, arrivals.start).await;
        }
        let part = Part {
            number,
            arrivals,
            copies,
        };
        let left = |done: usize| {
            let rest = execution.takes(&(done..total));
            let mean = between.checked_div(number as u32);
            rest + mean.unwrap_or_default() * (parts.len() - number) as u32
        };
        let tell = |done: usize, durations: &Sketch| {
            tell(Progress {
                done,
                total,
                left: Some(left(done)),
                durations: durations.clone(),
            });
        };
        execution.send(&part, &mut sent, &mut random, tell).await;
        shadow.remove(&part.copies).await;
        between += began.elapsed().saturating_sub(takes);
        if let Some((failed, all, reason)) = sent.given_up() {
            return Err(ReplayError::GivenUp(failed, all, reason));
        }
    }
    tell(Progress {
        done: total,
        total,
        left: Some(Duration::ZERO),
        durations: sent.durations.clone(),
    });
    Ok(sent)
}

async fn measure(
    hearth: &Hearth,
    settings: &Settings,
    traffic: &Traffic,
    node: serde_json::Value,
    tell: impl Fn(Progress),
) -> Result<Report, ReplayError> {
    let execution = Execution {
        client: hearth.client(),
        stage: settings.stage,
        traffic,
        speed: settings.speed,
    };
    let mut shadow = Shadow::new(hearth, settings).await?;
    let (began_at, steal, speed) = (Timestamp::now(), Steal::read(), yardstick());
    let sent = send_all(&execution, &mut shadow, settings.seed, tell).await?;
    let parts = parts(traffic.arrivals.len()).len();
    let steal_share = steal
        .zip(Steal::read())
        .and_then(|(before, after)| after.share_since(before));
    let yardstick_ns = [speed, yardstick()];
    let replayed = Replayed {
        source: traffic.source.clone(),
        arrivals: traffic.arrivals.len(),
        parts,
        own_events: traffic.own_events,
        left_out: sent.left_out,
        speed: settings.speed,
        span_s: traffic.span().as_secs_f64(),
        late_p99_ns: sent.late_p99(),
        network: settings.network.clone(),
        lacks: shadow.lacks,
    };
    let replays = vec![("replayed".to_owned(), sent.trials)];
    let mut recorded = Vec::new();
    if !sent.beside_recorded.repeats.is_empty() {
        recorded.push(("recorded".to_owned(), sent.beside_recorded));
    }
    let bootstrap = settings.bootstrap;
    let benchmarks = aside(move || {
        let judged = |all| benchmarks(all, Unit::Call, &bootstrap, WIDTH, 1);
        let mut all = judged(replays);
        all.extend(judged(recorded).into_iter().map(Benchmark::with_history));
        all
    })
    .await;
    Ok(Report {
        lab_version: env!("CARGO_PKG_VERSION"),
        began_at,
        ended_at: Timestamp::now(),
        first: shadow.first.to_string(),
        second: shadow.second.to_string(),
        stage: Some(settings.stage),
        calls: parts,
        repeats: traffic.arrivals.len().div_ceil(parts.max(1)),
        invocations: 1,
        seed: settings.seed,
        bootstrap,
        benchmarks,
        against: None,
        replayed: Some(replayed),
        suite: None,
        left_behind: None,
        noise: None,
        steal_share,
        environment: Environment::read(),
        width: WIDTH,
        node,
    }
    .certified(yardstick_ns))
}
