//! Limits the rate of queries with a token bucket.

use std::time::{Duration, Instant};

/// A token bucket. The caller provides the time, and has it behind a mutex anyway. `governor` would bring its own clock
/// and atomics for these ten lines.
#[derive(Debug)]
pub struct Bucket {
    capacity: f64,
    per_second: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(per_second: u32, capacity: u32, now: Instant) -> Self {
        Self {
            capacity: capacity.into(),
            per_second: per_second.into(),
            level: capacity.into(),
            at: now,
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let passed: Duration = now.saturating_duration_since(self.at);
        self.at = now.max(self.at);
        let filled = self.level + passed.as_secs_f64() * self.per_second;
        self.level = filled.min(self.capacity);
        let there = self.level >= 1.0;
        if there {
            self.level -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, 3, start);
        assert!((0..3).all(|_| bucket.take(start)));
        assert!(!bucket.take(start));
        let later = start + Duration::from_millis(150);
        assert!(bucket.take(later) && !bucket.take(later));
        let much_later = start + Duration::from_secs(60);
        assert!((0..3).all(|_| bucket.take(much_later)));
        assert!(!bucket.take(much_later));
        // A clock that goes backwards takes nothing away.
        assert!(!bucket.take(start));
    }
}
