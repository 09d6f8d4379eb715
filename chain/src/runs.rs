//! The upper part of a pool, which payloads that are larger than a block have: runs of consecutive blocks.
//!
//! The free list cannot give out neighbours: it is a stack, in whatever order blocks came back. So a pool that has runs keeps its upper
//! half out of it, and that half in a bitmap under a lock, as page allocators do. The search goes on where the last one ended
//! (next fit), and steps over whole words; it takes as long as there are gaps that are too small. A block that the free list has
//! no more of comes from the other end, so that small payloads use all of the pool and split as few runs as can be.
//!
//! The lock is held for the search alone. Blocks are cleared before they are put back, and whoever takes them next takes the same
//! lock: what was done to a block before happens before.

/// A run of consecutive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// The first block, whose number and generation are the run's.
    pub first: u32,
    /// How many.
    pub blocks: u32,
}

impl Run {
    /// The block behind it.
    #[must_use]
    pub const fn end(self) -> u32 {
        self.first + self.blocks
    }
}

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// Which blocks are free, from one number on.
#[derive(Debug)]
pub struct Runs {
    begin: u32,
    blocks: u32,
    free: u32,
    /// Where the next search begins.
    next: u32,
    /// A bit for each block, set while it is taken. Those behind the last are set for good.
    taken: Box<[u64]>,
}

impl Runs {
    /// The blocks `begin..end`, all of them free.
    #[must_use]
    pub fn new(begin: u32, end: u32) -> Self {
        let blocks = end.saturating_sub(begin);
        let mut taken = vec![0; blocks.div_ceil(WORD) as usize];
        if let Some(last) = taken.last_mut()
            && !blocks.is_multiple_of(WORD)
        {
            *last = u64::MAX << (blocks % WORD);
        }
        Self {
            begin,
            blocks,
            free: blocks,
            next: 0,
            taken: taken.into(),
        }
    }

    /// Whether a block is one of these.
    #[must_use]
    pub fn has(&self, block: u32) -> bool {
        block >= self.begin && block - self.begin < self.blocks
    }

    /// Takes so many neighbours; none if there are not as many side by side.
    pub fn take(&mut self, blocks: u32) -> Option<Run> {
        if blocks == 0 || blocks > self.free {
            return None;
        }
        // From the last place to the end; then from the beginning, to runs that begin before it.
        let again = self.next.saturating_add(blocks - 1).min(self.blocks);
        let at = self
            .find(blocks, self.next, self.blocks)
            .or_else(|| self.find(blocks, 0, again))?;
        self.mark(at, blocks, true);
        self.next = at + blocks;
        Some(Run {
            first: self.begin + at,
            blocks,
        })
    }

    /// Takes one block, the highest that is free.
    pub fn take_last(&mut self) -> Option<u32> {
        let mut words = self.taken.iter().enumerate();
        let (at, word) = words.rfind(|(_, word)| **word != u64::MAX)?;
        // A pool has `MAX_BLOCKS` blocks at most.
        let at = at as u32 * WORD + (WORD - 1 - word.leading_ones());
        self.mark(at, 1, true);
        Some(self.begin + at)
    }

    /// Puts back what was taken.
    pub fn put(&mut self, run: Run) {
        self.mark(run.first - self.begin, run.blocks, false);
    }

    /// The first place in `from..to` where so many are free.
    fn find(&self, blocks: u32, mut from: u32, to: u32) -> Option<u32> {
        loop {
            let at = self.first(from, to, false)?;
            let end = at.checked_add(blocks).filter(|&end| end <= to)?;
            match self.first(at, end, true) {
                None => return Some(at),
                Some(taken) => from = taken,
            }
        }
    }

    /// The first in `from..to` that is taken, or that is not.
    fn first(&self, from: u32, to: u32, is_taken: bool) -> Option<u32> {
        let mut at = from;
        while at < to {
            let word = self.taken[(at / WORD) as usize];
            let wanted = if is_taken { word } else { !word };
            let left = wanted >> (at % WORD);
            if left != 0 {
                let found = at + left.trailing_zeros();
                return (found < to).then_some(found);
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    fn mark(&mut self, at: u32, blocks: u32, taken: bool) {
        for index in at..at + blocks {
            let (word, bit) = ((index / WORD) as usize, 1_u64 << (index % WORD));
            debug_assert_ne!(self.taken[word] & bit != 0, taken, "block {index}");
            if taken {
                self.taken[word] |= bit;
            } else {
                self.taken[word] &= !bit;
            }
        }
        self.free = if taken {
            self.free - blocks
        } else {
            self.free + blocks
        };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_search_goes_on_where_the_last_one_ended() {
        let mut runs = Runs::new(10, 20);
        let run = |first, blocks| Some(Run { first, blocks });
        assert_eq!((runs.take(4), runs.take(4)), (run(10, 4), run(14, 4)));
        assert_eq!(runs.take(3), None, "there are two left");
        runs.put(Run {
            first: 10,
            blocks: 4,
        });
        assert_eq!((runs.take(2), runs.take(2)), (run(18, 2), run(10, 2)));
        assert_eq!(runs.take_last(), Some(13));
        assert_eq!(runs.take(2), None, "one is left");
        assert_eq!((runs.take_last(), runs.take_last()), (Some(12), None));
        assert_eq!((runs.take(0), Runs::new(3, 3).take(1)), (None, None));
        assert!(runs.has(10) && runs.has(19) && !runs.has(9) && !runs.has(20));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Take(u32),
        Last,
        Put(prop::sample::Index),
    }

    proptest! {
        /// Against a set: no block is given out twice, none is lost, and what fits is found.
        #[test]
        fn runs_never_overlap_and_nothing_is_lost(
            blocks in 0..200_u32,
            steps in prop::collection::vec(prop_oneof![
                4 => (1..70_u32).prop_map(Step::Take),
                1 => Just(Step::Last),
                3 => any::<prop::sample::Index>().prop_map(Step::Put),
            ], 1..100),
        ) {
            let begin = 5;
            let mut runs = Runs::new(begin, begin + blocks);
            let mut free: BTreeSet<u32> = (begin..begin + blocks).collect();
            let mut held = Vec::new();
            for step in steps {
                let fits = |len: u32| {
                    (begin..begin + blocks).any(|at| (at..at + len).all(|block| free.contains(&block)))
                };
                let run = match step {
                    Step::Take(len) => {
                        let run = runs.take(len);
                        prop_assert_eq!(run.is_some(), fits(len));
                        run
                    }
                    Step::Last => {
                        let block = runs.take_last();
                        prop_assert_eq!(block, free.last().copied());
                        block.map(|first| Run { first, blocks: 1 })
                    }
                    Step::Put(index) => {
                        if !held.is_empty() {
                            let run: Run = held.swap_remove(index.index(held.len()));
                            runs.put(run);
                            free.extend(run.first..run.end());
                        }
                        None
                    }
                };
                for block in run.into_iter().flat_map(|run| run.first..run.end()) {
                    prop_assert!(free.remove(&block), "block {} is held already", block);
                }
                held.extend(run);
                prop_assert_eq!(runs.free as usize, free.len());
            }
            for run in held {
                runs.put(run);
            }
            prop_assert_eq!(runs.take(blocks).is_some(), blocks > 0, "all of it is one run again");
        }
    }
}
