//! Latency statistics of a function over a window.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Percentiles of a duration, in µs, each observed (not corrected for coordinated omission). All 0 when nothing was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Percentiles {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Longest.
    pub max: u64,
}

/// Percentiles of each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StageStats {
    /// Waiting for an instance to be free.
    pub queue: Percentiles,
    /// Starting an instance.
    pub start: Percentiles,
    /// Delivering the request, until the handler is called.
    pub send: Percentiles,
    /// The handler.
    pub run: Percentiles,
    /// Delivering the response.
    pub recv: Percentiles,
}

/// Invocations by the rung they started from.
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
    /// Those that did not succeed.
    pub errors: u64,
    /// By start rung.
    pub starts: StartCounts,
    /// The whole invocation.
    pub total_us: Percentiles,
    /// Stage by stage.
    pub stages_us: StageStats,
    /// p99 divided by p50 of the total; 0 when nothing was recorded.
    pub tail_to_median: f64,
}
