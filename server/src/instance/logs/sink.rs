//! Where lines go.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::instance::FunctionKey;
use crate::model::LogEntry;

/// The destination of instances' log lines.
pub trait LogSink: Send + Sync {
    /// A line as it is read, for followers of the log. It is stored with its invocation's record, not by this call.
    fn publish(&self, function: &FunctionKey, entry: LogEntry);

    /// Stores lines that came after their invocation was recorded, or during import (`invocation: None`). Waits while
    /// too many others wait to be stored.
    fn store<'a>(&'a self, function: &'a FunctionKey, entries: Vec<LogEntry>) -> BoxFuture<'a, ()>;
}

/// See [`LogSink`]. Cheap to clone.
pub type Logs = Arc<dyn LogSink>;
