//! The policy of one function version: who gets an instance, when one is started, who waits, who is refused.
//!
//! Pure: it does nothing but account, takes the clock as a parameter and is generic over what an instance and a waiter
//! are, so that units and property tests exercise it with plain numbers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The numbers a pool obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most instances at one time, those being started included.
    pub max: u32,
    /// Idle instances are not expired below this number.
    pub min: u32,
    /// Most waiting requests.
    pub queue: u32,
    /// How long an instance may be idle.
    pub idle_timeout: Duration,
}

/// What a request gets at once.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired<I> {
    /// An idle instance, now busy.
    Leased(I),
    /// Nothing: call [`Pool::enqueue`].
    Wait,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<W>(pub W);

/// Counts of one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting for a request.
    pub idle: u32,
    /// Serving one.
    pub busy: u32,
    /// Being started.
    pub starting: u32,
    /// Waiting requests.
    pub queued: u32,
}

struct Idle<I> {
    instance: I,
    since: Instant,
}

/// Instances (`I`) and waiting requests (`W`) of one function version.
pub struct Pool<I, W> {
    limits: Limits,
    /// The most recently used last: it is leased first, its caches being warm, so that the rest can expire.
    idle: Vec<Idle<I>>,
    busy: u32,
    starting: u32,
    waiting: VecDeque<W>,
}

impl<I, W> Pool<I, W> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            idle: Vec::new(),
            busy: 0,
            starting: 0,
            waiting: VecDeque::new(),
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

    /// Whether nothing lives, starts or waits.
    pub fn is_quiet(&self) -> bool {
        self.busy == 0 && self.starting == 0 && self.waiting.is_empty() && self.idle.is_empty()
    }

    fn total(&self) -> u32 {
        self.counts().idle + self.busy + self.starting
    }

    /// Leases the most recently used idle instance. Those who wait already are not overtaken: there is an idle instance
    /// only when nobody waits.
    pub fn acquire(&mut self) -> Acquired<I> {
        match self.idle.pop() {
            Some(idle) => {
                self.busy += 1;
                Acquired::Leased(idle.instance)
            }
            None => Acquired::Wait,
        }
    }

    /// Queues a request; the caller then asks [`Self::starts_due`].
    ///
    /// # Errors
    /// [`Full`] gives the request back.
    pub fn enqueue(&mut self, waiter: W) -> Result<(), Full<W>> {
        let room_to_start = self.total() < self.limits.max;
        // Whom a start under way will serve takes no place in the queue.
        let places = self.limits.queue as usize + self.starting as usize;
        if self.waiting.len() >= places && !room_to_start {
            return Err(Full(waiter));
        }
        self.waiting.push_back(waiter);
        Ok(())
    }

    /// How many starts to begin now, counted as begun: one for each request that no start under way will serve, and
    /// what `min_instances` lacks, within the limit.
    pub fn starts_due(&mut self) -> u32 {
        let unserved = u32::try_from(self.waiting.len())
            .unwrap_or(u32::MAX)
            .saturating_sub(self.starting);
        let below_min = self.limits.min.saturating_sub(self.total());
        let room = self.limits.max.saturating_sub(self.total());
        let starts = unserved.max(below_min).min(room);
        self.starting += starts;
        starts
    }

    /// A start is over: the instance goes to who waits longest, else it is idle.
    pub fn started(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        debug_assert!(self.starting > 0, "a start ended that did not begin");
        self.starting = self.starting.saturating_sub(1);
        self.offer(instance, now)
    }

    /// A start failed. Returns who must be told: everybody that no instance will ever serve.
    pub fn start_failed(&mut self) -> Vec<W> {
        debug_assert!(self.starting > 0, "a start ended that did not begin");
        self.starting = self.starting.saturating_sub(1);
        if self.starting == 0 && self.busy == 0 {
            self.waiting.drain(..).collect()
        } else {
            Vec::new()
        }
    }

    /// A lease is over and the instance is well: it goes to who waits longest, else it is idle.
    pub fn release(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        debug_assert!(self.busy > 0, "a lease ended that did not begin");
        self.busy = self.busy.saturating_sub(1);
        self.offer(instance, now)
    }

    /// A lease is over and the instance is not to be used again. The caller then asks [`Self::starts_due`].
    pub fn discard(&mut self) {
        debug_assert!(self.busy > 0, "a lease ended that did not begin");
        self.busy = self.busy.saturating_sub(1);
    }

    fn offer(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        if let Some(waiter) = self.waiting.pop_front() {
            self.busy += 1;
            return Some((waiter, instance));
        }
        self.idle.push(Idle {
            instance,
            since: now,
        });
        None
    }

    /// The waiter did not take what [`Self::release`] or [`Self::started`] gave it: offer the instance anew.
    pub fn declined(&mut self, instance: I, now: Instant) -> Option<(W, I)> {
        self.release(instance, now)
    }

    /// Takes out waiters that gave up.
    pub fn retain_waiting(&mut self, keep: impl FnMut(&W) -> bool) {
        self.waiting.retain(keep);
    }

    /// Takes out the idle instances that match: those that died.
    pub fn remove_idle(&mut self, mut matches: impl FnMut(&I) -> bool) -> Vec<I> {
        self.idle
            .extract_if(.., |idle| matches(&idle.instance))
            .map(|idle| idle.instance)
            .collect()
    }

    /// Takes out the instances that were idle for too long, oldest first, keeping the minimum.
    pub fn expired(&mut self, now: Instant) -> Vec<I> {
        let spare = self.total().saturating_sub(self.limits.min) as usize;
        let timeout = self.limits.idle_timeout;
        let old = self
            .idle
            .iter()
            .take_while(|idle| now.saturating_duration_since(idle.since) >= timeout)
            .count();
        self.idle
            .drain(..old.min(spare))
            .map(|idle| idle.instance)
            .collect()
    }

    /// When [`Self::expired`] will next have something to give.
    pub fn next_expiry(&self) -> Option<Instant> {
        if self.total() <= self.limits.min {
            return None;
        }
        self.idle
            .first()
            .map(|idle| idle.since + self.limits.idle_timeout)
    }

    /// Takes out all idle instances and wants none from now on: the version no longer answers. Who waits is still served.
    pub fn retire(&mut self) -> Vec<I> {
        self.limits.min = 0;
        self.limits.idle_timeout = Duration::ZERO;
        self.idle.drain(..).map(|idle| idle.instance).collect()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
