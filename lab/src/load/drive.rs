//! Sends by plan.

use std::io;
use std::os::fd::BorrowedFd;

use hearth_host::scheduling::{Scheduling, schedule};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::clock;
use super::engine::Engine;
use super::pace::{Next, Pace};
use super::plan::{Plan, Schedule};
use super::sample::{Collected, Sample};
use super::sketch::Sketch;

/// How long before a planned time a generator stops sleeping that has a processor of its own, or sends bursts with pauses between them, in
/// ns: to be woken on an idle processor takes up to a millisecond in a virtual machine, and would count as the server's.
const AWAKE: u64 = 1_000_000;

/// How often progress is told, in ns.
const TELL_EVERY: u64 = 500_000_000;

/// How long connections may take to be opened before the run, in ns.
const CONNECT_WITHIN: u64 = 5_000_000_000;

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Everything was sent and answered or given up.
    Complete,
    /// It was cancelled.
    Cancelled,
    /// More requests failed than the plan allows.
    TooManyFaults,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// One for each request, in the order in which they were over.
    pub samples: Vec<Sample>,
    /// Requests of an open loop that were due but not sent, because all connections were busy up to the end.
    pub unsent: u64,
    /// When it began, in ns since 1970.
    pub began_at: u64,
    /// How long it took, in ns.
    pub elapsed: u64,
    /// When the last request was due, in ns from the begin.
    pub planned: u64,
    /// Processor time of the process meanwhile, in ns.
    pub processor: u64,
}

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Requests that are over.
    pub done: u64,
    /// Those of them that failed.
    pub faults: u64,
    /// Requests in all, where that is known.
    pub total: Option<u64>,
    /// Time since the begin, in ns.
    pub elapsed: u64,
    /// From sending to the first byte, of good answers.
    pub latencies: Sketch,
}

/// Until when to sleep before something is due; now, if that is soon.
fn awake_from(due: u64, now: u64) -> u64 {
    match due {
        // Nothing is.
        u64::MAX => u64::MAX,
        due => due.saturating_sub(AWAKE).max(now),
    }
}

/// Runs a plan that [`Plan::check`] has passed. The end of `control`, a pipe or socket, cancels it.
///
/// # Errors
/// Hosts that are not found, a processor that is not there, or a kernel that refuses epoll or timers. What happens to requests is in
/// their samples.
pub fn run(
    plan: &Plan,
    control: Option<BorrowedFd<'_>>,
    tell: &mut dyn FnMut(Progress),
) -> io::Result<Outcome> {
    if let Some(processor) = plan.processor {
        let mut set = CpuSet::new();
        if processor >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(processor);
        sched_setaffinity(None, &set)?;
    }
    let paces_bursts = matches!(plan.schedule, Schedule::Bursts { .. });
    let is_awake = plan.processor.is_some() || paces_bursts;
    if paces_bursts {
        // One that is late, or late to see an answer, since another has its processor, would report that as the server's. Who may
        // not take precedence measures all the same.
        let _ = schedule(gettid(), Scheduling::RealTime);
    }
    let mut engine = Engine::new(plan, control)?;
    let mut pace = Pace::new(plan);
    if !paces_bursts {
        engine.connect(plan.connections.min(plan.keep_alive), CONNECT_WITHIN)?;
    }
    let (began_at, processor) = (clock::wall(), clock::processor());
    engine.restart_clock();
    let mut samples = Collected::default();
    let (mut faults, mut latencies) = (0, Sketch::default());
    let mut tell_at = TELL_EVERY;
    let ended = loop {
        for sample in &engine.finished {
            match sample.fault {
                Some(_) => faults += 1,
                None => latencies.note(sample.to_first()),
            }
        }
        samples.take(&mut engine.finished);
        if engine.is_cancelled {
            break Ended::Cancelled;
        }
        if plan.faults_max.is_some_and(|most| faults > most) {
            break Ended::TooManyFaults;
        }
        let now = engine.now();
        if now >= tell_at {
            tell_at = now + TELL_EVERY;
            tell(Progress {
                done: samples.count as u64,
                faults,
                total: pace.total(),
                elapsed: now,
                latencies: latencies.clone(),
            });
        }
        let next = pace.send(&mut engine);
        let deadline = engine.expire(engine.now());
        if !engine.finished.is_empty() {
            // Counted before anything else is sent.
            continue;
        }
        let next = match next {
            Next::Done if engine.in_flight == 0 => break Ended::Complete,
            Next::Done | Next::Answer => u64::MAX,
            Next::At(at) => at,
        };
        let next = match is_awake {
            true => awake_from(next, engine.now()),
            false => next,
        };
        let until = next.min(tell_at).min(deadline.unwrap_or(u64::MAX));
        engine.wait(Some(until))?;
    };
    let elapsed = engine.now();
    engine.abandon();
    Ok(Outcome {
        ended,
        samples: samples.into_all(),
        unsent: pace.unsent,
        began_at,
        elapsed,
        planned: pace.planned,
        processor: clock::processor() - processor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_processor_is_awake_before_something_is_due() {
        assert_eq!(awake_from(5_000_000, 0), 4_000_000);
        assert_eq!(awake_from(5_000_000, 4_500_000), 4_500_000);
        assert_eq!(awake_from(5_000_000, 6_000_000), 6_000_000);
        assert_eq!(awake_from(u64::MAX, 7), u64::MAX);
    }
}
