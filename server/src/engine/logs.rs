//! Instances' log lines on their way to the history.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::history::History;
use crate::instance::{FunctionKey, LogSink, Logs};
use crate::model::LogEntry;

/// Takes lines to the history.
pub fn log_sink(history: &History) -> Logs {
    Arc::new(ToHistory(history.clone()))
}

struct ToHistory(History);

impl LogSink for ToHistory {
    fn publish(&self, function: &FunctionKey, entry: LogEntry) {
        self.0.publish_log(function.get(), entry);
    }

    fn store<'a>(&'a self, function: &'a FunctionKey, entries: Vec<LogEntry>) -> BoxFuture<'a, ()> {
        self.0.late_logs(function.get(), entries).boxed()
    }
}
