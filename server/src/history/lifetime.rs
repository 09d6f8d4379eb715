//! Invocations finished since the database was created: counters that never decrease.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{History, Inner};
use crate::model::{InvocationRecord, Status};
use crate::store::ALL;

/// Totals from before this start, and those recorded since.
#[derive(Debug, Default)]
pub(super) struct Lifetime {
    /// Finished and failed invocations by row id. Set once, before anything is read.
    before: OnceLock<HashMap<i64, (u64, u64)>>,
    finished: AtomicU64,
    errors: AtomicU64,
}

impl Lifetime {
    /// Counts an invocation. Apart from the functions' counters, which a deleted function takes with it.
    pub(super) fn note(&self, record: &InvocationRecord) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        if record.status != Status::Succeeded {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn before(&self, function: i64) -> (u64, u64) {
        let before = self.before.get();
        before
            .and_then(|all| all.get(&function).copied())
            .unwrap_or_default()
    }
}

impl History {
    /// Waits until what the last run of the server left is read: a moment after the start. Counters asked for earlier
    /// would be smaller than those of before.
    pub async fn ready(&self) {
        let _moving = self.inner.moving.read().await;
    }

    /// Invocations of all functions that ever finished, deleted functions included, and errors among them.
    pub fn lifetime(&self) -> (u64, u64) {
        let lifetime = &self.inner.lifetime;
        let (count, errors) = lifetime.before(ALL);
        (
            count + lifetime.finished.load(Ordering::Relaxed),
            errors + lifetime.errors.load(Ordering::Relaxed),
        )
    }

    /// Invocations of a function that ever finished, and errors among them.
    pub fn lifetime_of(&self, function: i64) -> (u64, u64) {
        let (count, errors) = self.inner.lifetime.before(function);
        match self.inner.functions.load().get(&function) {
            Some(function) => {
                let counters = function.counters.lock();
                (count + counters.count, errors + counters.errors)
            }
            None => (count, errors),
        }
    }

    /// Invocations and errors since the server started, by row id, of the functions that were called.
    pub fn counts(&self) -> Vec<(i64, u64, u64)> {
        let functions = self.inner.functions.load();
        functions
            .iter()
            .map(|(id, function)| {
                let counters = function.counters.lock();
                (*id, counters.count, counters.errors)
            })
            .collect()
    }
}

impl Inner {
    /// At start: the totals of before.
    pub(super) async fn load_lifetime(&self) {
        let totals = match self.store.totals().await {
            Ok(totals) => totals,
            Err(error) => {
                tracing::warn!(%error, "counters start at 0");
                return;
            }
        };
        let before = totals
            .into_iter()
            .map(|(function, count, errors)| (function, (count, errors)))
            .collect();
        // Set already only if this ran twice.
        let _ = self.lifetime.before.set(before);
    }
}
