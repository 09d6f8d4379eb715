//! A replay against a Hearth server.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use super::sending::Execution;
use super::shadow;
use super::traffic::{DURATION_MAX, SPEED_MAX, Traffic};
use super::variant::Variant;
use crate::duet::DuetError;
use crate::duet::order::Role;
use crate::duet::report::{Report, Stage, benchmarks};
use crate::duet::run::{Progress, aside};
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
    /// Factor by which time is scaled: 10 sends ten minutes in one.
    pub speed: f64,
    /// What is measured of each.
    pub stage: Stage,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// Begins the names of both copies.
    pub prefix: String,
}

/// What was replayed, and how well.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// Where the arrivals are from.
    pub source: String,
    /// How many there are.
    pub arrivals: usize,
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
    let names = ["first", "second"].map(|which| format!("{}-{which}", settings.prefix));
    let work = async {
        let lifetime = traffic.span().div_f64(settings.speed) + BEYOND;
        let mut lacks = shadow::deploy(&hearth, &names[0], &settings.first, lifetime).await?;
        lacks.extend(shadow::deploy(&hearth, &names[1], &settings.second, lifetime).await?);
        lacks.sort();
        lacks.dedup();
        measure(client, settings, traffic, &names, lacks, node, tell).await
    };
    let done = tokio::select! {
        done = work => done,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => Err(ReplayError::Cancelled),
    };
    match hearth.remove_all().await {
        Ok(()) => done,
        Err(left) => done.and(Err(ReplayError::LeftBehind(left))),
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

async fn measure(
    client: &Client,
    settings: &Settings,
    traffic: &Traffic,
    names: &[String; 2],
    lacks: Vec<String>,
    node: serde_json::Value,
    tell: impl Fn(Progress),
) -> Result<Report, ReplayError> {
    let execution = Execution {
        client,
        stage: settings.stage,
        traffic,
        paths: names
            .each_ref()
            .map(|name| format!("/api/v1/functions/{name}/invoke")),
    };
    // So that a copy that never works says so by its faults, and the first arrival meets instances.
    for role in [Role::First, Role::Second] {
        let _ = execution.run(role, traffic.arrivals[0].event).await;
    }
    let (began_at, steal, speed) = (Timestamp::now(), Steal::read(), yardstick());
    let sent = execution.send_all(settings, tell).await;
    let steal_share = steal
        .zip(Steal::read())
        .and_then(|(before, after)| after.share_since(before));
    let yardstick_ns = [speed, yardstick()];
    let replayed = Replayed {
        source: traffic.source.clone(),
        arrivals: traffic.arrivals.len(),
        own_events: traffic.own_events,
        left_out: sent.left_out,
        speed: settings.speed,
        span_s: traffic.span().as_secs_f64(),
        late_p99_ns: sent.late_p99(),
        lacks,
    };
    let mut named = vec![("replayed".to_owned(), sent.trials)];
    if !sent.beside_recorded.repeats.is_empty() {
        named.push(("recorded".to_owned(), sent.beside_recorded));
    }
    let bootstrap = settings.bootstrap;
    let step = named[0].1.repeats.len() / 20;
    let benchmarks = aside(move || benchmarks(named, &bootstrap, 0.02, step.max(1))).await;
    Ok(Report {
        lab_version: env!("CARGO_PKG_VERSION"),
        began_at,
        ended_at: Timestamp::now(),
        first: settings.first.to_string(),
        second: settings.second.to_string(),
        stage: Some(settings.stage),
        calls: traffic.arrivals.len(),
        repeats: 1,
        invocations: 1,
        seed: settings.seed,
        bootstrap,
        benchmarks,
        against: None,
        replayed: Some(replayed),
        suite: None,
        noise: None,
        steal_share,
        environment: Environment::read(),
        node,
    }
    .certified(yardstick_ns))
}
