//! The pool of one function version: its instances, its waiting requests, what to start and what to end.
//!
//! Pure: no I/O, no locks, the clock is a parameter. The caller carries the decisions out. Generic over instances and
//! waiters, so that units and property tests use plain numbers. [`policy::burst`] decides how many starts pay off for a
//! queue, [`policy::periodic`] when the next call is expected.
//!
//! [`policy::burst`]: super::policy::burst
//! [`policy::periodic`]: super::policy::periodic

mod ending;
mod starting;
mod types;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::policy::burst::{Held, Load};
use super::policy::periodic::Rhythm;

pub use ending::Tick;
pub use starting::Due;
pub use types::{Acquired, Counts, Full, Learned, Limits};

struct Idle<I> {
    instance: I,
    since: Instant,
}

/// Instances (`I`) and waiting requests (`W`) of one function version.
pub struct Pool<I, W> {
    limits: Limits,
    /// The most recently used last: it is leased first, because its caches are warm, so that the rest can expire.
    idle: Vec<Idle<I>>,
    busy: u32,
    starting: u32,
    /// The part of `starting` that is forking right now.
    forking: u32,
    waiting: VecDeque<W>,
    load: Load,
    rhythm: Rhythm,
    calls: u64,
    /// When a lease last ended, or the first of the current ones began: something has been busy since.
    progress: Instant,
    /// How long after which `progress` it was observed that nothing has ended.
    seen: (Instant, Duration),
    /// When to look at the queue again.
    alarm: Option<Instant>,
    /// How long an instance is kept for an expected call.
    held: Option<Instant>,
    failures: u32,
    retry_at: Option<Instant>,
    /// The last activity for the function other than a call.
    touched: Instant,
}

impl<I, W> Pool<I, W> {
    /// An empty pool, with the estimates of the function's former version.
    pub fn new(limits: Limits, now: Instant, learned: Option<Learned>) -> Self {
        let (load, rhythm) = match learned {
            Some(Learned { load, rhythm }) => (load, rhythm.continued(limits.idle_timeout)),
            None => (Load::default(), Rhythm::new(limits.idle_timeout)),
        };
        Self {
            limits,
            idle: Vec::new(),
            busy: 0,
            starting: 0,
            forking: 0,
            waiting: VecDeque::new(),
            load,
            rhythm,
            calls: 0,
            progress: now,
            seen: (now, Duration::ZERO),
            alarm: None,
            held: None,
            failures: 0,
            retry_at: None,
            touched: now,
        }
    }

    /// Counts, for the API.
    pub fn counts(&self) -> Counts {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Counts {
            idle: count(self.idle.len()),
            busy: self.busy,
            starting: self.starting,
            queued: count(self.waiting.len()),
        }
    }

    /// Whether nothing is alive, starting or waiting.
    pub fn is_quiet(&self) -> bool {
        self.busy == 0 && self.starting == 0 && self.waiting.is_empty() && self.idle.is_empty()
    }

    fn total(&self) -> u32 {
        self.counts().idle + self.busy + self.starting
    }

    /// The estimates so far.
    pub fn learned(&self) -> Learned {
        Learned {
            load: self.load,
            rhythm: self.rhythm.clone(),
        }
    }

    /// Expected duration of a start.
    pub fn start_cost(&self) -> Duration {
        self.load.start_cost()
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Time of the last activity for the function.
    pub fn last_used(&self) -> Instant {
        let called = self.rhythm.last_call().unwrap_or(self.touched);
        self.touched.max(called)
    }

    /// Notes that the template came up.
    pub fn touch(&mut self, now: Instant) {
        self.touched = self.touched.max(now);
    }

    /// A request arrived. True if an instance was started in advance for it.
    #[inline]
    pub fn arrive(&mut self, now: Instant) -> bool {
        self.calls += 1;
        let awaited = self.rhythm.call(now);
        if awaited {
            self.held = None;
        }
        awaited
    }

    /// Leases the most recently used idle instance. No waiting request is overtaken: an instance becomes idle only if
    /// the queue is empty, and a request joins the queue only if no instance is idle.
    #[inline]
    pub fn acquire(&mut self, now: Instant) -> Acquired<I> {
        debug_assert!(
            self.idle.is_empty() || self.waiting.is_empty(),
            "an idle instance beside a queue"
        );
        match self.idle.pop() {
            Some(idle) => {
                self.lend(now);
                Acquired::Leased(idle.instance)
            }
            None => Acquired::Wait,
        }
    }

    #[inline]
    fn lend(&mut self, now: Instant) {
        if self.busy == 0 {
            self.progress = now;
        }
        self.busy += 1;
    }

    /// Queues a request; the caller then asks [`Self::starts_due`].
    ///
    /// # Errors
    /// [`Full`] gives the request back.
    pub fn enqueue(&mut self, waiter: W) -> Result<(), Full<W>> {
        // A request that a started or startable instance may serve takes no place in the queue.
        let startable = self.limits.max.saturating_sub(self.busy);
        let places = self.limits.queue as usize + startable as usize;
        if self.waiting.len() >= places {
            return Err(Full(waiter));
        }
        self.waiting.push_back(waiter);
        Ok(())
    }

    /// Queues a request again that came to its turn and got an instance that turned out to be dead ([`Self::was_dead`]).
    pub fn enqueue_first(&mut self, waiter: W) {
        self.waiting.push_front(waiter);
    }

    /// Minimum number of instances.
    fn minimum(&self, now: Instant) -> u32 {
        let held = self.held.is_some_and(|until| now <= until);
        self.limits.min.max(u32::from(held))
    }

    /// A lease ended and the instance is healthy: it goes to the longest waiting request, else it is idle.
    #[inline]
    pub fn release(&mut self, instance: I, now: Instant, held: impl Into<Held>) -> Option<(W, I)> {
        self.load.sample(held.into());
        self.progress = now;
        self.put_back(instance, now)
    }

    /// The same where the lease was the instance's first.
    pub fn release_first(&mut self, instance: I, now: Instant, lease: Duration) -> Option<(W, I)> {
        self.load.first.sample(lease);
        self.progress = now;
        self.put_back(instance, now)
    }

    /// A lease of length `took` ended and the instance must not be used again. The caller then asks
    /// [`Self::starts_due`].
    pub fn discard(&mut self, now: Instant, took: Duration) {
        debug_assert!(self.busy > 0, "a lease ended that did not begin");
        self.busy = self.busy.saturating_sub(1);
        self.load.cut_short(took);
        self.progress = now;
    }

    /// The instance just leased turned out to be dead. The caller continues as if it had not existed.
    pub fn was_dead(&mut self) {
        debug_assert!(self.busy > 0, "a lease ended that did not begin");
        self.busy = self.busy.saturating_sub(1);
    }

    /// The waiter did not take what [`Self::release`] or [`Self::started`] gave it: offer the instance again.
    pub fn declined(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        self.put_back(instance, now)
    }

    fn put_back(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        debug_assert!(self.busy > 0, "a lease ended that did not begin");
        self.busy = self.busy.saturating_sub(1);
        self.offer(instance, now)
    }

    fn offer(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        if let Some(waiter) = self.waiting.pop_front() {
            self.lend(now);
            return Some((waiter, instance));
        }
        self.idle.push(Idle {
            instance,
            since: now,
        });
        None
    }

    /// Removes waiters that gave up.
    pub fn retain_waiting(&mut self, keep: impl FnMut(&W) -> bool) {
        self.waiting.retain(keep);
    }

    /// Removes the idle instances that match: those that died.
    pub fn remove_idle(&mut self, mut matches: impl FnMut(&I) -> bool) -> Vec<I> {
        self.idle
            .extract_if(.., |idle| matches(&idle.instance))
            .map(|idle| idle.instance)
            .collect()
    }

    /// Removes all idle instances and keeps none from now on: the version is no longer active. Waiting requests are
    /// still served.
    pub fn retire(&mut self) -> Vec<I> {
        self.limits.min = 0;
        self.limits.idle_timeout = Duration::ZERO;
        self.held = None;
        self.take_oldest(self.idle.len())
    }
}

#[cfg(test)]
mod tests;
