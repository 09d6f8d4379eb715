//! Periodic work of a deployment: ends instances and templates that were idle for too long, restores the minimum, and
//! prepares an instance for an expected call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Deployment;
use crate::instance::FREEZE_AFTER;

/// Interval between rounds.
pub const TICK: Duration = Duration::from_millis(500);
/// Parts of a round, each for some of the deployments: what a round does for all of them (an end takes about a
/// millisecond of processor time, a measurement a tenth) would otherwise come at once, and in the way of a request.
pub const TURNS: u32 = 10;
/// How long an end waits for a moment without requests.
const GRACE: Duration = Duration::from_secs(2);
/// Instances stopped per hold of the pool's lock, for which requests wait. Each takes some 50 µs.
const FROZEN_AT_ONCE: usize = 4;

impl Deployment {
    /// Which of the [`TURNS`] of a round is its own.
    pub fn turn(&self) -> u32 {
        u32::try_from(self.id % u64::from(TURNS)).unwrap_or(0)
    }

    /// Call it every [`TICK`].
    pub fn tick(self: &Arc<Self>, now: Instant) {
        if self.is_retired() {
            return;
        }
        let boot = match self.slot.up() {
            Some(_) => Duration::ZERO,
            None => self.keep_value.lock().boot_cost(),
        };
        let tick = {
            let mut pool = self.pool.lock();
            // One tick, because a window may open just after one, plus the expected duration of the start.
            let lead = TICK + (boot + pool.start_cost()) * 2;
            let grace = match self.resources.traffic.running() {
                0 => Duration::ZERO,
                _ => GRACE,
            };
            pool.tick(now, lead, grace)
        };
        if !tick.expired.is_empty() || tick.missed.is_some() || tick.ahead.is_some() {
            self.decisions.note(|counts| {
                counts.expired_idle += tick.expired.len() as u64;
                counts.ahead_missed += u64::from(tick.missed.is_some());
                counts.started_ahead += u64::from(tick.ahead.is_some());
            });
        }
        if tick.ahead == Some(true) {
            tokio::spawn(self.clone().start_one());
        }
        drop(tick);
        self.start_due();
        self.expire_template(now);
        self.freeze_idle(now);
    }

    /// Freezes instances that have been idle for a while.
    fn freeze_idle(&self, now: Instant) {
        if self.becomes()
            && let Some(template) = self.slot.up()
        {
            template.freeze(now);
        }
        let Some(before) = now.checked_sub(FREEZE_AFTER) else {
            return;
        };
        loop {
            let mut pool = self.pool.lock();
            let idle = pool.idle_since(before);
            let frozen = idle.filter_map(|instance| instance.freeze().then_some(()));
            if frozen.take(FROZEN_AT_ONCE).count() < FROZEN_AT_ONCE {
                return;
            }
        }
    }

    fn expire_template(&self, now: Instant) {
        let timeout = Duration::from_secs(self.spec.template_idle_timeout_s.into());
        if timeout.is_zero() || self.slot.up().is_none() {
            return;
        }
        let unused = now.saturating_duration_since(self.pool.lock().last_used());
        if unused >= timeout && self.let_template_go() {
            self.decisions.note(|counts| counts.template_expired += 1);
            tracing::info!(function = %self.name, version = self.version(), "template let go: nobody called for {} s", unused.as_secs());
        }
    }

    /// Evicts the template, unless it is in use or must stay. False if it stays.
    pub(super) fn let_template_go(&self) -> bool {
        // Under the pool's lock: a request that arrives now must find no template rather than one that is ending.
        let pool = self.pool.lock();
        if self.spec.keep_warm || !pool.is_quiet() || self.slot.up().is_none() {
            return false;
        }
        self.want_none_ahead();
        self.slot.clear();
        true
    }
}
