//! What the server counts of the messages at a port whose protocol it understands.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counts since somebody got the port.
#[derive(Debug, Default)]
pub struct MessageCounters {
    accepted: AtomicU64,
    duplicates: AtomicU64,
    refused: AtomicU64,
}

/// What came to a port whose protocol the server understands, since its owner has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageCounts {
    /// Messages that became events.
    pub accepted: u64,
    /// Messages that came again, and did not.
    pub duplicates: u64,
    /// Messages that were refused: malformed ones, and those beyond a limit.
    pub refused: u64,
}

impl fmt::Display for MessageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            accepted,
            duplicates,
            refused,
        } = self;
        write!(
            f,
            "{accepted} accepted, {duplicates} duplicates, {refused} refused"
        )
    }
}

impl MessageCounters {
    /// A message became an event.
    pub fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// One came again.
    pub fn duplicate(&self) {
        self.duplicates.fetch_add(1, Ordering::Relaxed);
    }

    /// One was refused.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn read(&self) -> MessageCounts {
        MessageCounts {
            accepted: self.accepted.load(Ordering::Relaxed),
            duplicates: self.duplicates.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
