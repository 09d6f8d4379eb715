//! Recorded calls through a [`Pool`] with other limits: what would have been cold, and what it would have kept.
//!
//! The pool is the one that serves, and its clock is a parameter: a day passes in a fraction of a second. What is simulated around it is
//! simple: starts take the same time each and follow each other, as forks of one template do; runs take what they took; the host has
//! memory for all of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::housekeeping::TICK;
use super::pool::{Acquired, Limits, Pool};

/// Most ticks of a simulation: longer windows have longer ticks.
const TICKS_MAX: u32 = 200_000;

/// A call as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// When, from the begin of the window.
    pub at: Duration,
    /// How long it had an instance.
    pub took: Duration,
}

/// What would have been.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Simulated {
    /// Calls that were served by an instance that was started for those who waited.
    pub cold: u64,
    /// Calls that waited for an instance that was busy.
    pub queued: u64,
    /// Calls that found the queue full.
    pub refused: u64,
    /// Instances that were started.
    pub starts: u64,
    /// Seconds of instances, those that are starting included.
    pub instance_seconds: f64,
    /// Most instances at a time.
    pub most: u32,
}

/// What happens next. Of what happens at the same time ends come first, then starts, then calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A lease ends that has taken so long.
    Ended(Duration),
    /// An instance is up.
    Up,
    /// A call comes.
    Came(usize),
    /// The queue is looked at again.
    Alarm,
    /// The pool's regular work.
    Tick,
}

struct Run<'a> {
    calls: &'a [Call],
    origin: Instant,
    pool: Pool<(), usize>,
    start: Duration,
    events: BinaryHeap<Reverse<(Duration, Event)>>,
    /// When the template is free for the next start.
    free: Duration,
    done: Simulated,
}

/// Runs `calls`, which are in the order of their times, through a pool with these limits, whose starts take `start`, until `end`.
pub fn simulate(calls: &[Call], limits: Limits, start: Duration, end: Duration) -> Simulated {
    // Any instant will do: only differences count.
    let origin = Instant::now();
    let mut run = Run {
        calls,
        origin,
        pool: Pool::new(limits, origin, None),
        start,
        events: BinaryHeap::new(),
        free: Duration::ZERO,
        done: Simulated::default(),
    };
    let tick = TICK.max(end / TICKS_MAX);
    run.push(Duration::ZERO, Event::Tick);
    if !calls.is_empty() {
        run.push(calls[0].at, Event::Came(0));
    }
    let mut last = Duration::ZERO;
    while let Some(Reverse((at, event))) = run.events.pop() {
        let now = at.min(end);
        let counts = run.pool.counts();
        let alive = counts.live() + counts.starting;
        run.done.instance_seconds += f64::from(alive) * (now - last).as_secs_f64();
        run.done.most = run.done.most.max(alive);
        last = now;
        if at >= end {
            break;
        }
        if event == Event::Tick {
            run.push(at + tick, Event::Tick);
        }
        run.step(at, event, tick);
    }
    run.done
}

impl Run<'_> {
    fn push(&mut self, at: Duration, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn step(&mut self, at: Duration, event: Event, tick: Duration) {
        let now = self.origin + at;
        match event {
            Event::Came(number) => {
                if let Some(next) = self.calls.get(number + 1) {
                    self.push(next.at, Event::Came(number + 1));
                }
                self.pool.arrive(now);
                match self.pool.acquire(now) {
                    Acquired::Leased(()) => self.lease(at, number),
                    Acquired::Wait => {
                        let refused = self.pool.enqueue(number).is_err();
                        self.done.refused += u64::from(refused);
                    }
                }
            }
            Event::Ended(took) => {
                if let Some((number, ())) = self.pool.release((), now, took) {
                    self.done.queued += 1;
                    self.lease(at, number);
                }
            }
            Event::Up => {
                self.pool.forked(Some(self.start));
                if let Some((number, ())) = self.pool.started((), now) {
                    self.done.cold += 1;
                    self.lease(at, number);
                }
            }
            Event::Alarm => self.pool.look_again(now),
            Event::Tick => {
                let ahead = self
                    .pool
                    .tick(now, tick + self.start * 2, Duration::ZERO)
                    .ahead;
                if ahead == Some(true) {
                    self.begin(at, 1);
                }
            }
        }
        let due = self.pool.starts_due(now);
        self.begin(at, due.for_requests + due.for_minimum);
        if let Some(alarm) = self.pool.alarm(now) {
            let alarm = alarm.saturating_duration_since(self.origin);
            self.push(alarm, Event::Alarm);
        }
    }

    /// Begins starts, which were counted by the pool. They follow each other.
    fn begin(&mut self, at: Duration, count: u32) {
        for _ in 0..count {
            self.pool.forks();
            self.free = self.free.max(at) + self.start;
            self.push(self.free, Event::Up);
            self.done.starts += 1;
        }
    }

    fn lease(&mut self, at: Duration, number: usize) {
        let took = self.calls[number].took;
        self.push(at + took, Event::Ended(took));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::policy::controllers::Controllers;

    fn limits(min: u32, max: u32, idle_timeout_s: u64) -> Limits {
        let limits = Limits {
            max,
            min,
            queue: 0,
            idle_timeout: Duration::from_secs(idle_timeout_s),
            processors: 2,
            controllers: Controllers::default(),
        };
        limits.with_max(max)
    }

    /// Calls of 10 ms at these seconds.
    fn calls(seconds: &[u64]) -> Vec<Call> {
        let call = |at: &u64| Call {
            at: Duration::from_secs(*at),
            took: Duration::from_millis(10),
        };
        seconds.iter().map(call).collect()
    }

    const START: Duration = Duration::from_millis(2);

    #[test]
    fn what_is_kept_is_warm_and_takes_memory() {
        // Irregular, so that nothing is started ahead.
        let calls = calls(&[0, 40, 55, 130, 137, 300]);
        let end = Duration::from_secs(400);
        let short = simulate(&calls, limits(0, 4, 5), START, end);
        assert_eq!(
            (short.cold, short.starts, short.most),
            (6, 6, 1),
            "{short:?}"
        );
        let long = simulate(&calls, limits(0, 4, 100), START, end);
        // The last one comes 163 s after the one before it.
        assert_eq!((long.cold, long.starts), (2, 2), "{long:?}");
        assert!(long.instance_seconds > 5.0 * short.instance_seconds);
        let kept = simulate(&calls, limits(1, 4, 5), START, end);
        // It is up before the first call but for its start.
        assert!(kept.cold <= 1 && kept.starts == 1, "{kept:?}");
        assert!((kept.instance_seconds - 400.0).abs() < 1.0, "{kept:?}");
    }

    #[test]
    fn regular_calls_are_awaited() {
        let calls = calls(&(0..20).map(|number| number * 60).collect::<Vec<u64>>());
        let end = Duration::from_secs(1200);
        let awaited = simulate(&calls, limits(0, 4, 20), START, end);
        assert!(awaited.cold < 8 && awaited.starts >= 20, "{awaited:?}");
        let mut without = limits(0, 4, 20);
        without.controllers.periodic = false;
        assert_eq!(simulate(&calls, without, START, end).cold, 20);
    }

    #[test]
    fn who_finds_the_queue_full_is_refused() {
        let mut calls = calls(&[1; 300]);
        for call in &mut calls {
            call.took = Duration::from_secs(10);
        }
        let end = Duration::from_secs(10_000);
        let one = simulate(&calls, limits(0, 1, 60), START, end);
        assert_eq!((one.starts, one.cold), (1, 1), "{one:?}");
        // A place for who is served, and the queue's.
        assert_eq!((one.refused, one.queued), (199, 100), "{one:?}");
    }

    proptest! {
        /// Every call is served by one of the ways or refused, never beyond the limit, and more time idle is never colder by much.
        #[test]
        fn calls_are_accounted_for(
            gaps in prop::collection::vec((0_u64..20_000, 1_u64..2_000), 1..80),
            min in 0_u32..3,
            max in 3_u32..6,
            idle in 1_u64..100,
        ) {
            let mut at = 0;
            let calls: Vec<Call> = gaps.iter().map(|(gap, took)| {
                at += gap;
                Call { at: Duration::from_millis(at), took: Duration::from_millis(*took) }
            }).collect();
            let end = Duration::from_millis(at) + Duration::from_secs(1_000);
            let found = simulate(&calls, limits(min, max, idle), START, end);
            let count = calls.len() as u64;
            prop_assert!(found.cold + found.queued + found.refused <= count);
            prop_assert!(found.cold <= found.starts);
            prop_assert!(found.most <= max);
            prop_assert!(found.instance_seconds >= 0.0);
            prop_assert_eq!(found, simulate(&calls, limits(min, max, idle), START, end));
        }
    }
}
