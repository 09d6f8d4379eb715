//! `/`: how the node and its functions are.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format;

/// Functions in one state.
#[derive(Debug, Clone, Copy)]
pub struct StateCount {
    /// The state.
    pub state: Badge,
    /// How many are in it.
    pub count: u64,
}

impl StateCount {
    fn shown(&self) -> String {
        format::count(self.count)
    }
}

/// `overview.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "overview.html")]
pub struct OverviewPage {
    /// The frame.
    pub chrome: Chrome,
    /// Functions by state.
    pub states: Vec<StateCount>,
}

impl OverviewPage {
    fn is_empty(&self) -> bool {
        self.states.iter().all(|state| state.count == 0)
    }
}
