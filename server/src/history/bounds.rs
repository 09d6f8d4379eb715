//! What all histograms tell apart.

use std::sync::LazyLock;

use hdrhistogram::Histogram;

/// Two significant digits: a percentile is at most 1 % above what was observed.
const DIGITS: u8 = 2;

/// Longest duration the histograms tell apart, µs: 16 min, the longest run (15 min) with some waiting. What is longer
/// counts as this long; the longest itself is kept exactly beside them.
pub(super) const HIGHEST: u64 = 16 * 60 * 1_000_000;

/// The last that they have a count for, since they have all values up to a power of two. What is longer still counts as [`HIGHEST`].
const LAST: u64 = HIGHEST.next_power_of_two() - 1;

/// One of them, for what depends on the bounds only.
static ANY: LazyLock<Histogram<u64>> = LazyLock::new(empty);

/// One with nothing in it.
pub(super) fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST, DIGITS)
        .expect("constant bounds: 1 ≤ low, 2 low ≤ high, at most 5 digits")
}

/// What a histogram tells of a duration in µs: the longest that it does not tell from it.
pub(super) fn recorded_as(duration: u64) -> u64 {
    let counted = if duration > LAST { HIGHEST } else { duration };
    ANY.highest_equivalent(counted)
}

/// The middle of what a histogram does not tell from this duration in µs.
pub(super) fn middle_of(duration: u64) -> u64 {
    ANY.median_equivalent(duration)
}
