//! Latency since the server started, in buckets that grow by a fixed factor: eight per decade, for the console's
//! logarithmic axis and for `/metrics`, at 600 bytes per function.

use super::LiveHistogram;
use super::bounds::middle_of;
use super::codec::Counts;

/// Upper bounds in µs, inclusive: 10^(k/8) rounded, without those that would repeat; the last is beyond the longest
/// invocation (900 s) with its waiting time.
pub(super) const BOUNDS: [u64; 71] = [
    1,
    2,
    3,
    4,
    6,
    7,
    10,
    13,
    18,
    24,
    32,
    42,
    56,
    75,
    100,
    133,
    178,
    237,
    316,
    422,
    562,
    750,
    1_000,
    1_334,
    1_778,
    2_371,
    3_162,
    4_217,
    5_623,
    7_499,
    10_000,
    13_335,
    17_783,
    23_714,
    31_623,
    42_170,
    56_234,
    74_989,
    100_000,
    133_352,
    177_828,
    237_137,
    316_228,
    421_697,
    562_341,
    749_894,
    1_000_000,
    1_333_521,
    1_778_279,
    2_371_374,
    3_162_278,
    4_216_965,
    5_623_413,
    7_498_942,
    10_000_000,
    13_335_214,
    17_782_794,
    23_713_737,
    31_622_777,
    42_169_650,
    56_234_133,
    74_989_421,
    100_000_000,
    133_352_143,
    177_827_941,
    237_137_371,
    316_227_766,
    421_696_503,
    562_341_325,
    749_894_209,
    1_000_000_000,
];

/// Counts by bucket.
#[derive(Debug, Clone)]
pub(super) struct Buckets([u64; BOUNDS.len()]);

impl Default for Buckets {
    fn default() -> Self {
        Self([0; BOUNDS.len()])
    }
}

impl Buckets {
    /// Counts a duration in µs; durations beyond the last bound go into the last bucket.
    pub(super) fn record(&mut self, duration: u64) {
        self.record_many(duration, 1);
    }

    /// Counts a duration in µs `count` times.
    pub(super) fn record_many(&mut self, duration: u64, count: u64) {
        let index = BOUNDS.partition_point(|bound| *bound < duration);
        self.0[index.min(BOUNDS.len() - 1)] += count;
    }

    /// Counts what a histogram holds, each at the middle of what it does not tell apart.
    pub(super) fn add_counts(&mut self, counts: &Counts) {
        for (value, count) in counts {
            self.record_many(middle_of(*value), *count);
        }
    }

    /// Adds another's counts.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    /// The buckets that hold something: place in [`BOUNDS`] and count.
    pub(super) fn indexed(&self) -> Vec<(u32, u64)> {
        (0..).zip(self.0).filter(|(_, count)| *count > 0).collect()
    }

    /// The buckets that hold something: upper bound in µs and count.
    pub(super) fn filled(&self) -> Vec<(u64, u64)> {
        BOUNDS
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// The buckets that hold something.
    pub(super) fn live(&self, count: u64, errors: u64) -> LiveHistogram {
        LiveHistogram {
            count,
            errors,
            buckets: self.filled(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_eight_a_decade() {
        let mut exact: Vec<u64> = (0..=72)
            .map(|k| 10_f64.powf(f64::from(k) / 8.0).round() as u64)
            .collect();
        exact.dedup();
        assert_eq!(exact, BOUNDS);
    }

    #[test]
    fn bounds_are_inclusive_and_the_ends_are_open() {
        let mut buckets = Buckets::default();
        for duration in [0, 1, 2, 3, 5, 100, 101, u64::MAX] {
            buckets.record(duration);
        }
        let live = buckets.live(8, 1);
        assert_eq!(
            live.buckets,
            [
                (1, 2),
                (2, 1),
                (3, 1),
                (6, 1),
                (100, 1),
                (133, 1),
                (1_000_000_000, 1)
            ]
        );
    }
}
