//! Writes of the history that took long: checkpoints of the database, a slow disk.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::History;

/// A write that takes this long is noted: many times what a batch takes.
const SLOW: Duration = Duration::from_millis(20);
/// Writes that are kept.
const KEPT: usize = 1_000;

/// The last slow writes, oldest first: when each ended, and how long it took, both in µs.
#[derive(Debug, Default)]
pub(super) struct SlowWrites(Mutex<VecDeque<(i64, u64)>>);

impl SlowWrites {
    /// A write has ended now.
    pub(super) fn note(&self, took: Duration) {
        if took < SLOW {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        kept.push_back((Timestamp::now().as_microsecond(), us));
    }

    fn during(&self, from: i64, to: i64) -> Vec<u64> {
        let kept = self.0.lock();
        let overlapping = kept
            .iter()
            .filter(|(end, took)| *end > from && end.saturating_sub_unsigned(*took) < to);
        overlapping.map(|(_, took)| *took).collect()
    }
}

impl History {
    /// How long slow writes took that were under way at a time, µs each.
    pub fn slow_writes(&self, from: Timestamp, to: Timestamp) -> Vec<u64> {
        let writes = &self.inner.slow_writes;
        writes.during(from.as_microsecond(), to.as_microsecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_writes_that_overlap_are_told() {
        let writes = SlowWrites::default();
        writes.note(SLOW - Duration::from_micros(1));
        let now = || Timestamp::now().as_microsecond();
        assert!(writes.during(0, i64::MAX).is_empty());
        let before = now();
        writes.note(Duration::from_secs(1));
        let after = now();
        assert_eq!(writes.during(before - 10, after + 10), [1_000_000]);
        assert_eq!(
            writes.during(before - 600_000, before - 500_000),
            [1_000_000]
        );
        assert!(writes.during(after, after + 10).is_empty(), "ended before");
        assert!(
            writes.during(0, before - 1_000_000).is_empty(),
            "began later"
        );
    }
}
