//! The atomics and locks of the cores that loom models: the processor's, or loom's.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A word that this side only reads, since its mapping is read-only or another process owns it.
pub trait PeerWord {
    /// Loads it, relaxed. Only relaxed loads are defined on read-only memory (`std::sync::atomic`, "Atomic accesses to
    /// read-only memory"); where an order is needed, a fence follows.
    fn load(&self) -> u32;
}

impl PeerWord for std::sync::Arc<AtomicU32> {
    #[inline]
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::Relaxed)
    }
}

#[cfg(loom)]
impl PeerWord for loom::sync::Arc<AtomicU32> {
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::Relaxed)
    }
}

/// Loads a peer's word so that what the peer wrote before it stored the word is visible afterwards.
#[inline]
pub(crate) fn load_acquire(word: &impl PeerWord) -> u32 {
    let value = word.load();
    fence(Ordering::Acquire);
    value
}

/// A lock whose holders do not panic half-way: one that did so in a test leaves it usable.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
