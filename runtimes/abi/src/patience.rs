//! How long a side looks at its ring before it sleeps.
//!
//! Sleeping and being woken costs two system calls and the latency of a wake-up: a few microseconds between busy
//! processors, tens where the processor had halted, more under virtualization. A side whose peer will be back sooner than
//! that does better to keep looking for a moment (Karlin et al., "Empirical Studies of Competitive Spinning for a
//! Shared-Memory Multiprocessor", SOSP 1991: to spin for about as long as a wake-up costs is never worse than twice the
//! optimum).
//!
//! [`Patience`] decides whether to look at all: each time in vain doubles the number of times it then goes to sleep at
//! once, so that a side with a slow peer spends next to nothing. [`look`] does the looking: it offers the processor to
//! whoever else wants it, and stops as soon as somebody takes the offer, because a side that looks while others wait for
//! a processor only delays its own peer.

use core::hint::spin_loop;
use core::time::Duration;
use std::time::Instant;

use rustix::thread::sched_yield;

/// Most sleeps without looking in between: how rarely a side with a slow peer still tries.
const MAX_SKIPPED: u32 = 255;
/// Looks between two offers of the processor: about half a microsecond.
const LOOKS: u32 = 16;

/// Whether it pays to look before sleeping, learnt from how it went. Pure.
#[derive(Debug, Clone)]
pub struct Patience {
    limit: Duration,
    /// Whether there is a processor for it.
    allowed: bool,
    /// Sleeps without looking after the last look in vain.
    skipped_last: u32,
    /// How many of them are left.
    skip: u32,
}

impl Patience {
    /// Looks for `limit` at most; never, if that is zero.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self {
            limit,
            allowed: true,
            skipped_last: 0,
            skip: 0,
        }
    }

    /// Whether looking is worth anything now: it is not where all processors are at work, since what is looked for waits
    /// for one then. What was learned stays.
    pub fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
    }

    /// For how long to look now. `None`: sleep at once.
    pub fn budget(&mut self) -> Option<Duration> {
        if self.limit.is_zero() || !self.allowed {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(self.limit)
    }

    /// How the look went that [`Self::budget`] allowed.
    pub fn learn(&mut self, found: bool) {
        self.skipped_last = if found {
            0
        } else {
            (self.skipped_last * 2 + 1).min(MAX_SKIPPED)
        };
        self.skip = self.skipped_last;
    }
}

/// Calls `found` until it answers `true`, for `budget` at most.
pub fn look(budget: Duration, mut found: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if found() {
                return true;
            }
            spin_loop();
        }
        sched_yield();
        if begun.elapsed() >= budget {
            return found();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_vain_make_it_look_less_often() {
        let limit = Duration::from_micros(50);
        let mut patience = Patience::new(limit);
        let mut looks = 0;
        for _ in 0..10_000 {
            if let Some(budget) = patience.budget() {
                assert_eq!(budget, limit);
                looks += 1;
                patience.learn(false);
            }
        }
        // Nine times while the pauses double, then once in 256.
        assert!((40..=50).contains(&looks), "{looks} looks");
    }

    #[test]
    fn one_success_makes_it_look_every_time() {
        let mut patience = Patience::new(Duration::from_micros(50));
        for _ in 0..100 {
            if patience.budget().is_some() {
                patience.learn(false);
            }
        }
        while patience.budget().is_none() {}
        patience.learn(true);
        for _ in 0..100 {
            assert!(patience.budget().is_some());
            patience.learn(true);
        }
    }

    #[test]
    fn nobody_looks_who_is_not_allowed_to() {
        let mut patience = Patience::new(Duration::from_micros(50));
        patience.allow(false);
        assert_eq!(patience.budget(), None);
        patience.allow(true);
        assert!(patience.budget().is_some());
    }

    #[test]
    fn no_limit_is_no_look() {
        assert_eq!(Patience::new(Duration::ZERO).budget(), None);
    }

    #[test]
    fn a_look_ends_when_something_is_found_or_time_is_up() {
        let mut calls = 0;
        assert!(look(Duration::from_secs(60), || {
            calls += 1;
            calls == 5
        }));
        assert_eq!(calls, 5);
        assert!(!look(Duration::from_micros(10), || false));
    }
}
