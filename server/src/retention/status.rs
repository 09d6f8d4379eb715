//! The status of retention: settings, space used, progress of removal, and the effect of other settings.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::policy::{self, Budget, Kept};
use crate::model::Retention;

/// Retention settings, the space used and the progress of removal.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RetentionStatus {
    /// The settings.
    pub settings: Retention,
    /// Invocations with their events and results.
    pub invocations: Amount,
    /// Log lines with their search index.
    pub logs: Amount,
    /// Start of the oldest minute with statistics; null if there are none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub statistics_oldest: Option<Timestamp>,
    /// The database's file.
    pub database: DatabaseFile,
    /// The last or current removal.
    pub pass: Pass,
}

/// Amount stored of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Estimated bytes in the file, including indexes, from rows and text.
    pub bytes: u64,
    /// Time of the oldest; null if empty.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub oldest: Option<Timestamp>,
}

impl Amount {
    pub(super) fn kept(&self) -> Kept {
        Kept {
            rows: self.count,
            bytes: self.bytes,
            oldest: self.oldest,
        }
    }
}

/// The database's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DatabaseFile {
    /// Size in bytes, without the write-ahead log.
    pub bytes: u64,
    /// Bytes free for new rows.
    pub free_bytes: u64,
    /// Whether the file shrinks when rows are removed. A large file from an earlier version only reuses the space.
    pub shrinks: bool,
}

/// A removal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Pass {
    /// Whether it is under way.
    pub running: bool,
    /// Current stage: `invocations`, `logs`, `statistics`, `audit` or `file`; null if not running.
    pub stage: Option<&'static str>,
    /// Rows removed so far.
    pub removed: u64,
    /// Estimated rows to remove when it began.
    pub expected: u64,
    /// When it began; null before the first one.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// Why it ended early.
    pub error: Option<String>,
}

/// The settings as the policy takes them.
pub(super) struct Budgets {
    pub invocations: Budget,
    pub logs: Budget,
}

impl Budgets {
    pub(super) fn of(settings: &Retention) -> Self {
        let budget = |days, mib: u32| Budget {
            days,
            bytes: u64::from(mib) << 20,
        };
        Self {
            invocations: budget(settings.invocations_days, settings.invocations_mib),
            logs: budget(settings.logs_days, settings.logs_mib),
        }
    }
}

/// About how much would be removed under some settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WouldRemove {
    /// Invocations.
    pub invocations: u64,
    /// Log lines.
    pub logs: u64,
}

/// About how much would be removed at once under other settings.
pub fn would_remove(status: &RetentionStatus, settings: &Retention, now: Timestamp) -> WouldRemove {
    let budgets = Budgets::of(settings);
    WouldRemove {
        invocations: policy::estimate(&status.invocations.kept(), &budgets.invocations, now),
        logs: policy::estimate(&status.logs.kept(), &budgets.logs, now),
    }
}
