//! `/functions`: the list of functions.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format;
use crate::live::Values;

/// One function of the list. Its numbers are among the values, under `NAME/…`.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// Its name.
    pub name: String,
    /// `Python`, `Node.js`.
    pub runtime: &'static str,
    /// The function that it is a copy of, for a while.
    pub copy_of: Option<String>,
    /// Most instances at one time.
    pub max_concurrency: u32,
}

/// What the state filter offers: value in the URL and label. The empty value stands for all.
pub const STATE_FILTERS: [(&str, &str); 5] = [
    ("", "All states"),
    ("ready", "Ready"),
    ("starting", "Starting"),
    ("asleep", "Asleep"),
    ("failed", "Failed"),
];

/// The columns the list can be sorted by: value in the URL, label, and classes of the column.
pub const SORTS: [(&str, &str, &str); 6] = [
    ("name", "Name", ""),
    ("instances", "Instances", "num wide"),
    ("rate", "Requests/s", "num"),
    ("errors", "Errors", "num mid"),
    ("p50", "p50", "num wide"),
    ("p99", "p99", "num"),
];

/// Which functions are asked for, in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Part of the name.
    pub search: String,
    /// A value of [`STATE_FILTERS`].
    pub state: String,
    /// A value of [`SORTS`].
    pub sort: String,
    /// Largest first; names from the end.
    pub descending: bool,
    /// 1, 2, 3 …
    pub page: usize,
}

impl ListQuery {
    /// The query string of the list with another page of the same, from `?` on.
    pub fn with_page(&self, page: usize) -> String {
        self.written(&self.sort, self.descending, page)
    }

    /// The query string of this page.
    pub fn here(&self) -> String {
        self.with_page(self.page)
    }

    /// The query string of the page before.
    pub fn previous(&self) -> String {
        self.with_page(self.page - 1)
    }

    /// The query string of the page after.
    pub fn next(&self) -> String {
        self.with_page(self.page + 1)
    }

    /// The query string of the list sorted by a column: largest first for numbers, the other way round when the list is
    /// sorted by it already.
    pub fn sorted_by(&self, sort: &str) -> String {
        let first = sort != "name";
        let descending = if self.sort == sort {
            !self.descending
        } else {
            first
        };
        self.written(sort, descending, 1)
    }

    /// `ascending`, `descending` or `none`, for `aria-sort`.
    pub fn order_of(&self, sort: &str) -> &'static str {
        match (self.sort == sort, self.descending) {
            (true, true) => "descending",
            (true, false) => "ascending",
            (false, _) => "none",
        }
    }

    fn written(&self, sort: &str, descending: bool, page: usize) -> String {
        let mut parts = Vec::new();
        if !self.search.is_empty() {
            parts.push(format!("q={}", format::encode(&self.search)));
        }
        if !self.state.is_empty() {
            parts.push(format!("state={}", format::encode(&self.state)));
        }
        if sort != "name" || descending {
            let sign = if descending { "-" } else { "" };
            parts.push(format!("sort={sign}{}", format::encode(sort)));
        }
        if page > 1 {
            parts.push(format!("page={page}"));
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("?{}", parts.join("&")),
        }
    }

    /// What the page's stream shall send, for `data-live-topic`.
    pub fn topic(&self) -> String {
        let query = self.here();
        format!("list=1{}", query.replacen('?', "&", 1))
    }
}

/// The functions of one page of the list.
#[derive(Debug, Clone, Default)]
pub struct ListView {
    /// What was asked for.
    pub query: ListQuery,
    /// The functions.
    pub rows: Vec<FunctionRow>,
    /// Their numbers.
    pub live: Values,
    /// How many match.
    pub matching: usize,
    /// How many there are.
    pub all: usize,
    /// Pages of what matches, at least 1.
    pub pages: usize,
}

impl ListView {
    fn summary(&self) -> String {
        let all = format::plural(self.all as u64, "function");
        match self.matching == self.all {
            true => all,
            false => format!("{} of {all}", format::count(self.matching as u64)),
        }
    }
}

/// `functions.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "functions.html")]
pub struct FunctionsPage {
    /// The frame.
    pub chrome: Chrome,
    /// The list.
    pub list: ListView,
}

/// `partials/functions_table.html`: what a search, a filter or a sort swaps.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/functions_table.html")]
pub struct FunctionsTable {
    /// The frame: decides what an empty list offers.
    pub chrome: Chrome,
    /// The list.
    pub list: ListView,
}

/// The badge of a state, as a fragment.
pub fn badge(state: Badge, reason: Option<&str>) -> String {
    StateBadge { state, reason }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(
    source = r#"<span class="badge {{ state.tone.class() }}"{% if let Some(reason) = reason %} title="{{ reason }}"{% endif %}>{{ state.label }}</span>"#,
    ext = "html"
)]
struct StateBadge<'r> {
    state: Badge,
    reason: Option<&'r str>,
}
