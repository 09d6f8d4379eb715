//! The free blocks, as a lock-free stack in the gateway's private memory: the block that was freed last, whose lines are
//! still in a cache, is given out first.
//!
//! Treiber's stack. A thread that has read the top and its successor may be delayed while others take both and put the
//! first back: the exchange would then succeed with a successor that is in use (ABA). So the top carries a count, which each
//! successful exchange increments; it repeats only after 2^32 exchanges within one delay.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// No block: the stack's end. Blocks are stored as their number plus one.
const NONE: u32 = 0;

/// A stack of block numbers.
#[derive(Debug)]
pub struct FreeList {
    /// The count in the upper half, the first block in the lower.
    top: AtomicU64,
    /// What lies below each block while it is on the stack.
    below: Box<[AtomicU32]>,
}

impl FreeList {
    /// Holds the blocks `0..blocks`, the lowest on top.
    #[must_use]
    pub fn full(blocks: u32) -> Self {
        let below = (1..=blocks).map(|number| {
            let next = if number == blocks { NONE } else { number + 1 };
            AtomicU32::new(next)
        });
        Self {
            below: below.collect(),
            top: AtomicU64::new(u64::from(blocks.min(1))),
        }
    }

    /// Takes a block; none if all are in use.
    pub fn pop(&self) -> Option<u32> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let index = (top as u32).checked_sub(1)?;
            // Of a stale top this may be anything; the exchange fails then.
            let next = self.below[index as usize].load(Ordering::Relaxed);
            match self.exchange(top, next) {
                Ok(()) => return Some(index),
                Err(seen) => top = seen,
            }
        }
    }

    /// Gives a block back that [`Self::pop`] gave out.
    pub fn push(&self, index: u32) {
        let below = &self.below[index as usize];
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            below.store(top as u32, Ordering::Relaxed);
            match self.exchange(top, index + 1) {
                Ok(()) => return,
                Err(seen) => top = seen,
            }
        }
    }

    /// SYNC POINT `freed`: what was done to a block before it was pushed happens before what is done after it is popped.
    #[inline]
    fn exchange(&self, top: u64, first: u32) -> Result<(), u64> {
        let count = (top >> 32).wrapping_add(1) << 32;
        self.top
            .compare_exchange_weak(
                top,
                count | u64::from(first),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map(drop)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_freed_is_the_first_given_out() {
        let list = FreeList::full(3);
        assert_eq!([0, 1, 2].map(Some), [list.pop(), list.pop(), list.pop()]);
        assert_eq!(list.pop(), None);
        list.push(1);
        list.push(0);
        assert_eq!(
            [list.pop(), list.pop(), list.pop()],
            [Some(0), Some(1), None]
        );
        assert_eq!(FreeList::full(0).pop(), None);
    }

    #[test]
    fn no_block_is_with_two_threads() {
        const BLOCKS: u32 = 4;
        let list = FreeList::full(BLOCKS);
        let held: Vec<AtomicU32> = (0..BLOCKS).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let Some(index) = list.pop() else { continue };
                        let holders = held[index as usize].fetch_add(1, Ordering::Relaxed);
                        assert_eq!(holders, 0, "block {index}");
                        held[index as usize].fetch_sub(1, Ordering::Relaxed);
                        list.push(index);
                    }
                });
            }
        });
        let mut left: Vec<u32> = std::iter::from_fn(|| list.pop()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2, 3]);
    }
}
