//! `/functions/{name}/what-if`: recorded calls with other settings of the scheduler.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::{FunctionHead, PlotView, ResultTable, Tab, WINDOWS};

/// `what_if.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "what_if.html")]
pub struct WhatIfPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// A value of [`WINDOWS`].
    pub window: &'static str,
    /// The curve; none without a call.
    pub plot: Option<PlotView>,
    /// A row for each setting, the present ones first.
    pub table: ResultTable,
    /// What was simulated, in a sentence.
    pub remark: String,
}

impl WhatIfPage {
    const TAB: Tab = Tab::Latency;

    /// Windows that are long enough.
    fn windows() -> &'static [(&'static str, &'static str, &'static str)] {
        &WINDOWS[2..]
    }

    fn shows(&self, window: &str) -> bool {
        self.window == window
    }
}
