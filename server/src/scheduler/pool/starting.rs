//! Which starts a pool begins, withdraws and repeats.

use std::time::{Duration, Instant};

use super::Pool;
use crate::scheduler::policy::burst::{Queue, pays_after, starts_wanted};

/// Shortest pause before looking at the queue again: the resolution of the runtime's timers.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
/// Pause after a failed start while something else may still serve the waiting requests; doubled with each consecutive
/// failure for starts that nobody waits for.
const RETRY_FAILED: Duration = Duration::from_millis(250);
/// Consecutive failures after which the pause stops growing: 64 s.
const MOST_DOUBLINGS: u32 = 8;

/// Starts to begin now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// For waiting requests.
    pub for_requests: u32,
    /// For the minimum.
    pub for_minimum: u32,
}

impl<I, W> Pool<I, W> {
    #[inline]
    pub(super) fn queue(&self) -> Queue {
        let (since, seen) = self.seen;
        Queue {
            waiting: self.counts().queued,
            busy: self.busy,
            processors: self.limits.processors,
            // Something has ended since: the observation is outdated.
            seen: if since == self.progress {
                seen
            } else {
                Duration::ZERO
            },
        }
    }

    /// Starts that pay off for the waiting requests.
    fn wanted(&self) -> u32 {
        match self.limits.controllers.burst {
            true => starts_wanted(&self.load, self.queue()),
            false => self.queue().waiting,
        }
    }

    pub(super) fn is_backing_off(&self, now: Instant) -> bool {
        self.retry_at.is_some_and(|at| now < at)
    }

    /// How many starts to begin now, counted as begun: those that pay off for the waiting requests, and those missing
    /// from the minimum, within the limit. None if no request waits and the minimum is met.
    pub fn starts_due(&mut self, now: Instant) -> Due {
        let room = self.limits.max.saturating_sub(self.total());
        let backing_off = self.is_backing_off(now);
        let for_requests = if backing_off && self.busy + self.starting > 0 {
            0
        } else {
            self.wanted().saturating_sub(self.starting).min(room)
        };
        let for_minimum = if backing_off {
            0
        } else {
            let lacking = self.limits.min.saturating_sub(self.total() + for_requests);
            lacking.min(room - for_requests)
        };
        self.starting += for_requests + for_minimum;
        Due {
            for_requests,
            for_minimum,
        }
    }

    /// Whether requests wait that one more start might serve.
    #[inline]
    pub fn may_start(&self) -> bool {
        !self.waiting.is_empty() && self.total() < self.limits.max
    }

    /// Whether requests wait that no start is under way for.
    pub fn queues_behind_busy(&self) -> bool {
        self.waiting.len() > self.starting as usize
    }

    /// When to call [`Self::look_again`], if that needs arranging: if nothing has ended by then, one more start pays
    /// off. `None` if it is arranged already, or would not help.
    pub fn alarm(&mut self, now: Instant) -> Option<Instant> {
        if !self.may_start() || self.busy == 0 {
            return None;
        }
        let pays = self.progress + pays_after(&self.load, self.queue(), self.starting)?;
        let at = pays
            .max(self.retry_at.unwrap_or(now))
            .max(now + LEAST_PAUSE);
        // An alarm is replaced only if that halves the wait, so there are never many.
        if let Some(set) = self.alarm
            && at.saturating_duration_since(now) * 2 > set.saturating_duration_since(now)
        {
            return None;
        }
        self.alarm = Some(at);
        Some(at)
    }

    /// An alarm went off. `at` is the arranged time rather than the current one: a machine that was suspended has not
    /// shown that anything runs for long. The caller then asks [`Self::starts_due`].
    pub fn look_again(&mut self, at: Instant) {
        if self.alarm.is_some_and(|set| set <= at) {
            self.alarm = None;
        }
        if self.busy > 0 {
            self.seen = (self.progress, at.saturating_duration_since(self.progress));
        }
    }

    /// Whether a start that had to wait for its place is still useful. If not, it is no longer counted.
    pub fn confirm_start(&mut self, now: Instant) -> bool {
        let missing = self
            .minimum(now)
            .saturating_sub(self.total() - self.starting);
        let wanted = self.wanted().max(missing);
        if self.starting > wanted {
            self.starting -= 1;
            return false;
        }
        true
    }

    /// A start begins to fork. Returns how many are forking, this one included.
    pub fn forks(&mut self) -> u32 {
        self.forking += 1;
        self.forking
    }

    /// The fork ended; `took` is its share of the template's time, if it succeeded.
    pub fn forked(&mut self, took: Option<Duration>) {
        self.forking = self.forking.saturating_sub(1);
        if let Some(took) = took {
            self.load.start.sample(took);
        }
    }

    /// A start succeeded: the instance goes to the longest waiting request, else it is idle.
    pub fn started(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        debug_assert!(self.starting > 0, "a start ended that did not begin");
        self.starting = self.starting.saturating_sub(1);
        (self.failures, self.retry_at) = (0, None);
        self.touch(now);
        self.offer(instance, now)
    }

    /// A start failed. Returns the waiters that no instance will ever serve, to be answered.
    pub fn start_failed(&mut self, now: Instant) -> Vec<W> {
        debug_assert!(self.starting > 0, "a start ended that did not begin");
        self.starting = self.starting.saturating_sub(1);
        let doublings = self.failures.min(MOST_DOUBLINGS);
        self.failures = self.failures.saturating_add(1);
        let someone_waits = !self.waiting.is_empty();
        let pause = RETRY_FAILED * if someone_waits { 1 } else { 1 << doublings };
        self.retry_at = Some(now + pause);
        if self.starting == 0 && self.busy == 0 && self.idle.is_empty() {
            self.waiting.drain(..).collect()
        } else {
            Vec::new()
        }
    }
}
