//! The slots of a ring in shared memory.

use std::sync::Arc;

use crate::memory::{Memory, Writable};

/// Bytes of a slot: a descriptor.
pub(crate) const SLOT: usize = crate::descriptor::DESCRIPTOR_BYTES;

/// The slots of one output, which exists and has as many as its shape says.
#[derive(Debug)]
pub(crate) struct Slots<A> {
    memory: Arc<Memory<A>>,
    at: usize,
}

impl<A> Slots<A> {
    /// The slots at an offset that the board's shape gave.
    pub(crate) fn new(memory: &Arc<Memory<A>>, at: usize) -> Self {
        Self {
            memory: Arc::clone(memory),
            at,
        }
    }

    /// Copies a slot. The peer may be writing it: the two words need not fit, and are checked like any others.
    #[inline]
    pub(crate) fn read(&self, slot: u32) -> [u64; 2] {
        let at = self.at + slot as usize * SLOT;
        [self.memory.load(at), self.memory.load(at + 8)]
    }
}

impl Slots<Writable> {
    #[inline]
    pub(crate) fn write(&self, slot: u32, [first, second]: [u64; 2]) {
        let at = self.at + slot as usize * SLOT;
        self.memory.store(at, first);
        self.memory.store(at + 8, second);
    }
}
