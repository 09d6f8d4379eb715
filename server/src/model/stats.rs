//! Latency statistics of a function over a window.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The samples that a percentile needs, by its quantile in thousandths: with fewer, its nearest rank is the largest sample, and
/// the figure would be the maximum under another name. Every percentile that Hearth shows is held to this.
///
/// 2 for the median, 10 for p90, 20 for p95, 100 for p99, 1,000 for p99.9.
#[must_use]
pub const fn samples_needed(per_mille: u64) -> u64 {
    assert!(per_mille < 1000, "a percentile below the maximum");
    1000_u64.div_ceil(1000 - per_mille)
}

/// Percentiles of a duration in µs by nearest rank, as observed (not corrected for coordinated omission). `null` if
/// there are too few samples for the percentile to differ from the maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Percentiles {
    /// Median; `null` with fewer than 2 samples.
    pub p50: Option<u64>,
    /// 90th percentile; `null` with fewer than 10 samples.
    pub p90: Option<u64>,
    /// 99th percentile; `null` with fewer than 100 samples.
    pub p99: Option<u64>,
    /// 99.9th percentile; `null` with fewer than 1,000 samples.
    pub p999: Option<u64>,
    /// Longest; `null` when nothing was recorded.
    pub max: Option<u64>,
}

/// Percentiles of each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StageStats {
    /// Waiting for a free instance.
    pub queue: Percentiles,
    /// Starting an instance.
    pub start: Percentiles,
    /// Delivering the request to the handler.
    pub send: Percentiles,
    /// The handler.
    pub run: Percentiles,
    /// Delivering the response.
    pub recv: Percentiles,
}

/// Invocations by start kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartCounts {
    /// An idle instance.
    pub warm: u64,
    /// A fork of the template.
    pub fork: u64,
    /// A restored template.
    pub restore: u64,
    /// A booted runtime.
    pub boot: u64,
}

/// `GET …/{name}/stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Length of the window in seconds.
    pub window_s: u64,
    /// Finished invocations in it.
    pub count: u64,
    /// Unsuccessful invocations.
    pub errors: u64,
    /// Counts by start kind.
    pub starts: StartCounts,
    /// The whole invocation.
    pub total_us: Percentiles,
    /// Stage by stage.
    pub stages_us: StageStats,
    /// p99 divided by p50 of the total; `null` with fewer than 100 samples.
    pub tail_to_median: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_as_many_samples_as_keep_it_from_being_the_maximum() {
        for (per_mille, needed) in [(500, 2), (900, 10), (950, 20), (990, 100), (999, 1000)] {
            assert_eq!(samples_needed(per_mille), needed);
            let rank = |samples: u64| (per_mille * samples).div_ceil(1000);
            assert!(rank(needed) < needed, "one sample is above it");
            assert_eq!(rank(needed - 1), needed - 1, "it is the largest");
        }
    }
}
