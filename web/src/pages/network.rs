//! `/functions/{name}/network`: the function's own ports, what it reached, and what was refused.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::{FunctionHead, Moment, OwnPorts, Tab};

/// A destination that was not simply allowed.
#[derive(Debug, Clone)]
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
    /// When it was last.
    pub last: Moment,
    /// The entry that would allow it; empty where none can.
    pub rule: String,
}

/// A destination that was reached.
#[derive(Debug, Clone)]
pub struct ReachedRow {
    /// The name, or the address where there is none.
    pub place: String,
    /// The address of a name; empty where there is no name.
    pub address: String,
    /// Port and protocol.
    pub port: String,
    /// How many.
    pub connections: String,
    /// Bytes from the function.
    pub sent: String,
    /// Bytes to it.
    pub received: String,
    /// When it was last.
    pub last: Moment,
}

/// `network.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "network.html")]
pub struct NetworkPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The function's own ports.
    pub ports: OwnPorts,
    /// The policy in one line.
    pub policy: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Whether it allows anything.
    pub is_open: bool,
    /// Name and value of each figure.
    pub figures: Vec<(&'static str, String)>,
    /// What was reached, the latest first.
    pub reached: Vec<ReachedRow>,
    /// What was not simply allowed, the latest first.
    pub destinations: Vec<DestinationRow>,
    /// The entries that a dry run suggests.
    pub suggested: Vec<String>,
}

impl NetworkPage {
    const TAB: Tab = Tab::Network;
}
