//! How a function's latency is spread over a window, and how that changed in it.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Percentiles, Stats};

/// A bar of a histogram: above so many µs, up to so many µs, count. The bounds grow by a fixed factor.
pub type Bar = (u64, u64, u64);

/// `GET …/{name}/latency`: what `stats` says, and the distributions behind it. Latencies are those the server observed,
/// from a request's admission to the end of its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Latency {
    /// Counts and percentiles.
    #[serde(flatten)]
    pub stats: Stats,
    /// When what is counted begins: the first minute (quarter of an hour, in windows of more than two hours) that the
    /// window touches.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// The totals: bars as above µs, up to µs, count, sixteen a decade; those that hold something.
    pub histogram: Vec<(u64, u64, u64)>,
    /// Of them, the invocations that an idle instance served.
    pub warm: Distribution,
    /// Those that needed a start: fork, restore, boot.
    pub cold: Distribution,
    /// Invocations from before the two were told apart; they are in neither.
    pub undivided: u64,
    /// How the totals changed over the window.
    pub heat_map: HeatMap,
}

/// A part of the totals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Distribution {
    /// Invocations.
    pub count: u64,
    /// Their totals.
    pub total_us: Percentiles,
    /// Their totals as bars, as in `histogram`.
    pub histogram: Vec<(u64, u64, u64)>,
}

/// Counts by time and latency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeatMap {
    /// Upper bounds of the rows in µs, inclusive, eight a decade.
    pub bounds_us: Vec<u64>,
    /// Oldest first; only those in which something finished.
    pub columns: Vec<HeatColumn>,
}

/// A column of the heat map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeatColumn {
    /// When it begins.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// How many seconds it is wide: 5, 60, 900 or 3600 by the window's length; 60 instead of 5 in minutes from before
    /// the server started.
    pub seconds: u32,
    /// Row, as an index into `bounds_us`, and count; rows that hold something.
    #[schema(value_type = Vec<(u64, u64)>)]
    pub counts: Vec<(u32, u64)>,
}
