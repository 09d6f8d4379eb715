//! The study against a Hearth server.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::join::row;
use super::report::{Report, Row};
use super::settings::{OverheadError, Progress, Settings, Target};
use super::workloads::event;
use crate::load::process::Generator;
use crate::load::{Burst, Ended, Plan, Request, Round, Sample, Schedule, Sketch, Trust};
use crate::platform::client::Client;
use crate::platform::hearth::{Hearth, HearthError};
use crate::platform::package::archive;
use crate::run::environment::Environment;
use crate::run::noise::Watched;

/// Requests to each function before its warm samples: they start an instance, and let its interpreter warm up.
const WARM_UP: usize = 20;

/// After so many seconds an idle instance ends, if cold samples are wanted.
const IDLE_S: u32 = 1;

/// Pause before each round of cold samples, in ms, in which instances end: two seconds late if there were always requests.
const PAUSE_MS: u64 = 4_000;

/// Time limit of a request, in ms.
const TIMEOUT_MS: u64 = 30_000;

/// As much of an answer as has the invocation's id and a number.
const CAPTURE: usize = 256;

/// One request in so many may fail.
const FAULTS_SHARE: u64 = 10;

/// Measures with functions of its own, which are removed in any case.
///
/// # Errors
/// As [`OverheadError`] has them. Single requests that fail are counted instead.
pub async fn run(
    client: &Client,
    generator: &Generator,
    settings: &Settings,
    mut cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Report, OverheadError> {
    settings.check()?;
    let hearth = Hearth::new(client.clone());
    let node = hearth.node().await?;
    let study = Study {
        hearth: &hearth,
        generator,
        settings,
        targets: settings.targets(),
        tell,
    };
    let done = tokio::select! {
        done = study.measure(node) => done,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => Err(OverheadError::Cancelled),
    };
    match (done, hearth.remove_all().await) {
        (done, Ok(())) => done,
        (Ok(report), Err(left)) => Ok(Report {
            left_behind: Some(left),
            ..report
        }),
        (Err(OverheadError::Cancelled), Err(left)) => Err(OverheadError::LeftBehind(left)),
        (Err(error), Err(_)) => Err(error),
    }
}

struct Study<'a> {
    hearth: &'a Hearth,
    generator: &'a Generator,
    settings: &'a Settings,
    targets: Vec<Target>,
    tell: &'a (dyn Fn(Progress) + Sync),
}

impl Study<'_> {
    async fn measure(&self, node: Value) -> Result<Report, OverheadError> {
        for target in &self.targets {
            self.progress(
                format!("{} is deployed", target.name),
                0,
                0,
                None,
                Sketch::default(),
            );
            self.deploy(target).await?;
        }
        let (began_at, began, watched) = (Timestamp::now(), Instant::now(), Watched::begin());
        let (mut rows, mut left_out) = (Vec::new(), Vec::new());
        let mut keep = |row: Result<Row, String>| match row {
            Ok(row) => rows.push(row),
            Err(reason) => left_out.push(reason),
        };
        let each = (WARM_UP + self.settings.samples) as u64;
        for (number, target) in self.targets.iter().enumerate() {
            let plan = self.plan(
                std::slice::from_ref(target),
                Schedule::Closed {
                    duration_ms: None,
                    count: Some(each),
                },
            );
            let before = number as u64 * each;
            let tell = |progress: crate::load::drive::Progress| {
                let done = before + progress.done;
                let warm_left = (self.targets.len() as u64 * each).saturating_sub(done);
                let one = began.elapsed().as_secs_f64() / done.max(1) as f64;
                let left = one * warm_left as f64 + self.pauses(0);
                let what = format!(
                    "{} in {}: requests",
                    target.workload.name, target.runtime.name
                );
                self.progress(what, done, progress.faults, Some(left), progress.latencies);
            };
            let samples = self.send(&plan, &target.name, tell).await?;
            let counted = samples.get(WARM_UP..).unwrap_or_default();
            keep(
                row(
                    self.hearth.client(),
                    target,
                    false,
                    &counted.iter().collect::<Vec<_>>(),
                )
                .await?,
            );
        }
        if self.settings.cold > 0 {
            let samples = self.cold().await?;
            for (number, target) in self.targets.iter().enumerate() {
                // The first round opens the connection, and meets the warm samples' instances.
                let own = |sample: &&Sample| {
                    sample.request as usize == number && sample.burst as usize >= self.targets.len()
                };
                let own: Vec<&Sample> = samples.iter().filter(own).collect();
                keep(row(self.hearth.client(), target, true, &own).await?);
            }
        }
        let environment = Environment::read();
        Ok(Report {
            lab_version: env!("CARGO_PKG_VERSION"),
            began_at,
            ended_at: Timestamp::now(),
            samples: self.settings.samples,
            cold: self.settings.cold,
            event: event(),
            rows,
            left_out,
            left_behind: None,
            noise: watched.end(&environment, None),
            environment,
            node,
        })
    }

    async fn deploy(&self, target: &Target) -> Result<(), OverheadError> {
        let mut settings = json!({
            "name": target.name,
            "runtime": target.runtime.name,
            "handler": format!("main.{}", target.workload.name),
            "memory_mb": 128,
            "max_concurrency": 1,
            "timeout_ms": TIMEOUT_MS,
        });
        if self.settings.cold > 0 {
            settings["idle_timeout_s"] = IDLE_S.into();
        }
        let archive = archive(target.runtime.file, target.runtime.source, 0.0)
            .map_err(|error| HearthError::Archive(error.to_string()))?;
        let deployed = self.hearth.deploy_code(&target.name, &settings, &archive);
        Ok(deployed.await?)
    }

    /// One request to each function in turn, after a pause in which their instances end.
    async fn cold(&self) -> Result<Vec<Sample>, OverheadError> {
        let bursts = (0..self.targets.len()).map(|request| Burst { request, size: 1 });
        let bursts: Vec<Burst> = bursts.collect();
        let rounds = (0..=self.settings.cold).map(|_| Round {
            pause_ms: PAUSE_MS,
            bursts: bursts.clone(),
        });
        let rounds = rounds.collect();
        let plan = self.plan(&self.targets, Schedule::Bursts { rounds });
        let before = (self.targets.len() * (WARM_UP + self.settings.samples)) as u64;
        let tell = |progress: crate::load::drive::Progress| {
            let rounds = progress.done as usize / self.targets.len();
            let (done, left) = (before + progress.done, self.pauses(rounds));
            self.progress(
                "cold starts".to_owned(),
                done,
                progress.faults,
                Some(left),
                progress.latencies,
            );
        };
        self.send(&plan, "cold starts", tell).await
    }

    /// The pauses that are left after so many rounds of cold samples, in seconds.
    fn pauses(&self, rounds: usize) -> f64 {
        let all = match self.settings.cold {
            0 => 0,
            cold => cold + 1,
        };
        all.saturating_sub(rounds) as f64 * PAUSE_MS as f64 / 1e3
    }

    fn progress(&self, what: String, done: u64, failed: u64, left: Option<f64>, latencies: Sketch) {
        let cold = match self.settings.cold {
            0 => 0,
            cold => cold + 1,
        };
        let each = WARM_UP + self.settings.samples + cold;
        (self.tell)(Progress {
            what,
            done,
            total: (self.targets.len() * each) as u64,
            failed,
            left: left.and_then(|left| Duration::try_from_secs_f64(left).ok()),
            latencies,
        });
    }

    /// One request at a time, on a connection that is kept.
    fn plan(&self, targets: &[Target], schedule: Schedule) -> Plan {
        let client = self.hearth.client();
        let request = |target: &Target| Request {
            method: "POST".to_owned(),
            url: client.url(&format!("/api/v1/functions/{}/invoke", target.name)),
            headers: vec![
                ("authorization".to_owned(), client.authorization()),
                ("content-type".to_owned(), "application/json".to_owned()),
            ],
            body: event().to_string(),
        };
        let all: u64 = match &schedule {
            Schedule::Bursts { rounds } => {
                rounds.iter().map(|round| round.bursts.len() as u64).sum()
            }
            Schedule::Closed { count, .. } | Schedule::Open { count, .. } => {
                count.unwrap_or_default()
            }
        };
        Plan {
            requests: targets.iter().map(request).collect(),
            schedule,
            connections: 1,
            keep_alive: 1,
            timeout_ms: TIMEOUT_MS,
            capture_bytes: CAPTURE,
            faults_max: Some(all / FAULTS_SHARE),
            processor: self.settings.processor,
            trust: Trust::default(),
        }
    }

    /// The samples in the order in which they were sent.
    async fn send(
        &self,
        plan: &Plan,
        what: &str,
        tell: impl FnMut(crate::load::drive::Progress),
    ) -> Result<Vec<Sample>, OverheadError> {
        plan.check()?;
        let (report, mut samples) = self.generator.run(plan, tell).await?;
        if report.ended == Ended::TooManyFaults {
            let faults = report.faults.values().sum();
            return Err(OverheadError::TooManyFaults(what.to_owned(), faults));
        }
        samples.sort_by_key(|sample| sample.sent);
        Ok(samples)
    }
}
