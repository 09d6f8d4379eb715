//! Finished invocations: batched into SQLite, counted in histograms, pushed to whoever listens.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;

use crate::model::{InvocationId, InvocationRecord, LogLine, Page, Stats, Status};
use crate::store::{Store, StoreError};

/// A log line with the invocation that wrote it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct LogEntry {
    /// Who wrote it; null for what the function printed while it was imported.
    pub invocation: Option<InvocationId>,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}

/// What a listener hears of one function.
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
    /// Those that did not succeed.
    pub errors: u64,
    /// Non-empty buckets of total latency: upper bound in µs (inclusive) and count; log-scaled, about 8 a decade.
    pub buckets: Vec<(u64, u64)>,
}

/// Totals for `/metrics`, since the server started.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Name of the function.
    pub function: String,
    /// Finished invocations by status.
    pub by_status: Vec<(Status, u64)>,
    /// Finished invocations by start rung: warm, fork, restore, boot.
    pub by_start: [u64; 4],
    /// Sum of total latency, µs.
    pub total_us: u64,
    /// The live histogram.
    pub histogram: LiveHistogram,
}

/// The history. Cheap to clone.
#[derive(Clone)]
pub struct History;

#[allow(unused_variables, clippy::unimplemented)]
impl History {
    /// Starts the batching writer and the per-minute rollup on the current tokio runtime.
    pub fn start(store: Store) -> Self {
        unimplemented!()
    }
    /// Records a finished invocation (its logs included). Never blocks the caller unless 65,536 are waiting to be
    /// written, when it waits for room: none is dropped.
    pub async fn record(&self, function: i64, record: InvocationRecord) {
        unimplemented!()
    }
    /// A line as it is written, for those who follow; it is stored with its invocation's record, not by this call.
    pub fn publish_log(&self, function: i64, entry: LogEntry) {
        unimplemented!()
    }
    /// Stores lines that came after their invocation was recorded, or during import (`invocation: None`).
    pub async fn late_logs(&self, function: i64, entries: Vec<LogEntry>) {
        unimplemented!()
    }
    /// Listens to one function.
    pub fn subscribe(&self, function: i64) -> broadcast::Receiver<Event> {
        unimplemented!()
    }
    /// Statistics over the last `window` (1 min to 7 days; minute rollups plus the live minute).
    pub async fn stats(&self, function: i64, window: Duration) -> Result<Stats, StoreError> {
        unimplemented!()
    }
    /// The live histogram.
    pub fn live(&self, function: i64) -> LiveHistogram {
        unimplemented!()
    }
    /// Totals of all functions.
    pub fn totals(&self) -> Vec<Totals> {
        unimplemented!()
    }
    /// Invocations, newest first. Sees everything recorded before the call. `before` is a `next` of an earlier page;
    /// `Ok(None)` when it is not one. `limit` 1 to 1000.
    pub async fn list(
        &self,
        function: i64,
        status: Option<Status>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Option<Page<InvocationRecord>>, StoreError> {
        unimplemented!()
    }
    /// One invocation with its log lines. Sees everything recorded before the call.
    pub async fn get(&self, id: InvocationId) -> Result<Option<InvocationRecord>, StoreError> {
        unimplemented!()
    }
    /// The newest `limit` log lines, oldest first.
    pub async fn logs(&self, function: i64, limit: u32) -> Result<Vec<LogEntry>, StoreError> {
        unimplemented!()
    }
    /// Drops a deleted function's histograms and listeners.
    pub fn forget(&self, function: i64) {
        unimplemented!()
    }
    /// Writes everything that is waiting.
    pub async fn flush(&self) {
        unimplemented!()
    }
}
