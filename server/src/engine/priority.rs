//! Lets the server's threads take precedence over the host's other work while [`policy::priority`](crate::scheduler::policy::priority)
//! says so. The host process does it: the server, which has no privilege, may only lower the priority of its threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether it is decided periodically.
    is_watched: AtomicBool,
    /// Whether their priority is raised.
    is_raised: AtomicBool,
    /// An invocation has begun while it was not decided periodically, or the drain begins.
    called: Notify,
    /// More invocations are under way than the priority stays raised with.
    crowded: Notify,
}

impl Threads {
    /// This thread serves invocations, and is about to send a request; whether there are too many for a raised priority. Cheap.
    pub(super) fn note(&self, is_crowded: bool) {
        thread_local! {
            static IS_KNOWN: Cell<bool> = const { Cell::new(false) };
        }
        if !IS_KNOWN.replace(true) {
            self.known.lock().push((gettid(), false));
        }
        if !self.is_watched.load(Ordering::Relaxed) {
            self.called.notify_one();
        } else if is_crowded && self.is_raised.swap(false, Ordering::Relaxed) {
            self.crowded.notify_one();
        }
    }

    /// Whether they take precedence over their peers, too: then none looks before it waits, on a processor that its peer may need.
    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    pub(super) fn begin_drain(&self) {
        self.called.notify_one();
        self.crowded.notify_one();
    }
}

impl Engine {
    /// Until the drain. No timer runs while nobody calls.
    pub(super) async fn keep_priority(self) {
        let threads = &self.inner.threads;
        let mut policy = Priority::new(self.inner.resources.cores);
        while !self.is_draining() {
            threads.called.notified().await;
            threads.is_watched.store(true, Ordering::Relaxed);
            self.prioritize_while_called(&mut policy).await;
            threads.is_watched.store(false, Ordering::Relaxed);
        }
    }

    async fn prioritize_while_called(&self, policy: &mut Priority) {
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
            self.prioritize(raised);
            if is_draining || most == 0 && !raised {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = self.inner.threads.crowded.notified() => {
                    policy.lower(Instant::now());
                    self.prioritize(false);
                    tokio::time::sleep(PERIOD).await;
                }
            }
        }
    }

    fn prioritize(&self, raised: bool) {
        let threads = &self.inner.threads;
        for (thread, is_raised) in &mut *threads.known.lock() {
            if *is_raised != raised {
                self.inner.resources.host.prioritize(*thread, raised);
                *is_raised = raised;
            }
        }
        threads.is_raised.store(raised, Ordering::Relaxed);
    }
}

/// The processors' time of all of this process's threads.
fn spent() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .unwrap_or_default()
}
