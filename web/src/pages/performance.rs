//! `/functions/{name}/performance`: how fast versions run, over time.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::{FunctionHead, Moment, PlotView, Tab};

/// The windows that are offered: days, and label.
pub const PERIODS: [(u32, &str); 4] = [(1, "1 d"), (7, "7 d"), (30, "30 d"), (90, "90 d")];

/// A version with its figures.
#[derive(Debug, Clone)]
pub struct VersionFigures {
    /// The version.
    pub version: u32,
    /// When it first became active.
    pub active_since: Option<Moment>,
    /// Runs that were looked at, formatted.
    pub runs: String,
    /// Median, formatted.
    pub median: String,
    /// 99th percentile, formatted.
    pub p99: String,
    /// Change from the version before with its interval, formatted.
    pub observed: String,
    /// `slower`, `faster` or nothing.
    pub flag: &'static str,
    /// By what that was found.
    pub flagged_by: &'static str,
}

/// What an experiment said of two versions with an event.
#[derive(Debug, Clone)]
pub struct ComparisonRow {
    /// The experiment.
    pub experiment: i64,
    /// `duet`, `replay` or what a gate said.
    pub kind: &'static str,
    /// Compared with this version …
    pub first: u32,
    /// … was this one.
    pub second: u32,
    /// The event.
    pub event: String,
    /// The change with its interval, formatted.
    pub change: String,
    /// What was decided.
    pub verdict: &'static str,
    /// When it ended.
    pub ended: Moment,
    /// Confidence of the interval, formatted.
    pub confidence: String,
}

/// `performance.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "performance.html")]
pub struct PerformancePage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// A value of [`PERIODS`].
    pub days: u32,
    /// The chart; none if there is nothing to draw.
    pub plot: Option<PlotView>,
    /// Newest first.
    pub versions: Vec<VersionFigures>,
    /// Newest first.
    pub comparisons: Vec<ComparisonRow>,
}

impl PerformancePage {
    const TAB: Tab = Tab::Versions;

    fn shows(&self, days: &u32) -> bool {
        self.days == *days
    }
}
