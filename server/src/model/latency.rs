//! Latency distribution of a function in a window, and its change over time.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Percentiles, Stats};

/// A bar of a histogram: (above µs, up to µs, count). The bounds grow by a fixed factor.
pub type Bar = (u64, u64, u64);

/// `GET …/{name}/latency`: `stats` and the distributions behind them. Latency is measured on the server, from a
/// request's admission to the end of its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Latency {
    /// Counts and percentiles.
    #[serde(flatten)]
    pub stats: Stats,
    /// Start of the counts: the first minute (or quarter of an hour, in windows of more than two hours) in the window.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// Histogram of total latency: non-empty bars as (above µs, up to µs, count), sixteen per decade.
    pub histogram: Vec<(u64, u64, u64)>,
    /// Invocations served by an idle instance.
    pub warm: Distribution,
    /// Invocations that needed a start: fork, restore or boot.
    pub cold: Distribution,
    /// Invocations recorded before warm and cold were distinguished; in neither.
    pub undivided: u64,
    /// Total latency over time.
    pub heat_map: HeatMap,
}

/// Distribution of a part of the invocations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Distribution {
    /// Invocations.
    pub count: u64,
    /// Percentiles of total latency.
    pub total_us: Percentiles,
    /// Histogram of total latency, as in `histogram`.
    pub histogram: Vec<(u64, u64, u64)>,
}

/// Counts by time and latency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeatMap {
    /// Upper bounds of the rows in µs, inclusive, eight per decade.
    pub bounds_us: Vec<u64>,
    /// Non-empty columns, oldest first.
    pub columns: Vec<HeatColumn>,
}

/// A column of the heat map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeatColumn {
    /// When it begins.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// Width in seconds: 5, 60, 900 or 3600 depending on the window; 60 instead of 5 for minutes before the server
    /// started.
    pub seconds: u32,
    /// Non-empty rows as (index into `bounds_us`, count).
    #[schema(value_type = Vec<(u64, u64)>)]
    pub counts: Vec<(u32, u64)>,
}
