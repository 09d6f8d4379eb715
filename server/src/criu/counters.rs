//! Counters of dumps and restores.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The counters of one function version.
#[derive(Debug, Default)]
pub struct Counters {
    restores: AtomicU64,
    restore_failures: AtomicU64,
    dumps: AtomicU64,
    dump_failures: AtomicU64,
    note: Mutex<Option<String>>,
}

/// A reading of it, or a sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Templates that came out of an image.
    pub restores: u64,
    /// Restores that failed or timed out, so that the start fell to a boot.
    pub restore_failures: u64,
    /// Images made.
    pub dumps: u64,
    /// Images that could not be created.
    pub dump_failures: u64,
}

impl Counters {
    /// A restore that worked.
    pub fn restored(&self) {
        self.restores.fetch_add(1, Ordering::Relaxed);
        *self.note.lock() = None;
    }

    /// A restore that did not, and why.
    pub fn restore_failed(&self, why: &str) {
        self.restore_failures.fetch_add(1, Ordering::Relaxed);
        *self.note.lock() = Some(format!("restore failed: {why}"));
    }

    /// An image was made.
    pub fn dumped(&self) {
        self.dumps.fetch_add(1, Ordering::Relaxed);
    }

    /// An image could not be made, and why.
    pub fn dump_failed(&self, why: &str) {
        self.dump_failures.fetch_add(1, Ordering::Relaxed);
        *self.note.lock() = Some(format!("no image: {why}"));
    }

    /// The last thing that went wrong, unless something went well since.
    pub fn note(&self) -> Option<String> {
        self.note.lock().clone()
    }

    /// Reads the counters.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            restores: read(&self.restores),
            restore_failures: read(&self.restore_failures),
            dumps: read(&self.dumps),
            dump_failures: read(&self.dump_failures),
        }
    }
}
