//! `/functions/{name}/latency`: how long calls take, and how that changed.

use askama::Template;

use crate::chrome::Chrome;
use crate::live::Values;
use crate::pages::{FunctionHead, Tab};

/// The windows that are offered: value in the URL, label, and what the label means in a sentence.
pub const WINDOWS: [(&str, &str, &str); 5] = [
    ("1m", "1 min", "the last minute"),
    ("5m", "5 min", "the last 5 minutes"),
    ("1h", "1 h", "the last hour"),
    ("24h", "24 h", "the last 24 hours"),
    ("7d", "7 d", "the last 7 days"),
];

/// Rows of the table of percentiles: key, and what it is.
pub const STAGES: [(&str, &str); 6] = [
    ("total", "from admission to the end of the response"),
    ("queue", "waiting for a free instance"),
    ("start", "starting an instance"),
    ("send", "delivering the request to the handler"),
    ("run", "in the handler"),
    ("recv", "delivering the response"),
];

/// Columns of the tables of percentiles: key and label.
pub const PERCENTILES: [(&str, &str); 5] = [
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("p999", "p99.9"),
    ("max", "max"),
];

/// `latency.html`. All numbers are among the values: `total/p99`, `warm/p50` and so on.
#[derive(Debug, Clone, Template)]
#[template(path = "latency.html")]
pub struct LatencyPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// A value of [`WINDOWS`].
    pub window: &'static str,
    /// The numbers.
    pub live: Values,
}

impl LatencyPage {
    const TAB: Tab = Tab::Latency;

    fn shows(&self, window: &str) -> bool {
        self.window == window
    }

    fn window_in_words(&self) -> &'static str {
        let known = WINDOWS.iter().find(|(value, ..)| *value == self.window);
        known.map_or("", |(.., words)| words)
    }

    /// Classes of a column of percentiles: narrow screens show the most telling ones.
    fn column(key: &str) -> &'static str {
        match key {
            "p90" | "p999" => "num mid",
            _ => "num",
        }
    }
}
