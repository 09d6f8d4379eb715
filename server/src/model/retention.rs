//! Retention: how long and how much history is kept.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Revision;

/// The stored part of an event or a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payload {
    /// Its beginning or all of it; null if it is not text.
    pub text: Option<String>,
    /// Whether only the beginning is stored.
    pub truncated: bool,
    /// Whether it is not text.
    pub binary: bool,
}

/// What is kept of an invocation beside its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationPayloads {
    /// The event.
    pub event: Option<Payload>,
    /// The result.
    pub result: Option<Payload>,
}

/// How much is kept of each event and each result, bytes; 0 is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadLimits {
    /// Stored part of an event.
    pub event_bytes: u32,
    /// Stored part of a result.
    pub result_bytes: u32,
}

/// Longest age of something kept, days: ten years.
pub const MOST_DAYS: u32 = 3650;
/// Largest budget, MiB: a TiB, which is more than one SQLite file should hold.
pub const MOST_MIB: u32 = 1 << 20;
/// Smallest budget, MiB: less would be emptied by a single busy minute.
pub const LEAST_MIB: u32 = 16;
/// Most that is kept of one event or result, bytes.
pub const MOST_PAYLOAD_BYTES: u32 = 64 << 10;

/// What is kept, how long and up to which size. The oldest entries are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Age at which an invocation is removed with its event and result; days, 1 to 3650.
    #[schema(minimum = 1, maximum = 3650)]
    pub invocations_days: u32,
    /// Maximum size of all invocations with their events and results; MiB, 16 to 1048576.
    #[schema(minimum = 16, maximum = 1048576)]
    pub invocations_mib: u32,
    /// Age at which a log line is removed; days, 1 to 3650.
    #[schema(minimum = 1, maximum = 3650)]
    pub logs_days: u32,
    /// Maximum size of all log lines with their search index; MiB, 16 to 1048576.
    #[schema(minimum = 16, maximum = 1048576)]
    pub logs_mib: u32,
    /// Age at which statistics are removed; days, 7 to 3650.
    #[schema(minimum = 7, maximum = 3650)]
    pub statistics_days: u32,
    /// Age at which an audit record is removed; days, 30 to 3650.
    #[schema(minimum = 30, maximum = 3650)]
    pub audit_days: u32,
    /// Stored part of an event; bytes, 0 (none) to 65536.
    #[schema(maximum = 65536)]
    pub event_bytes: u32,
    /// Stored part of a result; bytes, 0 (none) to 65536.
    #[schema(maximum = 65536)]
    pub result_bytes: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            invocations_days: 30,
            invocations_mib: 2048,
            logs_days: 14,
            logs_mib: 1024,
            statistics_days: 90,
            audit_days: 400,
            event_bytes: 4096,
            result_bytes: 4096,
        }
    }
}

impl Retention {
    /// Names these settings.
    pub fn revision(&self) -> Revision {
        Revision::of_content(self)
    }

    /// What is kept of each event and result.
    pub fn payloads(&self) -> PayloadLimits {
        PayloadLimits {
            event_bytes: self.event_bytes,
            result_bytes: self.result_bytes,
        }
    }
}
