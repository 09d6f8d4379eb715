//! `/`: how the node and its functions are.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::live::Values;
use crate::pages::{Moment, Percentile};
use crate::sparkline::Sparkline;

/// Something the host can or cannot do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRow {
    /// Its name, as `GET /api/v1/node` has it.
    pub name: String,
    /// Whether it is there.
    pub available: bool,
    /// Its version, where it has one.
    pub version: String,
    /// Why it is not there.
    pub reason: String,
}

/// A function that takes long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRow {
    /// Its name.
    pub name: String,
    /// Median.
    pub p50: Percentile,
    /// 99th percentile.
    pub p99: Percentile,
    /// Formatted count of invocations.
    pub count: String,
}

/// An invocation that did not succeed.
#[derive(Debug, Clone)]
pub struct FailureRow {
    /// Its id.
    pub id: String,
    /// Name of its function.
    pub function: String,
    /// How it ended.
    pub status: Badge,
    /// Type of the error its handler raised; may be empty.
    pub error_type: String,
    /// When.
    pub at: Moment,
}

/// `partials/slowest.html`.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "partials/slowest.html")]
pub struct SlowestPartial {
    /// Slowest first.
    pub rows: Vec<SlowRow>,
}

/// `partials/failures.html`.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "partials/failures.html")]
pub struct FailuresPartial {
    /// Newest first.
    pub rows: Vec<FailureRow>,
}

/// `overview.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "overview.html")]
pub struct OverviewPage {
    /// The frame.
    pub chrome: Chrome,
    /// Whether there are no functions.
    pub is_empty: bool,
    /// What changes.
    pub live: Values,
    /// Requests and errors of the last minutes.
    pub requests: Sparkline,
    /// Functions by state: the state, its key among the values, and its value in the list's filter.
    pub states: Vec<(Badge, &'static str, &'static str)>,
    /// What the host can do.
    pub capabilities: Vec<CapabilityRow>,
    /// Name of the host and its kernel.
    pub host: String,
    /// Version of Hearth.
    pub version: &'static str,
}

impl OverviewPage {
    fn missing(&self) -> usize {
        self.capabilities.iter().filter(|c| !c.available).count()
    }
}
