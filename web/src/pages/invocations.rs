//! `/functions/{name}/invocations`: the filtered, paged history, and the recent invocations of the test tab.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format::{self, encode};
use crate::pages::{FunctionHead, Moment, Tab};

/// One finished invocation.
#[derive(Debug, Clone)]
pub struct HistoryRow {
    /// Its id.
    pub id: String,
    /// When it was admitted.
    pub received: Moment,
    /// How it ended.
    pub status: Badge,
    /// The start kind, or a dash.
    pub start_kind: &'static str,
    /// The version that ran.
    pub version: u32,
    /// `invoke`, `http` …
    pub trigger: &'static str,
    /// Total, µs.
    pub total_us: u64,
    /// The handler's part of it, µs.
    pub run_us: u64,
    /// Bytes of the event.
    pub request_bytes: u64,
    /// Bytes of the result.
    pub response_bytes: u64,
}

impl HistoryRow {
    pub(super) fn total(&self) -> String {
        format::duration_us(self.total_us)
    }
    pub(super) fn run(&self) -> String {
        format::duration_us(self.run_us)
    }
    pub(super) fn request(&self) -> String {
        format::bytes(self.request_bytes)
    }
    pub(super) fn response(&self) -> String {
        format::bytes(self.response_bytes)
    }
}

/// The newest few invocations of a function.
#[derive(Debug, Clone)]
pub struct HistoryView {
    /// Name of the function.
    pub function: String,
    /// Newest first.
    pub rows: Vec<HistoryRow>,
}

impl HistoryView {
    pub(super) fn base(&self) -> String {
        base(&self.function)
    }
}

/// `partials/history.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/history.html")]
pub struct HistoryPartial {
    /// The rows.
    pub history: HistoryView,
}

/// What the status filter offers: value in the URL and label. The empty value stands for all.
pub const STATUS_FILTERS: [(&str, &str); 7] = [
    ("", "All"),
    ("succeeded", "Succeeded"),
    ("failed", "Failed"),
    ("timed_out", "Timed out"),
    ("crashed", "Crashed"),
    ("out_of_memory", "Out of memory"),
    ("cancelled", "Cancelled"),
];

/// Options of the start kind filter.
pub const START_FILTERS: [(&str, &str); 5] = [
    ("", "All"),
    ("warm", "Warm"),
    ("fork", "Fork"),
    ("restore", "Restore"),
    ("boot", "Boot"),
];

/// What the filter of triggers offers: those there are today.
pub const TRIGGER_FILTERS: [(&str, &str); 3] =
    [("", "All"), ("invoke", "Invoke"), ("http", "HTTP")];

/// The filter as it was typed; an empty text says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterText {
    /// How it ended.
    pub status: String,
    /// Its start kind.
    pub start: String,
    /// The version that ran.
    pub version: String,
    /// What caused it.
    pub trigger: String,
    /// Shortest total, ms.
    pub min_ms: String,
    /// Longest total, ms.
    pub max_ms: String,
}

impl FilterText {
    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("status", self.status.trim()),
            ("start", self.start.trim()),
            ("version", self.version.trim()),
            ("trigger", self.trigger.trim()),
            ("min_ms", self.min_ms.trim()),
            ("max_ms", self.max_ms.trim()),
        ]
    }

    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.is_empty())
    }
}

/// A page of a function's invocations.
#[derive(Debug, Clone)]
pub struct InvocationsView {
    /// Name of the function.
    pub function: String,
    /// The filter.
    pub filter: FilterText,
    /// The field of the filter that breaks its rule, and the rule; then nothing was looked for.
    pub wrong: Option<(String, String)>,
    /// Newest first.
    pub rows: Vec<HistoryRow>,
    /// Key this page starts before; none on the newest page, which is the one that refreshes.
    pub before: Option<String>,
    /// Key of the following page.
    pub next: Option<String>,
    /// How far back the search came before it stopped, when it stopped before the page was full.
    pub searched_to: Option<Moment>,
}

impl InvocationsView {
    pub(super) fn base(&self) -> String {
        base(&self.function)
    }

    pub(super) fn is_wrong(&self, field: &str) -> bool {
        self.wrong.as_ref().is_some_and(|(wrong, _)| wrong == field)
    }

    /// Address of this filter on the page that starts before `before`.
    pub fn address(&self, before: Option<&str>) -> String {
        let before = before.map(|before| ("before", before));
        format::address(
            format!("{}/invocations", self.base()),
            self.filter.fields().into_iter().chain(before),
        )
    }

    /// Address of the newest page.
    pub(super) fn newest(&self) -> String {
        self.address(None)
    }

    /// Address of the following page, if there is one.
    pub(super) fn older(&self) -> Option<String> {
        self.next.as_deref().map(|next| self.address(Some(next)))
    }
}

/// `invocations.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "invocations.html")]
pub struct InvocationsPage {
    /// The frame.
    pub chrome: Chrome,
    /// The function's head.
    pub head: FunctionHead,
    /// The rows and where they stand.
    pub invocations: InvocationsView,
}

impl InvocationsPage {
    const TAB: Tab = Tab::Invocations;
}

/// `partials/invocations.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/invocations.html")]
pub struct InvocationsPartial {
    /// The rows and where they stand.
    pub invocations: InvocationsView,
}

/// Address of a function's pages.
pub(super) fn base(function: &str) -> String {
    format!("/functions/{}", encode(function))
}
