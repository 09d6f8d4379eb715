//! The latest unsuccessful invocations of all functions.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::{History, Inner};
use crate::model::Failure;

/// Number kept: as many as the overview shows.
const KEPT: usize = 10;

/// Of the newest invocations, how many are looked through for failures at start. It bounds the time to start, not what is
/// shown later.
const LOOKED_THROUGH: u32 = 2_000;

/// The newest, oldest first.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<VecDeque<Failure>>);

impl Failures {
    /// Notes a failure.
    pub(super) fn note(&self, failure: Failure) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(failure);
    }

    /// Puts older ones before what was noted meanwhile. `older` is newest first.
    fn fill(&self, older: Vec<Failure>) {
        let mut kept = self.0.lock();
        for failure in older {
            if kept.len() >= KEPT {
                break;
            }
            if kept.iter().all(|known| known.id != failure.id) {
                kept.push_front(failure);
            }
        }
    }
}

impl History {
    /// The last ten invocations that did not succeed, newest first.
    pub fn failures(&self) -> Vec<Failure> {
        self.inner.failures.0.lock().iter().rev().cloned().collect()
    }
}

impl Inner {
    /// At start: earlier failures.
    pub(super) async fn load_failures(&self) {
        match self
            .store
            .newest_failures(LOOKED_THROUGH, KEPT as u32)
            .await
        {
            Ok(older) => self.failures.fill(older),
            Err(error) => tracing::warn!(%error, "cannot load failures from before the start"),
        }
    }
}
