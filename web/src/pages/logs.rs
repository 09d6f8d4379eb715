//! `/functions/{name}/logs`: a function's output as it is written, and the search in stored output.

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::invocations::base;
use crate::pages::{FunctionHead, LogRow, Tab};

/// A line with the invocation that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLineRow {
    /// The line.
    pub line: LogRow,
    /// Its text in pieces, and which of them were searched for.
    pub pieces: Vec<(bool, String)>,
    /// Who wrote it; none while the function was imported.
    pub invocation: Option<String>,
}

impl LogLineRow {
    /// The last digits of its invocation's id: those at the beginning are the time.
    pub(super) fn short_id(&self) -> &str {
        let id = self.invocation.as_deref().unwrap_or_default();
        id.get(id.len().saturating_sub(6)..).unwrap_or(id)
    }
}

/// Lines of a function.
#[derive(Debug, Clone)]
pub struct LogsView {
    /// Name of the function.
    pub function: String,
    /// The search text; empty when following the log.
    pub query: String,
    /// The one invocation whose lines are shown.
    pub invocation: Option<String>,
    /// Why the query is invalid.
    pub wrong: Option<String>,
    /// Oldest first when the log is followed or an invocation's is read, newest first when it is searched.
    pub lines: Vec<LogLineRow>,
    /// Whether this is an older page of a search.
    pub is_older: bool,
    /// Key of the following page of a search.
    pub next: Option<String>,
}

impl LogsView {
    pub(super) fn base(&self) -> String {
        base(&self.function)
    }

    /// Whether to show new lines as they come.
    pub(super) fn follows(&self) -> bool {
        self.query.is_empty() && self.invocation.is_none()
    }

    /// Where the lines to follow come from.
    pub(super) fn stream(&self) -> String {
        format!("/api/v1{}/logs?limit=200&follow=true", self.base())
    }

    /// Address of this search on the page that starts before `before`.
    pub fn address(&self, before: Option<&str>) -> String {
        format::address(
            format!("{}/logs", self.base()),
            [
                ("q", self.query.as_str()),
                ("invocation", self.invocation.as_deref().unwrap_or_default()),
                ("before", before.unwrap_or_default()),
            ],
        )
    }

    pub(super) fn older(&self) -> Option<String> {
        self.next.as_deref().map(|next| self.address(Some(next)))
    }
}

/// `logs.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "logs.html")]
pub struct LogsPage {
    /// The frame.
    pub chrome: Chrome,
    /// The function's head.
    pub head: FunctionHead,
    /// The lines.
    pub logs: LogsView,
}

impl LogsPage {
    const TAB: Tab = Tab::Logs;
}

/// `partials/log_lines.html`: what a search swaps.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/log_lines.html")]
pub struct LogsPartial {
    /// The lines.
    pub logs: LogsView,
}
