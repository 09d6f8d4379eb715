//! Lets the server's threads take precedence over the host's other work while [`policy::priority`](crate::scheduler::policy::priority)
//! says so. The host process does it: the server, which has no privilege, may only lower the priority of its threads.

use std::cell::Cell;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::thread::{Pid, gettid};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use super::Engine;
use crate::scheduler::policy::priority::{PERIOD, Priority, Seen};

/// The threads that serve invocations.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Each with its priority: whether it is raised.
    known: Mutex<Vec<(Pid, bool)>>,
    /// An invocation met others that wait for a processor, or the drain begins.
    contended: Notify,
}

impl Threads {
    /// This thread serves invocations, one of which meets others waiting for a processor, or not. Cheap.
    pub(super) fn note(&self, contended: bool) {
        thread_local! {
            static IS_KNOWN: Cell<bool> = const { Cell::new(false) };
        }
        if !IS_KNOWN.replace(true) {
            self.known.lock().push((gettid(), false));
        }
        if contended {
            self.contended.notify_one();
        }
    }

    pub(super) fn begin_drain(&self) {
        self.contended.notify_one();
    }
}

impl Engine {
    /// Until the drain. No timer runs while nobody calls or nobody else computes.
    pub(super) async fn keep_priority(self) {
        let mut policy = Priority::new(self.inner.resources.cores);
        while !self.is_draining() {
            self.inner.threads.contended.notified().await;
            self.prioritize_while_contended(&mut policy).await;
        }
    }

    async fn prioritize_while_contended(&self, policy: &mut Priority) {
        let resources = &self.inner.resources;
        loop {
            let most = resources.traffic.take_most();
            // Without invocations nobody waits for this server, and it is not looked at.
            let are_more = most * 2 > resources.cores.into();
            let busy = most > 0 && self.inner.pressure.is_high(are_more);
            let is_draining = self.is_draining();
            let seen = Seen {
                now: Instant::now(),
                busy,
                most,
                spent: spent(),
            };
            let raised = policy.decide(seen) && !is_draining;
            for (thread, is_raised) in &mut *self.inner.threads.known.lock() {
                if *is_raised != raised {
                    resources.host.prioritize(*thread, raised);
                    *is_raised = raised;
                }
            }
            if is_draining || !busy && !raised {
                return;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

/// The processors' time of all of this process's threads.
fn spent() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .unwrap_or_default()
}
