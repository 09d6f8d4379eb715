//! Counts of what the scheduler decided for one function, through all of its versions.

use parking_lot::Mutex;

use crate::model::DecisionCounts;

/// The counts of one function. Decisions are rare compared with warm calls, which make none, so a lock is cheap enough.
#[derive(Debug, Default)]
pub struct Decisions(Mutex<DecisionCounts>);

impl Decisions {
    /// Counts; takes no other lock.
    pub(super) fn note(&self, count: impl FnOnce(&mut DecisionCounts)) {
        count(&mut self.0.lock());
    }

    /// A copy.
    pub fn counts(&self) -> DecisionCounts {
        *self.0.lock()
    }
}
