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
