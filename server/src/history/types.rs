//! Types of the history besides the records themselves.

use std::sync::Arc;

use serde::Serialize;

use crate::model::{InvocationRecord, LogEntry, Status};

/// An event for subscribers of a function.
#[derive(Debug, Clone)]
pub enum Event {
    /// An invocation ended.
    Finished(Arc<InvocationRecord>),
    /// A line was written, possibly by an invocation that still runs.
    Log(Arc<LogEntry>),
}

/// The live histogram of a function since the server started, for the console.
#[derive(Debug, Clone, Default, Serialize, utoipa::ToSchema)]
pub struct LiveHistogram {
    /// Finished invocations.
    pub count: u64,
    /// Unsuccessful invocations.
    pub errors: u64,
    /// Non-empty buckets of total latency: upper bound in µs (inclusive) and count; logarithmic, about 8 per decade.
    pub buckets: Vec<(u64, u64)>,
}

/// Totals for `/metrics`, since the server started.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Name of the function.
    pub function: String,
    /// Finished invocations by status.
    pub by_status: Vec<(Status, u64)>,
    /// Finished invocations by start kind: warm, fork, restore, boot.
    pub by_start: [u64; 4],
    /// Sum of total latency, µs.
    pub total_us: u64,
    /// The live histogram.
    pub histogram: LiveHistogram,
}
