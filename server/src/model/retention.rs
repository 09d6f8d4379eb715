//! How long what happened is kept, and how much of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Revision;

/// Something of an event or of a result, as it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payload {
    /// Its beginning, or all of it; null when it is not text.
    pub text: Option<String>,
    /// There is more of it than is kept.
    pub truncated: bool,
    /// It is not text.
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
    /// Of an event.
    pub event_bytes: u32,
    /// Of a result.
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

/// What is kept, for how long and how much of it. The older goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Age at which an invocation goes, with its event and result; days, 1 to 3650.
    #[schema(minimum = 1, maximum = 3650)]
    pub invocations_days: u32,
    /// Size of all invocations with their events and results; MiB, 16 to 1048576.
    #[schema(minimum = 16, maximum = 1048576)]
    pub invocations_mib: u32,
    /// Age at which a log line goes; days, 1 to 3650.
    #[schema(minimum = 1, maximum = 3650)]
    pub logs_days: u32,
    /// Size of all log lines with the index for their search; MiB, 16 to 1048576.
    #[schema(minimum = 16, maximum = 1048576)]
    pub logs_mib: u32,
    /// Age at which a minute's statistics go; days, 7 to 3650.
    #[schema(minimum = 7, maximum = 3650)]
    pub statistics_days: u32,
    /// Age at which an entry of the audit log goes; days, 30 to 3650.
    #[schema(minimum = 30, maximum = 3650)]
    pub audit_days: u32,
    /// How much of an event is kept; bytes, 0 (none) to 65536.
    #[schema(maximum = 65536)]
    pub event_bytes: u32,
    /// How much of a result is kept; bytes, 0 (none) to 65536.
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
