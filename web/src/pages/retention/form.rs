//! The form of the retention settings: its fields, their ranges and what they do.

use crate::pages::fields::NumberField;

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
