//! `/functions/{name}/network`: traffic and refused destinations.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::{FunctionHead, Tab};

/// A destination that was not simply allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationRow {
    /// The name, or the address if it has none.
    pub place: String,
    /// The address of a name; empty where it is not known.
    pub address: String,
    /// Port and protocol; empty where they are not known.
    pub port: String,
    /// What happened to it.
    pub outcome: &'static str,
    /// How often.
    pub count: String,
    /// When it was last observed, as text.
    pub last: String,
    /// The same for machines.
    pub last_machine: String,
    /// The entry that would allow it; empty where none can.
    pub rule: String,
}

/// `network.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "network.html")]
pub struct NetworkPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The policy in one line.
    pub policy: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Whether it allows anything.
    pub is_open: bool,
    /// Name and value of each figure.
    pub figures: Vec<(&'static str, String)>,
    /// Destinations that were not simply allowed, latest first.
    pub destinations: Vec<DestinationRow>,
    /// The entries that a dry run suggests.
    pub suggested: Vec<String>,
}

impl NetworkPage {
    const TAB: Tab = Tab::Network;
}
