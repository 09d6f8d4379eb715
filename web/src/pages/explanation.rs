//! Why an invocation took as long as it did, and the invocations of a cell of the heat map.

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::{FunctionHead, HistoryRow, Tab, invocations};

/// A cause with its figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseRow {
    /// What it is called.
    pub name: &'static str,
    /// Its figure in words.
    pub figure: String,
    /// Time it may account for, formatted; a dash where it has none.
    pub time: String,
    /// Its share of the excess, formatted; likewise.
    pub share: String,
    /// What was measured.
    pub scope: &'static str,
}

/// A function that ran meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanRow {
    /// Its name.
    pub function: String,
    /// Invocations.
    pub count: u64,
    /// Those that needed a start.
    pub cold: u64,
    /// How long they overlapped, formatted.
    pub overlap: String,
}

/// An explanation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplanationView {
    /// What most likely explains it.
    pub summary: String,
    /// What may, most first.
    pub causes: Vec<CauseRow>,
    /// Counters with their values: the instance's.
    pub instance: Vec<(&'static str, String)>,
    /// Why there are none of the instance's.
    pub instance_note: &'static str,
    /// The host's and the sandbox's.
    pub host: Vec<(&'static str, String)>,
    /// Between which samples, or why there are none.
    pub host_note: String,
    /// What else ran.
    pub ran: Vec<RanRow>,
    /// And what is not in that list, in sentences.
    pub remarks: Vec<String>,
}

/// `latency_cell.html`: the invocations of a cell of the heat map.
#[derive(Debug, Clone, Template)]
#[template(path = "latency_cell.html")]
pub struct LatencyCellPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// Between which times, formatted.
    pub times: String,
    /// Between which latencies, formatted.
    pub latencies: String,
    /// The function's median and 99th percentile of the last hour, if there are enough invocations.
    pub usual: String,
    /// Those of the cell, newest first.
    pub rows: Vec<HistoryRow>,
    /// Address of the rest; empty if there is none.
    pub more: String,
    /// Why there is none.
    pub missing: &'static str,
}

impl LatencyCellPage {
    const TAB: Tab = Tab::Latency;

    fn base(&self) -> String {
        invocations::base(&self.head.name)
    }

    fn count(&self) -> String {
        let found = format::plural(self.rows.len() as u64, "invocation");
        match self.more.is_empty() {
            true => found,
            false => format!("{found} so far"),
        }
    }
}
