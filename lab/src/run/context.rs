//! What all parts of a run share.

use std::path::PathBuf;
use std::sync::Mutex;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;

use crate::stellar::files::Log;
use crate::store::Running;

use super::{Event, RunError, Settings};

/// What all parts of a run share.
pub(super) struct Context<'a> {
    pub(super) settings: &'a Settings,
    pub(super) directory: PathBuf,
    pub(super) log: Mutex<Log>,
    pub(super) zone: TimeZone,
    pub(super) cancelled: watch::Receiver<bool>,
    pub(super) tell: &'a (dyn Fn(Event<'_>) + Sync),
    /// The object store, where there are storage transfers.
    pub(super) store: Option<Running>,
    /// Begins the names of functions.
    pub(super) prefix: String,
}

impl Context<'_> {
    pub(super) fn log(&self, level: &str, text: &str) {
        let now = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0);
        let mut log = self
            .log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        log.line(now, level, text);
    }

    pub(super) fn check_cancelled(&self) -> Result<(), RunError> {
        if *self.cancelled.borrow() {
            Err(RunError::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Waits until the run is cancelled.
    pub(super) async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        // One whose sender is gone is never cancelled.
        if cancelled
            .wait_for(|is_cancelled| *is_cancelled)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}
