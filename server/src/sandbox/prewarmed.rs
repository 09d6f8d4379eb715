//! The host process's reports on pre-warmed sandboxes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The specification of a pre-warmed sandbox.
#[derive(Debug, Clone)]
pub struct PrewarmedSpec {
    /// First of the two host uids.
    pub uid_base: u32,
    /// The runtime.
    pub runtime_name: &'static str,
}

/// Current and past counts for others to read. Cheap to clone; all clones show the same.
#[derive(Debug, Clone, Default)]
pub struct PrewarmedBoard(Arc<Board>);

#[derive(Debug, Default)]
struct Board {
    /// Runtimes that have one, and whether it is ready.
    kept: Mutex<HashMap<String, bool>>,
    used: AtomicU64,
}

impl PrewarmedBoard {
    /// Whether a runtime has one, or will have in a moment.
    pub fn has(&self, runtime: &str) -> bool {
        self.0.kept.lock().contains_key(runtime)
    }

    /// Runtimes that have one, or will have in a moment.
    pub fn runtimes(&self) -> Vec<String> {
        self.0.kept.lock().keys().cloned().collect()
    }

    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.0.kept.lock().values().filter(|ready| **ready).count()
    }

    /// How many restores have taken.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    pub(super) fn count_use(&self) {
        self.0.used.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a runtime has one, and whether that is ready.
    pub(super) fn show(&self, runtime: &str, kept: Option<bool>) {
        let mut all = self.0.kept.lock();
        match kept {
            Some(ready) => drop(all.insert(runtime.to_owned(), ready)),
            None => drop(all.remove(runtime)),
        }
    }
}
