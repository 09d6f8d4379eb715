//! How long to wait for a peer: a time budget that received bytes refill at a rate, up to its initial value.
//!
//! A timeout per byte or per chunk is no limit: a peer that sends one byte just before each timeout can stay forever.
//! Here waiting spends the budget and a byte earns `1 / rate` seconds, so a peer slower than `rate` runs out of it
//! however the bytes are spread, while faster peers may pause for up to the whole budget. Only waiting counts, not the
//! server's own processing time.

use std::time::{Duration, Instant};

/// The budget of one direction of one exchange. The clock is the caller's.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The whole budget.
    slack: Duration,
    /// Bytes that earn one second.
    rate: u64,
    /// What is left of the budget.
    left: Duration,
    /// What is left of the time that all waiting may take.
    total: Duration,
    /// When this wait began, during one.
    since: Option<Instant>,
}

impl Pace {
    /// A full budget of `slack`, refilled at `rate` bytes per second; total waiting is limited to `total`.
    pub fn new(slack: Duration, rate: u64, total: Duration) -> Self {
        Self {
            slack,
            rate: rate.max(1),
            left: slack,
            total,
            since: None,
        }
    }

    /// The peer is waited for at `now`, perhaps already since an earlier call. Returns when to give it up.
    pub fn waiting(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + self.left.min(self.total)
    }

    /// Whether there is a wait.
    pub fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// The peer did something at `now`: ends a wait, and earns what the bytes are worth.
    pub fn moved(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        if let Some(since) = self.since.take() {
            let waited = now().saturating_duration_since(since);
            self.left = self.left.saturating_sub(waited);
            self.total = self.total.saturating_sub(waited);
        }
        if self.left < self.slack {
            let micros = (bytes as u64).saturating_mul(1_000_000) / self.rate;
            self.left = (self.left + Duration::from_micros(micros)).min(self.slack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: Duration = Duration::from_secs(20);
    const RATE: u64 = 4096;

    /// How long a peer lasts that sends `bytes` after each `pause`, up to `rounds` times.
    fn lasts(bytes: usize, pause: Duration, rounds: u32, total: Duration) -> Option<Duration> {
        let begun = Instant::now();
        let mut now = begun;
        let mut pace = Pace::new(SLACK, RATE, total);
        for _ in 0..rounds {
            let until = pace.waiting(now);
            if until < now + pause {
                return Some(until - begun);
            }
            now += pause;
            pace.moved(bytes, || now);
        }
        None
    }

    #[test]
    fn single_bytes_buy_no_time() {
        let hour = Duration::from_secs(3600);
        for pause in [1, 100, 1000, 5000, 19_000] {
            let pause = Duration::from_millis(pause);
            let lasted = lasts(1, pause, 1_000_000, hour).expect("given up");
            assert!(lasted < SLACK * 2, "{pause:?}: {lasted:?}");
        }
        assert_eq!(lasts(0, hour, 1, hour), Some(SLACK));
    }

    #[test]
    fn who_is_fast_enough_is_waited_for_until_the_whole_time_is_up() {
        let hour = Duration::from_secs(3600);
        // 1 Mbit/s in steps of a second, with a pause of 15 s each time a megabyte is through.
        assert_eq!(lasts(125_000, Duration::from_secs(1), 3000, hour), None);
        assert_eq!(lasts(1 << 20, Duration::from_secs(15), 200, hour), None);
        let most = Duration::from_secs(60);
        let lasted = lasts(1 << 20, Duration::from_secs(1), 3000, most);
        assert_eq!(lasted, Some(most));
    }

    #[test]
    fn asking_again_does_not_begin_anew() {
        let now = Instant::now();
        let mut pace = Pace::new(SLACK, RATE, SLACK * 9);
        let first = pace.waiting(now);
        assert_eq!(pace.waiting(now + SLACK / 2), first);
        assert!(pace.is_waiting());
    }
}
