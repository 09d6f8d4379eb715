//! Which idle instances a pool keeps, and which it ends.

use std::time::{Duration, Instant};

use super::Pool;
use crate::scheduler::policy::periodic::Step;

/// Results of a tick.
#[derive(Debug, PartialEq, Eq)]
pub struct Tick<I> {
    /// Instances that were idle for too long.
    pub expired: Vec<I>,
    /// An instance that was ready for an expected call that did not come, to be ended.
    pub missed: Option<Vec<I>>,
    /// A call is expected: `Some(true)` if an instance must be started for it, counted as begun.
    pub ahead: Option<bool>,
}

impl<I, W> Pool<I, W> {
    /// Call it regularly. Starts an instance for an expected call `lead` in advance. Instances are kept for `grace` longer
    /// than they have to be.
    pub fn tick(&mut self, now: Instant, lead: Duration, grace: Duration) -> Tick<I> {
        let mut tick = Tick {
            expired: Vec::new(),
            missed: None,
            ahead: None,
        };
        // With a minimum, an instance is waiting anyway.
        let step = match self.limits.min {
            0 if self.limits.controllers.periodic => self.rhythm.step(now, lead),
            _ => Step::None,
        };
        match step {
            Step::Hold(window) => {
                self.held = Some(window.until);
                let lacking = self.total() == 0;
                self.starting += u32::from(lacking);
                tick.ahead = Some(lacking);
            }
            Step::Missed => {
                self.held = None;
                tick.missed = Some(self.evict(1));
            }
            Step::None => {}
        }
        tick.expired = self.expired(now, grace);
        tick
    }

    /// Removes the instances that were idle for too long, and for `grace` more, oldest first, down to the minimum.
    pub fn expired(&mut self, now: Instant, grace: Duration) -> Vec<I> {
        let surplus = self.total().saturating_sub(self.minimum(now)) as usize;
        let timeout = self.limits.idle_timeout + grace;
        let old = self
            .idle
            .iter()
            .take_while(|idle| now.saturating_duration_since(idle.since) >= timeout)
            .count();
        self.take_oldest(old.min(surplus))
    }

    /// The instances that have been idle since `before` or longer.
    pub fn idle_since(&mut self, before: Instant) -> impl Iterator<Item = &mut I> {
        self.idle
            .iter_mut()
            .filter(move |idle| idle.since <= before)
            .map(|idle| &mut idle.instance)
    }

    /// Idle instances that may be evicted.
    pub fn evictable(&self) -> u32 {
        let surplus = self.total().saturating_sub(self.limits.min);
        self.counts().idle.min(surplus)
    }

    /// Removes up to `count` of those, oldest first.
    pub fn evict(&mut self, count: u32) -> Vec<I> {
        self.take_oldest(count.min(self.evictable()) as usize)
    }

    pub(super) fn take_oldest(&mut self, count: usize) -> Vec<I> {
        self.idle.drain(..count).map(|idle| idle.instance).collect()
    }
}
