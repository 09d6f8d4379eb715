//! Statistics of the invocations that finished in a span of time: counts and one histogram per stage.
//!
//! The same type is the live minute, a rollup read back, and the sum over a window.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};

use crate::model::{
    Percentiles, StageStats, Stages, StartCounts, StartKind, Stats, Status, samples_needed,
};
use crate::store::{RollupCounts, RollupRow};

use super::bounds::{HIGHEST, empty};
use super::codec::{self, Counts};
use super::parts::Parts;

/// Queue, start, send, run, recv, total.
const STAGES: usize = 6;

/// Why a rollup could not be written or read back.
#[derive(Debug, thiserror::Error)]
pub(super) enum SliceError {
    /// The histogram could not be serialized.
    #[error("serialize a histogram: {0:?}")]
    Serialize(hdrhistogram::serialization::V2SerializeError),
    /// Not one of our histograms: another encoding or other bounds.
    #[error("read a histogram: unknown format")]
    Foreign,
    /// A corrupt histogram.
    #[error("read a histogram: corrupt data")]
    Cut,
    /// The histograms do not fit.
    #[error("add a histogram: {0}")]
    Add(hdrhistogram::errors::AdditionError),
}

/// Place of the total among the stages.
const TOTAL: usize = STAGES - 1;

/// Counts and histograms. 24 KiB for each stage.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    counts: RollupCounts,
    stages: [Histogram<u64>; STAGES],
    /// The totals again, by start kind.
    parts: Parts,
}

impl Slice {
    /// Nothing counted yet.
    pub(super) fn new() -> Self {
        Self {
            counts: RollupCounts::default(),
            stages: std::array::from_fn(|_| empty()),
            parts: Parts::default(),
        }
    }

    /// Numbers without histograms.
    pub(super) fn counts(&self) -> &RollupCounts {
        &self.counts
    }

    /// The histogram of the totals.
    pub(super) fn total(&self) -> &Histogram<u64> {
        &self.stages[TOTAL]
    }

    /// The totals as values, as [`recorded_as`](super::bounds::recorded_as) has them, and how often.
    pub(super) fn totals(&self) -> Counts {
        let recorded = self.total().iter_recorded();
        recorded
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect()
    }

    /// The totals by kind of start.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Counts a finished invocation. Every stage counts, also one that took no time or was not reached (0): the
    /// percentiles of `queue` and `start` are over all invocations.
    pub(super) fn record(&mut self, status: Status, start: Option<StartKind>, s: &Stages) {
        count(&mut self.counts, status, start, s);
        for (histogram, duration) in self.stages.iter_mut().zip(durations(s)) {
            histogram.saturating_record(duration);
        }
        self.parts.record(start, s.total);
    }

    /// Adds another span.
    pub(super) fn add(&mut self, other: &Self) -> Result<(), SliceError> {
        for (sum, histogram) in self.stages.iter_mut().zip(&other.stages) {
            sum.add(histogram).map_err(SliceError::Add)?;
        }
        self.parts.add(&other.parts)?;
        self.add_counts(&other.counts);
        Ok(())
    }

    /// Adds a stored rollup: all of it or, when one of its histograms cannot be read, nothing.
    pub(super) fn add_row(&mut self, row: &RollupRow) -> Result<(), SliceError> {
        self.add_read(&Decoded::of(row)?);
        Ok(())
    }

    /// Adds a stored rollup.
    pub(super) fn add_read(&mut self, row: &Decoded) {
        for (sum, counts) in self.stages.iter_mut().zip(&row.stages) {
            codec::add(counts, sum);
        }
        self.parts.add_read(row);
        self.add_counts(&row.counts);
    }

    fn add_counts(&mut self, other: &RollupCounts) {
        let counts = &mut self.counts;
        counts.count += other.count;
        counts.errors += other.errors;
        for (sum, count) in counts.starts.iter_mut().zip(other.starts) {
            *sum += count;
        }
        for (longest, max) in counts.max.iter_mut().zip(other.max) {
            *longest = (*longest).max(max);
        }
    }

    /// As it is stored: `minutes` minutes from `minute` on.
    pub(super) fn to_row(
        &self,
        function: i64,
        minute: i64,
        minutes: i64,
    ) -> Result<RollupRow, SliceError> {
        let mut serializer = V2Serializer::new();
        let mut stages: [Vec<u8>; STAGES] = Default::default();
        for (bytes, histogram) in stages.iter_mut().zip(&self.stages) {
            *bytes = serialized(&mut serializer, histogram)?;
        }
        let (cold, unserved) = self.parts.to_blobs(&mut serializer)?;
        Ok(RollupRow {
            function,
            minute,
            minutes,
            counts: self.counts,
            stages,
            cold,
            unserved,
        })
    }

    /// The view for the API.
    pub(super) fn stats(&self, window_s: u64) -> Stats {
        let [queue, start, send, run, recv, total] =
            std::array::from_fn(|stage| percentiles(&self.stages[stage], self.counts.max[stage]));
        let [warm, fork, restore, boot] = self.counts.starts;
        Stats {
            window_s,
            count: self.counts.count,
            errors: self.counts.errors,
            starts: StartCounts {
                warm,
                fork,
                restore,
                boot,
            },
            total_us: total,
            stages_us: StageStats {
                queue,
                start,
                send,
                run,
                recv,
            },
            // A median below the clock's resolution counts as 1 µs.
            tail_to_median: (total.p99.zip(total.p50))
                .map(|(p99, p50)| p99 as f64 / p50.max(1) as f64),
        }
    }
}

/// The stages in the order of the histograms.
fn durations(s: &Stages) -> [u64; STAGES] {
    [s.queue, s.start, s.send, s.run, s.recv, s.total]
}

/// Counts a finished invocation, but for the histograms.
pub(super) fn count(
    counts: &mut RollupCounts,
    status: Status,
    start: Option<StartKind>,
    stages: &Stages,
) {
    counts.count += 1;
    counts.errors += u64::from(status != Status::Succeeded);
    if let Some(start_kind) = start {
        counts.starts[kind_index(start_kind)] += 1;
    }
    for (max, duration) in counts.max.iter_mut().zip(durations(stages)) {
        *max = (*max).max(duration);
    }
}

/// Index of a start kind in the counts.
pub(super) fn kind_index(start_kind: StartKind) -> usize {
    match start_kind {
        StartKind::Warm => 0,
        StartKind::Fork => 1,
        StartKind::Restore => 2,
        StartKind::Boot => 3,
    }
}

/// Nearest rank, not interpolated: the q-th percentile is the smallest recorded duration that at least q of all are not
/// above, at the histogram's resolution (its bucket's upper edge, but never above the longest that was observed). None where
/// there are too few samples.
pub(super) fn percentiles(histogram: &Histogram<u64>, max: u64) -> Percentiles {
    let at = |per_mille: u64| {
        (histogram.len() >= samples_needed(per_mille)).then(|| {
            histogram
                .value_at_quantile(per_mille as f64 / 1000.0)
                .min(max)
        })
    };
    Percentiles {
        p50: at(500),
        p90: at(900),
        p99: at(990),
        p999: at(999),
        max: (!histogram.is_empty()).then_some(max),
    }
}

/// Writes a histogram.
pub(super) fn serialized(
    serializer: &mut V2Serializer,
    histogram: &Histogram<u64>,
) -> Result<Vec<u8>, SliceError> {
    let mut bytes = Vec::new();
    serializer
        .serialize(histogram, &mut bytes)
        .map_err(SliceError::Serialize)?;
    Ok(bytes)
}

/// A stored rollup, read: the counts of its histograms, which is little.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) counts: RollupCounts,
    stages: [Counts; STAGES],
    /// Total latency of invocations that needed a start; none if there were none or it is unknown.
    pub(super) cold: Option<Counts>,
    /// Totals of invocations that never got an instance; none as above.
    pub(super) unserved: Option<Counts>,
}

impl Decoded {
    /// Reads a rollup: all of it or, when one of its histograms cannot be read, nothing.
    pub(super) fn of(row: &RollupRow) -> Result<Self, SliceError> {
        let mut stages: [Counts; STAGES] = Default::default();
        for (counts, bytes) in stages.iter_mut().zip(&row.stages) {
            *counts = codec::read(bytes, HIGHEST)?;
        }
        let part = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref();
            bytes.map(|bytes| codec::read(bytes, HIGHEST)).transpose()
        };
        Ok(Self {
            counts: row.counts,
            stages,
            cold: part(&row.cold)?,
            unserved: part(&row.unserved)?,
        })
    }

    /// The totals.
    pub(super) fn total(&self) -> &Counts {
        &self.stages[TOTAL]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(totals: &[u64]) -> Slice {
        let mut slice = Slice::new();
        for total in totals {
            let stages = Stages {
                total: *total,
                ..Stages::default()
            };
            slice.record(Status::Succeeded, Some(StartKind::Fork), &stages);
        }
        slice
    }

    #[test]
    fn nothing_recorded_has_no_percentiles() {
        assert_eq!(
            Slice::new().stats(60),
            Stats {
                window_s: 60,
                ..Stats::default()
            }
        );
    }

    #[test]
    fn the_same_value_is_every_percentile_exactly() {
        for value in [0, 1, 255, 256, 12_345_678, HIGHEST, u64::MAX] {
            let stats = of(&[value; 1000]).stats(60);
            let total = stats.total_us;
            assert_eq!(total.max, Some(value));
            if value <= HIGHEST {
                let all = [total.p50, total.p90, total.p99, total.p999];
                assert_eq!(all, [Some(value); 4]);
                let ratio = if value == 0 { 0.0 } else { 1.0 };
                assert_eq!(stats.tail_to_median, Some(ratio));
            }
        }
    }

    #[test]
    fn a_percentile_without_enough_samples_is_not_the_maximum_but_missing() {
        let known = |count: u64| {
            let stats = of(&(1..=count).collect::<Vec<_>>()).stats(60);
            let total = stats.total_us;
            assert_eq!(total.max, (count > 0).then_some(count));
            assert_eq!(stats.tail_to_median.is_some(), total.p99.is_some());
            [total.p50, total.p90, total.p99, total.p999].map(|value| value.is_some())
        };
        assert_eq!(known(0), [false; 4]);
        assert_eq!(known(1), [false; 4]);
        assert_eq!(known(2), [true, false, false, false]);
        // The review's cold starts: "p90, p99, p99.9 and max are all 16.3 ms" of nine.
        assert_eq!(known(9), [true, false, false, false]);
        assert_eq!(known(10), [true, true, false, false]);
        assert_eq!(known(99), [true, true, false, false]);
        assert_eq!(known(100), [true, true, true, false]);
        assert_eq!(known(999), [true, true, true, false]);
        assert_eq!(known(1000), [true; 4]);
    }

    #[test]
    fn a_rollup_that_cannot_be_read_changes_nothing() {
        let row = of(&[10, 20]).to_row(1, 2, 1).unwrap();
        let mut sum = of(&[5]);
        for length in [0, 3, row.stages[5].len() - 1] {
            let mut broken = row.clone();
            broken.stages[5].truncate(length);
            assert!(sum.add_row(&broken).is_err());
        }
        assert_eq!(sum.stats(1), of(&[5]).stats(1));
    }

    proptest! {
        /// Percentiles are those of the sorted list (nearest rank), not below and at most 1 % above; and it makes no
        /// difference whether the values were counted in one slice, in two, or in one that was stored.
        #[test]
        fn percentiles_are_those_of_the_sorted_list(
            mut left in proptest::collection::vec(0..900_000_000_u64, 1..200),
            right in proptest::collection::vec(0..2_000_u64, 0..200),
        ) {
            let mut sum = of(&left);
            sum.add(&of(&right)).unwrap();
            let mut read = of(&right);
            read.add_row(&of(&left).to_row(1, 2, 1).unwrap()).unwrap();
            prop_assert_eq!(read.stats(9), sum.stats(9));

            left.extend(right);
            left.sort_unstable();
            let total = sum.stats(9).total_us;
            prop_assert_eq!(total.max, Some(left[left.len() - 1]));
            let ranked = [(500, total.p50), (900, total.p90), (990, total.p99), (999, total.p999)];
            for (per_mille, shown) in ranked {
                let enough = left.len() as u64 >= samples_needed(per_mille);
                prop_assert_eq!(shown.is_some(), enough);
                let Some(shown) = shown else { continue };
                let quantile = per_mille as f64 / 1000.0;
                let rank = (quantile * left.len() as f64).ceil() as usize;
                let exact = left[rank - 1];
                prop_assert!(exact <= shown && shown <= exact + exact / 100 + 1, "{quantile}: {exact} {shown}");
            }
        }
    }
}
