//! Lines that functions print.

use serde::Serialize;

use super::{InvocationId, LogLine};

/// A log line with the invocation that wrote it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct LogEntry {
    /// Who wrote it; null for what the function printed while it was imported.
    pub invocation: Option<InvocationId>,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}

/// A line that was searched for.
#[derive(Debug, Clone)]
pub struct FoundLine {
    /// Its place among all lines.
    pub key: i64,
    /// The line.
    pub entry: LogEntry,
    /// The line in pieces, and which of them were found.
    pub pieces: Vec<(bool, String)>,
}
