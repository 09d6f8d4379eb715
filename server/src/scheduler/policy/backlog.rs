//! A backlog that lasts. [`burst`](super::burst) asks what serves those who wait *now* soonest, and for calls of 50 µs that
//! is nearly always the instances at work: a start takes as long as twenty of them. When calls keep coming as fast as they
//! are served, that answer is right each time and wrong in sum: the queue never ends, and cores may be free that one more
//! instance would use.
//!
//! So it is watched whether somebody waits all the time. Over a time in which ten starts could have been made, the queue's
//! mean length at the end of a call is taken. Is it one or more, then what was waited in sum (Little's law) is more than ten
//! times what a start costs, and one is made: the rent has been more than the price (the ski-rental argument, as in
//! [`burst`](super::burst)). One at a time, so that starts never take more than a tenth of the time, and only as long as
//! fewer instances are busy than it takes to keep the cores busy: two per core, so that one computes while the other's request
//! or answer is in transit. Further ones would share the same cores and run with cold caches (Schroeder, Harchol-Balter,
//! Iyengar, Nahum, Wierman, "How to Determine a Good Multi-Programming Level for External Scheduling", ICDE 2006).

use std::time::{Duration, Instant};

/// Busy instances per core at which a persistent backlog starts no more.
pub const BUSY_PER_CORE: u32 = 2;
/// For how long the queue is watched, in starts.
const STARTS: u32 = 10;

/// What was seen of a queue lately.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backlog {
    /// Since when it is watched.
    since: Instant,
    /// Calls that have ended since.
    ended: u64,
    /// How many waited at the end of each, in sum.
    waited: u64,
    /// What the last time of watching has shown.
    lasts: bool,
}

impl Backlog {
    /// Begins to watch.
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            ended: 0,
            waited: 0,
            lasts: false,
        }
    }

    /// A call has ended, while so many waited. `start` is what a start costs.
    #[inline]
    pub fn ended(&mut self, now: Instant, waiting: u32, start: Duration) {
        self.ended += 1;
        self.waited += u64::from(waiting);
        let (watched, enough) = (now.saturating_duration_since(self.since), start * STARTS);
        if watched < enough {
            return;
        }
        // What ends that rarely is `burst`'s; and a call after a pause says nothing of the pause.
        let lasts = watched < enough * 2 && self.waited >= self.ended;
        *self = Self {
            lasts,
            ..Self::new(now)
        };
    }

    /// Whether a start should be under way beside `busy` instances.
    #[inline]
    pub fn wants_one_more(&self, busy: u32, limit: u32) -> bool {
        self.lasts && busy < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_millis(1);
    const STEP: Duration = Duration::from_micros(100);

    /// Calls that end every 100 µs for so long, while `waiting` wait.
    fn watch(backlog: &mut Backlog, mut now: Instant, time: Duration, waiting: u32) -> Instant {
        let until = now + time;
        while now < until {
            now += STEP;
            backlog.ended(now, waiting, START);
        }
        now
    }

    #[test]
    fn a_queue_that_lasts_is_worth_one_more() {
        let begun = Instant::now();
        let mut backlog = Backlog::new(begun);
        let now = watch(&mut backlog, begun, START * 9, 1);
        assert!(!backlog.wants_one_more(2, 4), "not yet");
        watch(&mut backlog, now, START, 1);
        assert!(backlog.wants_one_more(2, 4));
        assert!(!backlog.wants_one_more(4, 4), "the cores have enough to do");
    }

    #[test]
    fn a_queue_that_comes_and_goes_is_not() {
        let begun = Instant::now();
        let mut backlog = Backlog::new(begun);
        // A burst that is over within three starts, and single calls.
        let mut now = watch(&mut backlog, begun, START * 2, 4);
        for _ in 0..10 {
            now = watch(&mut backlog, now, START, 0);
            assert!(!backlog.wants_one_more(1, 4));
        }
    }

    #[test]
    fn a_pause_is_not_taken_for_a_queue() {
        let begun = Instant::now();
        let mut backlog = Backlog::new(begun);
        let now = begun + Duration::from_secs(1);
        backlog.ended(now, 99, START);
        assert!(!backlog.wants_one_more(1, 4));
        // Nor are calls that take longer than it is watched.
        for second in 2..10 {
            backlog.ended(begun + Duration::from_secs(second), 99, START);
            assert!(!backlog.wants_one_more(1, 4));
        }
    }
}
