//! `/functions`: the list of functions.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::pages::RecentStats;

/// One function of the list.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// Its name.
    pub name: String,
    /// `python3`, `node`.
    pub runtime: &'static str,
    /// Whether it can answer.
    pub state: Badge,
    /// Why it cannot.
    pub state_reason: Option<String>,
    /// Instances that wait for a request.
    pub idle: u32,
    /// Instances that serve one.
    pub busy: u32,
    /// Instances being started.
    pub starting: u32,
    /// Most instances at one time.
    pub max_concurrency: u32,
    /// The last five minutes.
    pub recent: RecentStats,
}

/// `functions.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "functions.html")]
pub struct FunctionsPage {
    /// The frame.
    pub chrome: Chrome,
    /// By name.
    pub rows: Vec<FunctionRow>,
}

/// `partials/functions_table.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/functions_table.html")]
pub struct FunctionsTable {
    /// By name.
    pub rows: Vec<FunctionRow>,
    /// The frame: decides what an empty list offers.
    pub chrome: Chrome,
}
