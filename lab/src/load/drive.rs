//! Sends by plan.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::clock;
use super::engine::Engine;
use super::pace::{Next, Pace};
use super::plan::{Arrivals, Plan, Schedule};
use super::sample::Sample;

/// Requests per second that a closed loop is expected to have at most: at one connection, and at all.
const ALONE: f64 = 50_000.0;
const TOGETHER: f64 = 200_000.0;

/// Samples for which there is memory ahead, 88 bytes each.
const TOUCHED_MAX: usize = 1_000_000;

/// How long before a planned time a generator with a processor of its own stops sleeping, in ns: to be woken on an idle processor takes up
/// to a millisecond in a virtual machine.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Requests that are over.
    pub done: u64,
    /// Those of them that failed.
    pub faults: u64,
    /// Requests in all, where that is known.
    pub total: Option<u64>,
    /// Time since the begin, in ns.
    pub elapsed: u64,
}

/// Memory for a plan's samples, touched: to get a page from the kernel, or from a virtual machine's host, takes long enough to be seen in
/// latencies. What is beyond it is got as it is needed.
fn room(plan: &Plan, total: Option<u64>) -> Vec<Sample> {
    let seconds = |duration_ms: &Option<u64>| duration_ms.map_or(0.0, |ms| ms as f64 / 1e3);
    let expected = match (&plan.schedule, total) {
        (_, Some(total)) => total as f64,
        (Schedule::Closed { duration_ms, .. }, None) => {
            seconds(duration_ms) * (plan.connections as f64 * ALONE).min(TOGETHER)
        }
        (
            Schedule::Open {
                arrivals: Arrivals::Fixed { rate } | Arrivals::Exponential { rate, .. },
                duration_ms,
                ..
            },
            None,
        ) => seconds(duration_ms) * rate,
        _ => 0.0,
    };
    let mut samples = Vec::new();
    samples.resize_with((expected as usize).min(TOUCHED_MAX), Sample::default);
    samples.clear();
    samples
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
    let mut engine = Engine::new(plan, control)?;
    let mut pace = Pace::new(plan);
    let mut samples = room(plan, pace.total());
    if !matches!(plan.schedule, Schedule::Bursts { .. }) {
        engine.connect(plan.connections.min(plan.keep_alive), CONNECT_WITHIN)?;
    }
    let (began_at, processor) = (clock::wall(), clock::processor());
    engine.restart_clock();
    let mut faults = 0;
    let mut tell_at = TELL_EVERY;
    let ended = loop {
        faults += engine
            .finished
            .iter()
            .filter(|sample| sample.fault.is_some())
            .count() as u64;
        samples.append(&mut engine.finished);
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
                done: samples.len() as u64,
                faults,
                total: pace.total(),
                elapsed: now,
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
        let next = match plan.processor {
            Some(_) => awake_from(next, engine.now()),
            None => next,
        };
        let until = next.min(tell_at).min(deadline.unwrap_or(u64::MAX));
        engine.wait(Some(until))?;
    };
    let elapsed = engine.now();
    engine.abandon();
    Ok(Outcome {
        ended,
        samples,
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
    use crate::load::Trust;

    #[test]
    fn who_has_a_processor_is_awake_before_something_is_due() {
        assert_eq!(awake_from(5_000_000, 0), 4_000_000);
        assert_eq!(awake_from(5_000_000, 4_500_000), 4_500_000);
        assert_eq!(awake_from(5_000_000, 6_000_000), 6_000_000);
        assert_eq!(awake_from(u64::MAX, 7), u64::MAX);
    }

    #[test]
    fn memory_is_touched_for_the_samples_that_are_expected() {
        let plan = |schedule, connections| Plan {
            requests: Vec::new(),
            schedule,
            connections,
            keep_alive: 1,
            timeout_ms: 1_000,
            capture_bytes: 0,
            faults_max: None,
            processor: None,
            trust: Trust::default(),
        };
        let closed = |duration_ms| Schedule::Closed {
            duration_ms,
            count: None,
        };
        let open = |rate| Schedule::Open {
            arrivals: Arrivals::Fixed { rate },
            duration_ms: Some(2_000),
            count: None,
        };
        let capacity = |plan: &Plan, total| room(plan, total).capacity();
        assert!(capacity(&plan(closed(Some(1_000)), 1), None) >= 50_000);
        assert!(capacity(&plan(closed(Some(1_000)), 16), None) >= 200_000);
        assert!(capacity(&plan(open(300.0), 16), None) >= 600);
        assert!(capacity(&plan(closed(None), 16), Some(70)) >= 70);
        let long = plan(closed(Some(86_400_000)), 16);
        assert!(capacity(&long, None) < 2 * TOUCHED_MAX);
        assert!(room(&long, None).is_empty());
    }
}
