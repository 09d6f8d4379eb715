//! Wakes whoever waits on a worker's channel when the worker ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Tells a channel's owner that the worker is gone, from any task.
#[derive(Debug, Clone, Default)]
pub struct Hangup(Arc<HangupState>);

#[derive(Debug, Default)]
struct HangupState {
    gone: AtomicBool,
    wake: Notify,
}

impl Hangup {
    /// Marks the worker as gone and wakes everyone waiting on the channel.
    pub fn signal(&self) {
        self.0.gone.store(true, Ordering::Release);
        // Kept for whoever is about to wait.
        self.0.wake.notify_one();
    }

    pub(super) fn is_signalled(&self) -> bool {
        self.0.gone.load(Ordering::Acquire)
    }

    /// Waits until it is signalled.
    pub(super) async fn signalled(&self) {
        self.0.wake.notified().await;
    }
}
