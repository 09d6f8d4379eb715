//! Invocations under way, counted for the drain and for the decision whether to spin.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::scheduler::policy::priority::Priority;

/// Counts a running invocation, for the drain.
pub(in crate::engine) struct Running(Engine);

impl Running {
    pub(super) fn begin(engine: &Engine) -> Self {
        engine.inner.resources.traffic.begin();
        Self(engine.clone())
    }

    /// One more count of the same.
    pub(super) fn again(&self) -> Self {
        Self::begin(&self.0)
    }

    /// Whether the server ends what still runs.
    pub(super) fn is_cut_off(&self) -> bool {
        self.0.inner.cut_off.load(Ordering::Acquire)
    }

    /// Whether there is a core for each running invocation's instance and one for its thread here, and no other work of
    /// the host waits: then nobody waits for the side that looks before it sleeps. An invocation whose body is still coming
    /// needs neither.
    pub(super) fn has_free_core(&self) -> bool {
        let inner = &self.0.inner;
        let running = inner.resources.traffic.running();
        let at_work = running.saturating_sub(inner.bodies.awaited() as u64);
        let cores = inner.resources.cores;
        let are_more = at_work * 2 > u64::from(cores);
        inner.threads.note(running > Priority::most_raised(cores));
        let contended = inner.pressure.is_high(are_more);
        !inner.resources.busy_poll.is_zero() && !are_more && !contended
    }

    /// The same, of this side and its peer: while this side's threads take precedence, they do not look.
    pub(super) fn may_look(&self) -> bool {
        self.has_free_core() && !self.0.inner.threads.is_raised()
    }

    /// A worker's stamps contradicted this side's clock.
    pub(super) fn count_refused_stamps(&self) {
        self.0.inner.refused_stamps.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request to a chain that is under way, as long as this lives: the drain waits for it.
pub struct Admitted(Running);

impl Admitted {
    /// One more count of the same.
    pub fn again(&self) -> Self {
        Self(self.0.again())
    }

    /// Whether there is a CPU for a member that spins for its next request.
    pub fn has_free_core(&self) -> bool {
        self.0.has_free_core()
    }

    /// Whether the server ends what still runs.
    pub fn is_cut_off(&self) -> bool {
        self.0.is_cut_off()
    }
}

impl Engine {
    /// Admits a request to a chain; nothing while the server drains.
    pub fn admit(&self) -> Option<Admitted> {
        (!self.is_draining()).then(|| Admitted(Running::begin(self)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.inner.resources.traffic.end();
    }
}
