//! A copy of a ring's newest descriptor, on the cache line of the ring's head.
//!
//! A receiver that waits looks at the head. When it moves, the descriptor would be on another line, and fetching that from
//! the sender's processor takes as long again as the head did. So the sender also writes the descriptor beside its head, and
//! a receiver that has taken all but this one reads it there. One that is further behind reads the slots.
//!
//! The sender may be writing the next copy meanwhile: a sequence lock tells. All of it is the sender's to write, so a hostile one
//! can make the copy and the slot differ, which is as if it had sent the one or the other.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// No position: a copy is being written.
const NONE: u32 = u32::MAX;

/// The copy, and the ring's position after it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Latest {
    words: [AtomicU64; 2],
    after: AtomicU32,
    _reserved: [u32; 1],
}

impl Latest {
    /// Writes the copy, before `after` is published as the head.
    #[inline]
    pub fn write(&self, after: u32, words: [u64; 2]) {
        self.after.store(NONE, Ordering::Relaxed);
        // SYNC POINT: copy. Who sees a word of the new copy sees that the old one is gone.
        fence(Ordering::Release);
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        // SYNC POINT: copied
        self.after.store(after, Ordering::Release);
    }

    /// Reads the copy, if it is the one before `after`.
    #[inline]
    pub fn read(&self, after: u32) -> Option<[u64; 2]> {
        // Relaxed loads with fences, since the reader's mapping is read-only: see `PeerWord`.
        if self.after.load(Ordering::Relaxed) != after {
            return None;
        }
        // SYNC POINT: copied
        fence(Ordering::Acquire);
        let words = [0, 1].map(|index: usize| self.words[index].load(Ordering::Relaxed));
        // SYNC POINT: copy
        fence(Ordering::Acquire);
        (self.after.load(Ordering::Relaxed) == after).then_some(words)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_of_one_position() {
        let latest = Latest::default();
        assert_eq!(latest.read(1), None);
        latest.write(1, [5, 6]);
        assert_eq!((latest.read(1), latest.read(2)), (Some([5, 6]), None));
        latest.write(2, [7, 8]);
        assert_eq!((latest.read(1), latest.read(2)), (None, Some([7, 8])));
    }
}
