//! Sends arrivals at their times and keeps what came of them.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::Method;
use tokio::time::{sleep_until, timeout};

use super::run::Settings;
use super::traffic::{Arrival, Traffic};
use crate::duet::order::Role;
use crate::duet::report::Stage;
use crate::duet::run::Progress;
use crate::duet::trials::{FAULTS_MAX, Fault, Repeat, Trials};
use crate::platform::calibrate::stage;
use crate::platform::client::Client;
use crate::statistics::quantile::linear;

/// Most arrivals under way; later ones are left out until one is over, so that no replay takes the host down.
const UNDER_WAY_MAX: usize = 64;

/// Longest execution, as in a duet.
const EXECUTION_MAX: Duration = Duration::from_secs(20);

/// What came of all arrivals.
pub(super) struct Sent {
    /// The second version beside the first, both replayed.
    pub(super) trials: Trials,
    /// The second version beside what was recorded.
    pub(super) beside_recorded: Trials,
    /// Arrivals that were not sent because too many were under way.
    pub(super) left_out: usize,
    late_ns: Vec<f64>,
}

impl Sent {
    /// How late arrivals were sent, in ns: the 99th percentile.
    pub(super) fn late_p99(&self) -> f64 {
        let mut sorted = self.late_ns.clone();
        sorted.sort_by(f64::total_cmp);
        linear(&sorted, 0.99).unwrap_or(0.0)
    }

    fn note(&mut self, done: Done, recorded: Option<f64>) {
        let mut ns = [None; 3];
        for (role, taken) in done.taken {
            match taken {
                Ok(taken) => ns[role as usize] = Some(taken.as_nanos() as f64),
                Err(fault) => self.trials.note(role, fault),
            }
        }
        let [Some(first_ns), Some(second_ns), Some(control_ns)] = ns else {
            return;
        };
        let repeat = Repeat {
            call: done.number,
            repeat: 0,
            order: done.order,
            first_ns,
            second_ns,
            control_ns: Some(control_ns),
        };
        if let Some(recorded) = recorded {
            self.beside_recorded.repeats.push(Repeat {
                first_ns: recorded,
                control_ns: None,
                ..repeat.clone()
            });
        }
        self.trials.repeats.push(repeat);
    }

    /// Whether more fails than a tenth.
    fn is_given_up(&self) -> bool {
        let faults = self.trials.faults();
        faults >= FAULTS_MAX && faults * 10 > self.trials.repeats.len()
    }
}

/// An arrival that is over.
struct Done {
    number: usize,
    order: Vec<Role>,
    taken: Vec<(Role, Result<Duration, Fault>)>,
}

/// Sends arrivals.
pub(super) struct Execution<'a> {
    pub(super) client: &'a Client,
    pub(super) stage: Stage,
    pub(super) traffic: &'a Traffic,
    /// Where both copies are invoked.
    pub(super) paths: [String; 2],
}

impl Execution<'_> {
    /// Sends each arrival at its time, whatever has become of those before.
    pub(super) async fn send_all(&self, settings: &Settings, tell: impl Fn(Progress)) -> Sent {
        let mut sent = Sent {
            trials: Trials::default(),
            beside_recorded: Trials::default(),
            left_out: 0,
            late_ns: Vec::new(),
        };
        let mut random = fastrand::Rng::with_seed(settings.seed);
        let mut under_way = FuturesUnordered::new();
        let (arrivals, begin) = (&self.traffic.arrivals, Instant::now());
        let total = arrivals.len();
        let span = self.traffic.span().div_f64(settings.speed);
        let recorded = |number: usize| recorded(&arrivals[number], settings.stage);
        for (number, arrival) in arrivals.iter().enumerate() {
            let due = begin + arrival.at.div_f64(settings.speed);
            loop {
                tokio::select! {
                    () = sleep_until(due.into()) => break,
                    Some(done) = under_way.next() => {
                        let done: Done = done;
                        let recorded = recorded(done.number);
                        sent.note(done, recorded);
                    }
                }
            }
            tell(Progress {
                done: number,
                total,
                left: Some(span.saturating_sub(begin.elapsed())),
            });
            if sent.is_given_up() {
                break;
            }
            if under_way.len() >= UNDER_WAY_MAX {
                sent.left_out += 1;
                continue;
            }
            sent.late_ns.push(due.elapsed().as_nanos() as f64);
            let mut order = vec![Role::First, Role::Second, Role::Control];
            random.shuffle(&mut order);
            under_way.push(self.trial(number, arrival.event, order));
        }
        while let Some(done) = under_way.next().await {
            let recorded = recorded(done.number);
            sent.note(done, recorded);
        }
        tell(Progress {
            done: total,
            total,
            left: Some(Duration::ZERO),
        });
        sent
    }

    async fn trial(&self, number: usize, event: usize, order: Vec<Role>) -> Done {
        let mut taken = Vec::with_capacity(order.len());
        for role in &order {
            taken.push((*role, self.run(*role, event).await));
        }
        Done {
            number,
            order,
            taken,
        }
    }

    /// One execution on the copy of a role.
    pub(super) async fn run(&self, role: Role, event: usize) -> Result<Duration, Fault> {
        let path = &self.paths[usize::from(role == Role::Second)];
        let event = self.traffic.events[event].text.as_bytes().to_vec();
        let content = Some(("application/json", event));
        let sent = timeout(EXECUTION_MAX, self.client.send(Method::POST, path, content)).await;
        let answer = sent.map_err(|_| Fault::Interrupted)?;
        let answer = answer.map_err(|error| Fault::Failed(error.to_string()))?;
        let timing = answer.headers.get("server-timing");
        let timing = timing.and_then(|value| value.to_str().ok());
        let name = self.stage.name();
        let taken = timing.and_then(|text| stage(text, name));
        taken.ok_or_else(|| Fault::Failed(format!("no {name} in Server-Timing")))
    }
}

fn recorded(arrival: &Arrival, stage: Stage) -> Option<f64> {
    match stage {
        Stage::Run => arrival.recorded_run_ns,
        Stage::Total => arrival.recorded_total_ns,
    }
}
