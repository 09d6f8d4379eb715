//! Whether anybody is calling: background work runs in between.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Traffic of the whole server.
#[derive(Debug)]
pub struct Traffic {
    /// Invocations in progress.
    running: AtomicU64,
    /// Most at a time since [`Self::take_most`].
    most: AtomicU64,
    /// When an invocation last ended, in ms since `origin`.
    last: AtomicU64,
    origin: Instant,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            running: AtomicU64::new(0),
            most: AtomicU64::new(0),
            last: AtomicU64::new(0),
            origin: Instant::now(),
        }
    }
}

impl Traffic {
    /// An invocation began.
    pub fn begin(&self) {
        let running = self.running.fetch_add(1, Ordering::AcqRel) + 1;
        // Looked at before it is written: it is every request's.
        if running > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(running, Ordering::Relaxed);
        }
    }

    /// An invocation ended.
    pub fn end(&self) {
        self.note();
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    /// Something else happened that makes calls likely: a deploy.
    pub fn note(&self) {
        self.last.store(self.now(), Ordering::Release);
    }

    /// Invocations in progress.
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Acquire)
    }

    /// Most invocations that were under way at a time since this was last asked.
    pub fn take_most(&self) -> u64 {
        self.most.swap(self.running(), Ordering::Relaxed)
    }

    /// Time since the last call. Nothing while one is running.
    pub fn quiet_for(&self) -> Duration {
        if self.running() > 0 {
            return Duration::ZERO;
        }
        let last = self.last.load(Ordering::Acquire);
        Duration::from_millis(self.now().saturating_sub(last))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_quiet_while_somebody_calls() {
        let traffic = Traffic::default();
        traffic.begin();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(traffic.quiet_for(), Duration::ZERO);
        assert_eq!(traffic.running(), 1);
        traffic.end();
        assert_eq!(traffic.running(), 0);
        std::thread::sleep(Duration::from_millis(2));
        assert!(traffic.quiet_for() > Duration::ZERO);
    }

    #[test]
    fn the_most_at_a_time_is_remembered_once() {
        let traffic = Traffic::default();
        for _ in 0..3 {
            traffic.begin();
        }
        traffic.end();
        assert_eq!((traffic.take_most(), traffic.take_most()), (3, 2));
        traffic.end();
        traffic.end();
        assert_eq!((traffic.take_most(), traffic.take_most()), (2, 0));
    }

    #[test]
    fn a_deploy_counts_from_its_end() {
        let traffic = Traffic {
            origin: Instant::now() - Duration::from_secs(60),
            ..Traffic::default()
        };
        assert!(traffic.quiet_for() >= Duration::from_secs(60));
        traffic.note();
        assert!(traffic.quiet_for() < Duration::from_secs(60));
    }
}
