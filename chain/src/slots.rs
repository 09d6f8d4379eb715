//! The slots of a ring in shared memory.

use std::sync::Arc;

use crate::memory::{Copied, Memory, Writable};

/// Bytes of a slot: a descriptor.
pub(crate) const SLOT: usize = crate::descriptor::DESCRIPTOR_BYTES;

/// The slots of one output, which exists and has as many as its shape says.
#[derive(Debug)]
pub(crate) struct Slots<A> {
    memory: Arc<Memory<A>>,
    at: usize,
    latest: Copied<A>,
}

impl<A> Slots<A> {
    /// The slots at an offset that the board's shape gave.
    pub(crate) fn new(memory: &Arc<Memory<A>>, at: usize, latest_at: usize) -> Self {
        Self {
            memory: Arc::clone(memory),
            at,
            latest: memory.latest(latest_at),
        }
    }

    /// Copies a descriptor: from beside the head if it is the newest, which `newest` was published with; else from its slot. The peer
    /// may be writing it: the two words need not fit, and are checked like any others.
    #[inline]
    pub(crate) fn read(&self, slot: u32, newest: Option<u32>) -> [u64; 2] {
        if let Some(words) = newest.and_then(|after| self.latest.read(after)) {
            return words;
        }
        let at = self.at + slot as usize * SLOT;
        [self.memory.load(at), self.memory.load(at + 8)]
    }
}

impl Slots<Writable> {
    /// Writes a descriptor to its slot, and beside the head that it is published with.
    #[inline]
    pub(crate) fn write(&self, slot: u32, after: u32, words: [u64; 2]) {
        let at = self.at + slot as usize * SLOT;
        let [first, second] = words;
        self.memory.store(at, first);
        self.memory.store(at + 8, second);
        self.latest.write(after, words);
    }
}
