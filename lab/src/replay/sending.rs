//! Sends arrivals at their times and keeps what came of them.

use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::Method;
use tokio::time::{sleep_until, timeout};

use super::traffic::{Arrival, Traffic};
use crate::duet::order::Role;
use crate::duet::report::Stage;
use crate::duet::trials::{FAULTS_MAX, Fault, Repeat, Trials};
use crate::load::Sketch;
use crate::platform::calibrate::stage;
use crate::platform::client::Client;
use crate::statistics::quantile::linear;

/// Most arrivals under way; later ones are left out until one is over, so that no replay takes the host down.
const UNDER_WAY_MAX: usize = 64;

/// Longest execution, as in a duet.
const EXECUTION_MAX: Duration = Duration::from_secs(20);

/// What came of the arrivals.
#[derive(Default)]
pub(super) struct Sent {
    /// The second version beside the first, both replayed.
    pub(super) trials: Trials,
    /// The second version beside what was recorded.
    pub(super) beside_recorded: Trials,
    /// Arrivals that were not sent because too many were under way.
    pub(super) left_out: usize,
    /// Of all executions.
    pub(super) durations: Sketch,
    late_ns: Vec<f64>,
}

impl Sent {
    /// How late arrivals were sent, in ns: the 99th percentile.
    pub(super) fn late_p99(&self) -> f64 {
        let mut sorted = self.late_ns.clone();
        sorted.sort_by(f64::total_cmp);
        linear(&sorted, 0.99).unwrap_or(0.0)
    }

    fn note(&mut self, part: &Part, done: Done, recorded: Option<f64>) {
        let mut ns = [None; 3];
        for (role, taken) in done.taken {
            match taken {
                Ok(taken) => {
                    self.durations.note(taken.as_nanos() as u64);
                    ns[role as usize] = Some(taken.as_nanos() as f64);
                }
                Err(fault) => self.trials.note(role, fault),
            }
        }
        let [Some(first_ns), Some(second_ns), Some(control_ns)] = ns else {
            return;
        };
        let repeat = Repeat {
            call: part.number,
            repeat: done.number - part.arrivals.start,
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

    /// How many executions failed, of how many, and why the last one, if that is more than a tenth.
    pub(super) fn given_up(&self) -> Option<(usize, usize, String)> {
        let failed = self.trials.faults();
        let all = failed + self.trials.repeats.len() * 3;
        let reason = self.trials.error.clone();
        let reason = reason.unwrap_or_else(|| format!("longer than {} s", EXECUTION_MAX.as_secs()));
        (failed >= FAULTS_MAX && failed * 10 > all).then_some((failed, all, reason))
    }
}

/// An arrival that is over.
struct Done {
    number: usize,
    order: Vec<Role>,
    taken: Vec<(Role, Result<Duration, Fault>)>,
}

/// A part of the traffic, with copies of its own.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) number: usize,
    /// Numbers of its arrivals, of which there is one at least.
    pub(super) arrivals: Range<usize>,
    /// The copies' names by role.
    pub(super) copies: [String; 3],
}

/// Sends arrivals.
pub(super) struct Execution<'a> {
    pub(super) client: &'a Client,
    pub(super) stage: Stage,
    pub(super) traffic: &'a Traffic,
    /// Factor by which time is scaled.
    pub(super) speed: f64,
}

impl Execution<'_> {
    /// How long sending takes from the arrival before this range, or the range's first if there is none, to its last.
    pub(super) fn takes(&self, arrivals: &Range<usize>) -> Duration {
        let at = |number: usize| self.traffic.arrivals[number].at;
        let before = at(arrivals.start.saturating_sub(1));
        (at(arrivals.end - 1) - before).div_f64(self.speed)
    }

    /// Sends each arrival of a part at its time after the one before, whatever has become of those before, and waits for all of them.
    /// `tell` gets how many of all were sent, and the durations so far.
    pub(super) async fn send(
        &self,
        part: &Part,
        sent: &mut Sent,
        random: &mut fastrand::Rng,
        tell: impl Fn(usize, &Sketch),
    ) {
        let mut under_way = FuturesUnordered::new();
        let arrivals = &self.traffic.arrivals;
        let begin = Instant::now();
        let recorded = |number: usize| recorded(&arrivals[number], self.stage);
        for number in part.arrivals.clone() {
            let due = begin + self.takes(&(part.arrivals.start..number + 1));
            loop {
                tokio::select! {
                    () = sleep_until(due.into()) => break,
                    Some(done) = under_way.next() => {
                        let done: Done = done;
                        let recorded = recorded(done.number);
                        sent.note(part, done, recorded);
                    }
                }
            }
            tell(number, &sent.durations);
            if sent.given_up().is_some() {
                break;
            }
            if under_way.len() >= UNDER_WAY_MAX {
                sent.left_out += 1;
                continue;
            }
            sent.late_ns.push(due.elapsed().as_nanos() as f64);
            let mut order = vec![Role::First, Role::Second, Role::Control];
            random.shuffle(&mut order);
            under_way.push(self.trial(part, number, order));
        }
        while let Some(done) = under_way.next().await {
            let recorded = recorded(done.number);
            sent.note(part, done, recorded);
        }
    }

    async fn trial(&self, part: &Part, number: usize, order: Vec<Role>) -> Done {
        let mut taken = Vec::with_capacity(order.len());
        for role in &order {
            let copy = &part.copies[*role as usize];
            taken.push((*role, self.run(copy, number).await));
        }
        Done {
            number,
            order,
            taken,
        }
    }

    /// One execution of an arrival on a copy.
    pub(super) async fn run(&self, copy: &str, number: usize) -> Result<Duration, Fault> {
        let path = format!("/api/v1/functions/{copy}/invoke");
        let event = self.traffic.arrivals[number].event;
        let event = self.traffic.events[event].text.as_bytes().to_vec();
        let content = Some(("application/json", event));
        let sent = timeout(
            EXECUTION_MAX,
            self.client.send(Method::POST, &path, content),
        )
        .await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_given_up_when_more_than_a_tenth_of_the_executions_fail() {
        let repeat = Repeat {
            call: 0,
            repeat: 0,
            order: Vec::new(),
            first_ns: 1.0,
            second_ns: 1.0,
            control_ns: Some(1.0),
        };
        let mut sent = Sent::default();
        for _ in 0..9 {
            sent.trials.note(Role::Second, Fault::Interrupted);
        }
        // So few may be of those right after a start.
        assert_eq!(sent.given_up(), None);
        sent.trials
            .note(Role::Second, Fault::Failed("502".to_owned()));
        assert_eq!(sent.given_up(), Some((10, 10, "502".to_owned())));
        // 90 executions beside them: a tenth.
        sent.trials.repeats = vec![repeat; 30];
        assert_eq!(sent.given_up(), None);
        sent.trials.note(Role::First, Fault::Interrupted);
        assert_eq!(sent.given_up(), Some((11, 101, "502".to_owned())));
    }
}
