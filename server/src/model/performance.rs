//! How fast a function's versions run, over time.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::GateState;

/// A change as a share of the time before, 0.05 being 5 % slower, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Change {
    /// The change of the median.
    pub estimate: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Change {
    /// Whether the interval excludes 0.
    pub fn is_found(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// A version's warm runs in a window: the newest 2,000 of them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VersionPerformance {
    /// The version.
    pub version: u32,
    /// When it was deployed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it first became active; null if it never was.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub activated_at: Option<Timestamp>,
    /// Successful invocations of warm instances that were looked at.
    pub runs: u64,
    /// Median of their `run`, µs; null with fewer than 2.
    pub median_us: Option<u64>,
    /// Their 99th percentile; null with fewer than 100.
    pub p99_us: Option<u64>,
    /// Change from the version before it that has runs, at 99 % confidence; null with fewer than 20 runs of either. Observed: requests
    /// and host may have differed. A duet compares under the same conditions.
    pub change: Option<Change>,
}

/// Warm runs of a version in a part of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct PerformancePoint {
    /// When the part begins.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The version.
    pub version: u32,
    /// Runs that were looked at: of the newest 1,000 invocations of the part.
    pub runs: u64,
    /// Median of their `run`, µs.
    pub median_us: u64,
    /// Their 99th percentile; null with fewer than 100.
    pub p99_us: Option<u64>,
}

/// What a duet said of an event.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ComparedEvent {
    /// The event's name.
    pub name: String,
    /// The change with its interval; null with too few trials.
    pub change: Option<Change>,
    /// `no_change`, `possible`, `faster`, `slower`; null where nothing could be said.
    pub verdict: Option<String>,
}

/// A duet or replay of two versions.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VersionComparison {
    /// The experiment: `/api/v1/experiments/{id}`.
    pub experiment: i64,
    /// `duet` or `replay`.
    pub kind: String,
    /// The version that was compared with.
    pub first: u32,
    /// The version that was compared.
    pub second: u32,
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    pub ended_at: Timestamp,
    /// What the function's gate made of it; null if no gate asked.
    pub gate: Option<GateState>,
    /// Confidence of the intervals, 0 to 1.
    pub confidence: f64,
    /// One for each event.
    pub events: Vec<ComparedEvent>,
}

/// `GET …/{name}/performance`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Performance {
    /// Name of the function.
    pub function: String,
    /// When the window begins.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// Length of a part of it, seconds.
    pub part_s: u64,
    /// Versions that ran in the window or are active, newest first; at most 50.
    pub versions: Vec<VersionPerformance>,
    /// Their warm runs over time, oldest first.
    pub points: Vec<PerformancePoint>,
    /// Duets and replays of two versions that ended in the window, newest first; at most 200.
    pub comparisons: Vec<VersionComparison>,
}
