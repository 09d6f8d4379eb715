//! `/retention`: retention settings, the space used and the progress of removal.

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::fields::NumberField;
use crate::pages::{DeployProblem, FieldErrors, Moment};

/// The settings as they are typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionForm {
    /// Age of an invocation, days.
    pub invocations_days: String,
    /// Size of invocations, MiB.
    pub invocations_mib: String,
    /// Age of a log line, days.
    pub logs_days: String,
    /// Size of logs, MiB.
    pub logs_mib: String,
    /// Age of statistics, days.
    pub statistics_days: String,
    /// Age of the audit log's entries, days.
    pub audit_days: String,
    /// How much of an event is kept, bytes.
    pub event_bytes: String,
    /// How much of a result is kept, bytes.
    pub result_bytes: String,
}

impl RetentionForm {
    /// The fields that have a place for a message.
    pub const FIELDS: &'static [&'static str] = &[
        "invocations_days",
        "invocations_mib",
        "logs_days",
        "logs_mib",
        "statistics_days",
        "audit_days",
        "event_bytes",
        "result_bytes",
    ];
}

impl RetentionForm {
    /// What is typed in a field.
    /// The text of a field.
    pub fn number(&self, name: &str) -> &str {
        match name {
            "invocations_days" => &self.invocations_days,
            "invocations_mib" => &self.invocations_mib,
            "logs_days" => &self.logs_days,
            "logs_mib" => &self.logs_mib,
            "statistics_days" => &self.statistics_days,
            "audit_days" => &self.audit_days,
            "event_bytes" => &self.event_bytes,
            _ => &self.result_bytes,
        }
    }
}

/// Settings that belong together.
#[derive(Debug)]
pub struct RetentionGroup {
    /// What they are of.
    pub legend: &'static str,
    /// What there is to know of them.
    pub hint: &'static str,
    /// The settings.
    pub fields: [NumberField; 2],
}

const fn field(
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    range: (u32, u32),
    default: u32,
    effect: &'static str,
) -> NumberField {
    NumberField {
        name,
        label,
        unit,
        min: range.0,
        max: range.1,
        default,
        effect,
    }
}

const DAYS: (u32, u32) = (1, 3650);
const MIB: (u32, u32) = (16, 1 << 20);
const BYTES: (u32, u32) = (0, 64 << 10);

/// All settings, in the order of the form.
pub static RETENTION_GROUPS: [RetentionGroup; 4] = [
    RetentionGroup {
        legend: "Invocations",
        hint: "Including events and results.",
        fields: [
            field(
                "invocations_days",
                "Age",
                "days",
                DAYS,
                30,
                "Older entries are removed.",
            ),
            field(
                "invocations_mib",
                "Size",
                "MiB",
                MIB,
                2048,
                "Oldest entries are removed beyond this size.",
            ),
        ],
    },
    RetentionGroup {
        legend: "Logs",
        hint: "Including the search index.",
        fields: [
            field(
                "logs_days",
                "Age",
                "days",
                DAYS,
                14,
                "Older lines are removed.",
            ),
            field(
                "logs_mib",
                "Size",
                "MiB",
                MIB,
                1024,
                "Oldest entries are removed beyond this size.",
            ),
        ],
    },
    RetentionGroup {
        legend: "Other",
        hint: "",
        fields: [
            field(
                "statistics_days",
                "Latency statistics",
                "days",
                (7, DAYS.1),
                90,
                "How far back the latency page goes.",
            ),
            field(
                "audit_days",
                "Audit log",
                "days",
                (30, DAYS.1),
                400,
                "Who changed what.",
            ),
        ],
    },
    RetentionGroup {
        legend: "Events and results",
        hint: "The beginning of each is stored with its invocation, for up to 20 invocations per second \
               and function. Credentials in HTTP headers are omitted.",
        fields: [
            field(
                "event_bytes",
                "Per event",
                "bytes",
                BYTES,
                4096,
                "0 stores none.",
            ),
            field(
                "result_bytes",
                "Per result",
                "bytes",
                BYTES,
                4096,
                "0 stores none.",
            ),
        ],
    },
];

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
    /// Of [`BAR`], the share of the budget that is used.
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
    /// Of it free.
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
