//! `/audit`: who changed what.

use askama::Template;

use super::Moment;
use crate::chrome::Chrome;

/// One record.
#[derive(Debug, Clone)]
pub struct AuditRow {
    /// When.
    pub time: Moment,
    /// `user`, `token`, or empty if unknown.
    pub kind: &'static str,
    /// Who; may be empty.
    pub actor: String,
    /// What.
    pub action: String,
    /// On what; may be empty.
    pub target: String,
    /// From where.
    pub address: String,
    /// In which request.
    pub request_id: String,
    /// A few words more; may be empty.
    pub detail: String,
}

impl AuditRow {
    /// Whether it records a failed attempt.
    pub fn is_failure(&self) -> bool {
        self.action.ends_with("_failed")
    }
}

/// `audit.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "audit.html")]
pub struct AuditPage {
    /// The frame.
    pub chrome: Chrome,
    /// One page, newest first.
    pub rows: Vec<AuditRow>,
    /// Every action, for the filter.
    pub actions: &'static [&'static str],
    /// The filter as typed; empty for any.
    pub actor: String,
    /// See [`Self::actor`].
    pub action: String,
    /// See [`Self::actor`].
    pub target: String,
    /// The key this page begins after; `None` on the first.
    pub before: Option<String>,
    /// The key of the next page; `None` on the last.
    pub next: Option<String>,
}

impl AuditPage {
    fn is_filtered(&self) -> bool {
        [&self.actor, &self.action, &self.target]
            .iter()
            .any(|text| !text.is_empty())
    }
}
