//! `/retention`: retention settings, the space used and the progress of removal.

mod form;

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::{DeployProblem, FieldErrors, Moment};

use form::RETENTION_GROUPS;

pub use form::RetentionForm;

/// How much there is of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct AmountView {
    /// Rows.
    pub count: u64,
    /// About how many bytes they take.
    pub bytes: u64,
    /// How many they may take.
    pub budget_bytes: u64,
    /// When the oldest happened.
    pub oldest: Option<Moment>,
}

/// Width of a bar, in its own units.
const BAR: u64 = 1000;

impl AmountView {
    pub(super) fn counted(&self) -> String {
        format::count(self.count)
    }
    pub(super) fn size(&self) -> String {
        format::bytes(self.bytes)
    }
    pub(super) fn budget(&self) -> String {
        format::bytes(self.budget_bytes)
    }
    /// The used share of the budget, as a part of [`BAR`].
    pub(super) fn filled(&self) -> u64 {
        let filled =
            u128::from(self.bytes) * u128::from(BAR) / u128::from(self.budget_bytes.max(1));
        u64::try_from(filled).unwrap_or(BAR).min(BAR)
    }
}

/// A removal.
#[derive(Debug, Clone, Default)]
pub struct PassView {
    /// Whether it is under way.
    pub running: bool,
    /// What it is at.
    pub stage: Option<&'static str>,
    /// Rows removed.
    pub removed: u64,
    /// About how many were to be.
    pub expected: u64,
    /// When it ended.
    pub finished: Option<Moment>,
    /// Why it ended early.
    pub error: Option<String>,
}

impl PassView {
    /// The current state in a sentence.
    pub(super) fn in_words(&self) -> String {
        let removed = format::plural(self.removed, "row");
        match (self.running, self.stage, self.removed) {
            (true, Some("file"), _) => "Shrinking the database file.".to_owned(),
            (true, Some(stage), _) => format!(
                "Removing old {stage}: {removed} of about {} so far.",
                format::count(self.expected.max(self.removed))
            ),
            (true, None, _) => "Looking for expired entries.".to_owned(),
            (false, _, 0) => "Nothing to remove.".to_owned(),
            (false, ..) => format!("The last pass removed {removed}."),
        }
    }
}

/// Stored now.
#[derive(Debug, Clone, Default)]
pub struct RetentionState {
    /// Invocations with their events and results.
    pub invocations: AmountView,
    /// Log lines.
    pub logs: AmountView,
    /// The oldest minute of statistics.
    pub statistics_oldest: Option<Moment>,
    /// The database's size.
    pub file_bytes: u64,
    /// Free part of it.
    pub free_bytes: u64,
    /// Whether the file becomes smaller.
    pub shrinks: bool,
    /// The removal.
    pub pass: PassView,
}

impl RetentionState {
    pub(super) fn kinds(&self) -> [(&'static str, &'static str, &AmountView); 2] {
        [
            ("invocations", "Invocations", &self.invocations),
            ("logs", "Log lines", &self.logs),
        ]
    }
    pub(super) fn file(&self) -> String {
        format::bytes(self.file_bytes)
    }
    pub(super) fn free(&self) -> String {
        format::bytes(self.free_bytes)
    }
}

/// What a change would remove at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetentionPreview {
    /// Whether the settings differ from those that are saved.
    pub changed: bool,
    /// Invocations.
    pub invocations: u64,
    /// Log lines.
    pub logs: u64,
}

impl RetentionPreview {
    pub(super) fn removes(&self) -> bool {
        self.changed && self.invocations + self.logs > 0
    }
    pub(super) fn in_words(&self) -> String {
        match (self.changed, self.invocations, self.logs) {
            (false, ..) => String::new(),
            (true, 0, 0) => "Saving removes nothing now.".to_owned(),
            (true, invocations, logs) => format!(
                "Saving removes about {} and {} now. This cannot be undone.",
                format::plural(invocations, "invocation"),
                format::plural(logs, "log line")
            ),
        }
    }
}

/// `partials/retention_preview.html`.
#[derive(Debug, Clone, Copy, Template)]
#[template(path = "partials/retention_preview.html")]
pub struct RetentionPreviewPartial {
    /// What a change would remove.
    pub preview: RetentionPreview,
}

/// `partials/retention_state.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/retention_state.html")]
pub struct RetentionStatePartial {
    /// Stored now.
    pub state: RetentionState,
}

/// `retention.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "retention.html")]
pub struct RetentionPage {
    /// The frame.
    pub chrome: Chrome,
    /// The settings.
    pub form: RetentionForm,
    /// Stored now.
    pub state: RetentionState,
    /// What a change would remove.
    pub preview: RetentionPreview,
    /// What is wrong with fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
    /// The settings that the form was made of, as the server reads them again.
    pub loaded: String,
    /// The settings that a change is meant for.
    pub revision: String,
}
