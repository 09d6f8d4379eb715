//! Burst sizing: how many instances to start for the requests that wait.
//!
//! A start pays if, when it is ready, somebody still waits. Seen as a fluid: `w` waiting requests are `w·R` of work, `R`
//! being a function's run time. Starts of one function come off one template, one after the other, each `S` apart, so
//! that the `m`-th is ready after `m·S`. Until then each of the `b` busy instances has done `m·S` of work, and the starts
//! before it, the `j`-th of which is ready at `j·S`, have done `S·m(m−1)/2` together. So the `m`-th start pays while
//!
//! ```text
//! w·R > S·(b·m + m(m−1)/2)
//! ```
//!
//! where `S` has what a start costs in all: the fork, and what the new process's first lease takes longer than those after it, for the
//! pages that it shares with its template until it writes to them. `R` is of runs after the first: instances that are all new would seem
//! to be a slow function, which seems to need more of them. Up to as many instances as there are processors `R` is the whole of a lease.
//! Beyond that it is the handler's time only. What handing a request over and back takes is processors' work, which more instances do
//! not get done sooner; it gets longer where they wait for one another, so that the more there are, the more would seem to be needed.
//! If it takes longer than that, somebody was waited for, such as a client that reads a stream, and the whole lease counts.
//!
//! Calls that began together also end together, which the fluid does not see: by it, one of 500 calls of 1 s ends every 2 ms. So the
//! `m`-th start also pays once nothing has ended for `m·S` beyond the usual pause and `R/b`, the pause between two ends of `b` instances
//! that are not in step.
//!
//! One request is never given more than one start. A hundred calls of 1 s get a hundred starts; a hundred calls of
//! 50 µs get three, which serve them sooner than more could be started; a short call that finds one busy instance waits
//! for it.
//!
//! `R` is what was measured, but no less than what is seen now: while nothing ends, requests under way have run for at
//! least the time since the last progress, less the pause that is usual between two ends. This is what a wrong guess is
//! corrected by: a wait costs at most about as much as the start that would have avoided it (the ski-rental argument: Karlin,
//! Manasse, Rudolph, Sleator, "Competitive snoopy caching", Algorithmica 1988), whatever was believed before.

use std::time::Duration;

use super::estimate::Mean;

/// What a fork is taken to cost until one was measured.
pub const ASSUMED_START: Duration = Duration::from_millis(1);
/// Bounds of the start cost that is counted with: a measurement beyond them tells of the machine's load (a stalled
/// template, a clock too coarse), not of what the next start will cost.
const START_BOUNDS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(50));

/// Most that a first lease is taken to last longer for being the first, and longest pause between two ends that is usual. What goes
/// beyond it is the calls' doing: they may differ by seconds.
const FIRST_MOST: Duration = Duration::from_millis(2);

/// Most that handing over is taken to last: two or three ticks of the kernel's on a host where processors are waited for.
const HANDING_OVER_MOST: Duration = Duration::from_millis(10);

/// How long a lease was held, for an invocation that ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// All of it.
    pub lease: Duration,
    /// The handler's part.
    pub run: Duration,
}

impl From<Duration> for Held {
    /// By the handler alone.
    fn from(run: Duration) -> Self {
        Self { lease: run, run }
    }
}

/// What is learned of a function's starts and runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// A lease without handing over, but for an instance's first.
    pub run: Mean,
    /// From lease to release, likewise.
    pub lease: Mean,
    /// The same of an instance's first.
    pub first: Mean,
    /// FORK to READY, divided by the starts that shared the template meanwhile.
    pub start: Mean,
}

impl Load {
    /// Takes in a lease that was not its instance's first.
    #[inline]
    pub fn sample(&mut self, held: Held) {
        let handing_over = held.lease.saturating_sub(held.run);
        let run = match handing_over <= HANDING_OVER_MOST {
            true => held.run,
            false => held.lease,
        };
        self.run.sample(run);
        self.lease.sample(held.lease);
    }

    /// Takes in a lease that was ended before its time.
    pub fn cut_short(&mut self, lease: Duration) {
        self.run.at_least(lease);
        self.lease.at_least(lease);
    }

    /// The start cost to count with.
    pub fn start_cost(&self) -> Duration {
        let (least, most) = START_BOUNDS;
        let start = self.start.get().unwrap_or(ASSUMED_START);
        start.clamp(least, most) + self.first_more()
    }

    /// What a first lease takes longer than others, where both are known.
    fn first_more(&self) -> Duration {
        match (self.first.get(), self.lease.get()) {
            (Some(first), Some(lease)) => first.saturating_sub(lease).min(FIRST_MOST),
            _ => Duration::ZERO,
        }
    }

    /// The longest pause between two ends that is usual.
    fn usual_pause(&self) -> Duration {
        let longest = self.first.get().max(self.lease.get());
        longest.unwrap_or_default().min(FIRST_MOST)
    }

    /// The pause between two ends after which `busy` instances are known to be in step.
    fn pause_in_step(&self, busy: u32) -> Duration {
        let run = self.counted(self.run, Duration::ZERO);
        self.usual_pause() + run / busy.max(1)
    }

    /// The time to count with, a lease's or a run's, `seen` being how long nothing has ended while something ran. One whose instances have
    /// run only once has their first leases; one that was never called is taken to run as long as a start: that starts some instances at
    /// once, not one for each.
    fn counted(&self, time: Mean, seen: Duration) -> Duration {
        let known = time.get().or(self.first.get());
        let known = known.unwrap_or(self.start_cost());
        known.max(seen.saturating_sub(self.usual_pause()))
    }
}

/// How a pool stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Requests that wait.
    pub waiting: u32,
    /// Instances at work.
    pub busy: u32,
    /// Processors of the host.
    pub processors: u32,
    /// Time since the last progress, while something is at work: see the module.
    pub seen: Duration,
}

/// Work, in seconds, that is done before the `m`-th start is ready.
fn done_before(m: f64, busy: u32, start: f64) -> f64 {
    start * (f64::from(busy) * m + m * (m - 1.0) / 2.0)
}

/// How many starts should be under way for this queue, at most one for each who waits. At least one when there is nobody
/// else to serve them.
pub fn starts_wanted(load: &Load, queue: Queue) -> u32 {
    let start = load.start_cost();
    let paying = |time| greatest_that_pays(load.counted(time, queue.seen), start, queue);
    let for_processors = queue.processors.saturating_sub(queue.busy);
    let least = u32::from(queue.busy == 0 && queue.waiting > 0);
    paying(load.run)
        .max(paying(load.lease).min(for_processors))
        .max(waited_out(load, start, queue))
        .max(least)
}

/// How many starts at `start` were waited out: the module's `m·S`.
fn waited_out(load: &Load, start: Duration, queue: Queue) -> u32 {
    let beyond = queue.seen.saturating_sub(load.pause_in_step(queue.busy));
    let starts = beyond.as_secs_f64() / start.as_secs_f64();
    // Strictly more, as in the inequality.
    let m = (starts.ceil() - 1.0).max(0.0);
    m.min(f64::from(queue.waiting)) as u32
}

/// How many starts pay if a request takes `time`, and a start `start`: the module's `m`.
fn greatest_that_pays(time: Duration, start: Duration, queue: Queue) -> u32 {
    let Queue { waiting, busy, .. } = queue;
    let start = start.as_secs_f64();
    let work = f64::from(waiting) * time.as_secs_f64();
    // The greatest m with done_before(m) < work: the positive root of m²/2 + (b − ½)·m − work/S, rounded down to a whole
    // number below it.
    let half = f64::from(busy) - 0.5;
    let root = (half * half + 2.0 * work / start).sqrt() - half;
    let mut m = root.floor().clamp(0.0, f64::from(waiting));
    // At the root itself nobody waits any more; and rounding may be off by one either way.
    while m > 0.0 && done_before(m, busy, start) >= work {
        m -= 1.0;
    }
    m as u32
}

/// How long nothing must have ended for one start more than `starting` to pay; `None` when no wait will lead to one, since
/// every waiting request has a start of its own.
pub fn pays_after(load: &Load, queue: Queue, starting: u32) -> Option<Duration> {
    if queue.waiting <= starting {
        return None;
    }
    let m = f64::from(starting) + 1.0;
    let start = load.start_cost().as_secs_f64();
    let needed = done_before(m, queue.busy, start) / f64::from(queue.waiting);
    // A nanosecond more, since the comparison is strict, and a thousandth against rounding.
    let after = |pause, needed: f64| {
        pause + Duration::from_secs_f64(needed * 1.001) + Duration::from_nanos(1)
    };
    Some(after(load.usual_pause(), needed).min(after(load.pause_in_step(queue.busy), m * start)))
}

#[cfg(test)]
#[path = "burst_tests.rs"]
mod tests;
