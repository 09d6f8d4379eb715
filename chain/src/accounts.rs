//! Who owns which block, since when, and which are free: the part of the pool that loom models.
//!
//! Each block has an [`Entry`] in the ledger, which the gateway writes and members read, and a place in the [`FreeList`] or among the
//! [`Runs`], which are the gateway's own. All transitions are the gateway's, from any of its threads:
//!
//! ```text
//! free, generation g ── allocate(owner) ──> in use, g ── free(g) or reclaim(owner) ──> cleared ──> free, g + 1
//! ```
//!
//! Freeing is one compare-and-exchange of the entry's tag. So of any number of threads that free a block at once (its
//! descriptor came back while its request timed out), one does, and the others are told that the descriptor is stale.
//! The winner has the block to itself until it pushes it on the free list: that is when it is cleared.
//!
//! A **run** of blocks has the entry of its first one: tag, owner, and how many blocks follow. The entries of those that follow say
//! that they are free, so that a descriptor of one of them leads nowhere, and the run is freed and cleared as a whole. Its
//! length is written before its tag and stays as it is until that generation has ended.

#[cfg(not(loom))]
mod owned;

use core::ops::Deref;

#[cfg(not(loom))]
pub(crate) use self::owned::owned;
use crate::error::{Exhausted, Refused};
use crate::free_list::FreeList;
use crate::id::Owner;
use crate::runs::{Run, Runs};
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering, fence};

/// A tag's lowest bit: the block is in use. The generation is above.
const IN_USE: u32 = 1;

/// One block's line in the ledger.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Entry {
    owner: AtomicU64,
    tag: AtomicU32,
    /// Blocks that belong to this one, behind it.
    more: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == 16);

impl Entry {
    /// How many blocks there are with this one, for who has it in hand: nobody gives it back meanwhile.
    #[cfg(not(loom))]
    pub(crate) fn blocks(&self) -> u32 {
        self.more.load(Ordering::Relaxed).saturating_add(1)
    }
}

/// The lower half of the generation of a tag, as descriptors have it.
#[inline]
const fn generation(tag: u32) -> u16 {
    (tag >> 1) as u16
}

#[inline]
const fn is_of(tag: u32, wanted: u16) -> bool {
    tag & IN_USE != 0 && generation(tag) == wanted
}

/// What a block is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Whose it is; none if nobody has such an owner.
    pub owner: Option<Owner>,
    /// How many blocks it is, with the first.
    pub blocks: u32,
}

/// The use of a block if it is in use and of this generation, for who reads the ledger in any process.
///
/// # Errors
/// The block is free, of another generation, or in a run whose first it is not.
#[inline]
pub fn use_of(entry: &Entry, block: u32, generation: u16) -> Result<Use, Refused> {
    let stale = Refused::Stale { block, generation };
    // Relaxed loads with fences, since the reader's mapping is read-only: see `PeerWord`.
    let tag = entry.tag.load(Ordering::Relaxed);
    if !is_of(tag, generation) {
        return Err(stale);
    }
    // SYNC POINT: allocated
    fence(Ordering::Acquire);
    let owner = entry.owner.load(Ordering::Relaxed);
    let more = entry.more.load(Ordering::Relaxed);
    // SYNC POINT: superseded. A later use's owner, and length, come with a tag that differs.
    fence(Ordering::Acquire);
    if entry.tag.load(Ordering::Relaxed) == tag {
        Ok(Use {
            owner: Owner::unpack(owner),
            blocks: more.saturating_add(1),
        })
    } else {
        Err(stale)
    }
}

/// The gateway's accounts of one pool. `E` leads to the ledger.
#[derive(Debug)]
pub struct Accounts<E> {
    entries: E,
    free: FreeList,
    /// The first block that is not the free list's.
    runs_from: u32,
    runs: Lock<Runs>,
    in_use: AtomicU32,
}

impl<E: Deref<Target = [Entry]>> Accounts<E> {
    /// Of a fresh ledger, all of whose blocks are free, one by one.
    pub fn new(entries: E) -> Self {
        let blocks = entries.len() as u32;
        Self::with_runs(entries, blocks)
    }

    /// Of a fresh ledger whose blocks from this one on are for runs.
    pub fn with_runs(entries: E, from: u32) -> Self {
        // The ledger has `MAX_BLOCKS` entries at most.
        let blocks = entries.len() as u32;
        let from = from.min(blocks);
        Self {
            entries,
            free: FreeList::full(from),
            runs_from: from,
            runs: Lock::new(Runs::new(from, blocks)),
            in_use: AtomicU32::new(0),
        }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Blocks that are not free.
    pub fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Takes a free block: its number and its generation.
    ///
    /// # Errors
    /// There is none. It does not wait for one.
    pub fn allocate(&self, owner: Owner) -> Result<(u32, u16), Exhausted> {
        if let Some(index) = self.free.pop() {
            // No run ever began there.
            return Ok(self.begin(index, 1, owner));
        }
        if self.runs_from == self.blocks() {
            return Err(Exhausted);
        }
        let index = self.runs.lock().take_last().ok_or(Exhausted)?;
        self.entries[index as usize]
            .more
            .store(0, Ordering::Release);
        Ok(self.begin(index, 1, owner))
    }

    /// Takes a run of free blocks: the number of the first, and its generation.
    ///
    /// # Errors
    /// There are not as many side by side. It does not wait for them.
    pub fn allocate_run(&self, owner: Owner, blocks: u32) -> Result<(u32, u16), Exhausted> {
        if blocks <= 1 {
            return self.allocate(owner);
        }
        let run = self.runs.lock().take(blocks).ok_or(Exhausted)?;
        // SYNC POINT: superseded. As the owner.
        self.entries[run.first as usize]
            .more
            .store(blocks - 1, Ordering::Release);
        Ok(self.begin(run.first, blocks, owner))
    }

    /// Begins the use of blocks that this thread has taken.
    #[inline]
    fn begin(&self, index: u32, blocks: u32, owner: Owner) -> (u32, u16) {
        self.in_use.fetch_add(blocks, Ordering::Relaxed);
        let entry = &self.entries[index as usize];
        // Only this thread writes the entry while the block is on no list and not in use.
        let tag = entry.tag.load(Ordering::Relaxed) | IN_USE;
        // SYNC POINT: superseded. Whoever sees this owner sees the tag that ended the use before.
        entry.owner.store(owner.pack(), Ordering::Release);
        // SYNC POINT: allocated. Whoever sees this tag sees the owner, and how many blocks there are.
        entry.tag.store(tag, Ordering::Release);
        (index, generation(tag))
    }

    /// The block's owner.
    ///
    /// # Errors
    /// There is no such block, or it is free or of another generation.
    pub fn owner(&self, block: u32, generation: u16) -> Result<Option<Owner>, Refused> {
        Ok(self.used(block, generation)?.owner)
    }

    /// What the block is used for.
    ///
    /// # Errors
    /// As [`Self::owner`].
    #[inline]
    pub fn used(&self, block: u32, generation: u16) -> Result<Use, Refused> {
        use_of(self.entry(block)?, block, generation)
    }

    /// The owner of a block, of whatever generation; none if it is free.
    pub fn current_owner(&self, block: u32) -> Option<Owner> {
        let entry = self.entry(block).ok()?;
        let generation = generation(entry.tag.load(Ordering::Relaxed));
        use_of(entry, block, generation).ok()?.owner
    }

    /// Gives a block back, with the run that it begins, after `clear` has had all of it.
    ///
    /// # Errors
    /// There is no such block, or it is free or of another generation: somebody else has given it back.
    pub fn free(
        &self,
        block: u32,
        generation: u16,
        clear: impl FnOnce(Run),
    ) -> Result<(), Refused> {
        let entry = self.entry(block)?;
        let tag = entry.tag.load(Ordering::Relaxed);
        if is_of(tag, generation) && self.end(block, entry, tag, clear) {
            Ok(())
        } else {
            Err(Refused::Stale { block, generation })
        }
    }

    /// Gives back all blocks of an owner that takes no more, after `clear` has had each run of them; how many runs. Looks at every
    /// entry, so it is for owners that failed.
    pub fn reclaim(&self, owner: Owner, mut clear: impl FnMut(Run)) -> u32 {
        let mut reclaimed = 0;
        for (entry, block) in self.entries.iter().zip(0..) {
            let tag = entry.tag.load(Ordering::Acquire);
            if tag & IN_USE == 0 || entry.owner.load(Ordering::Acquire) != owner.pack() {
                continue;
            }
            // If the owner is a later use's, the tag has changed, and the exchange fails.
            if self.end(block, entry, tag, &mut clear) {
                reclaimed += 1;
            }
        }
        reclaimed
    }

    fn entry(&self, block: u32) -> Result<&Entry, Refused> {
        self.entries
            .get(block as usize)
            .ok_or(Refused::OutsidePool {
                block,
                blocks: self.blocks(),
            })
    }

    /// Ends the use that `tag` stands for, if nobody else has.
    fn end(&self, block: u32, entry: &Entry, tag: u32, clear: impl FnOnce(Run)) -> bool {
        // In use has the lowest bit, so one more is free and of the next generation.
        let ended = tag.wrapping_add(1);
        let exchanged = entry
            .tag
            .compare_exchange(tag, ended, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_err() {
            return false;
        }
        // Nobody writes it before the block is given out again.
        let run = Run {
            first: block,
            blocks: entry.more.load(Ordering::Relaxed) + 1,
        };
        clear(run);
        self.in_use.fetch_sub(run.blocks, Ordering::Relaxed);
        if block < self.runs_from {
            self.free.push(block);
        } else {
            self.runs.lock().put(run);
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn accounts(blocks: usize) -> Accounts<Box<[Entry]>> {
        Accounts::new((0..blocks).map(|_| Entry::default()).collect())
    }

    const OWNER: Owner = Owner::Request { id: 7, route: 0 };

    #[test]
    fn a_block_is_freed_once_and_gets_a_new_generation() {
        let accounts = accounts(1);
        let (block, first) = accounts.allocate(OWNER).expect("a block");
        assert_eq!(accounts.allocate(OWNER), Err(Exhausted));
        assert_eq!(accounts.owner(block, first), Ok(Some(OWNER)));
        let stale = Refused::Stale {
            block,
            generation: first,
        };
        let mut cleared = 0;
        accounts
            .free(block, first, |_| cleared += 1)
            .expect("in use");
        assert_eq!(accounts.free(block, first, |_| cleared += 1), Err(stale));
        assert_eq!(accounts.owner(block, first), Err(stale));
        let (_, second) = accounts.allocate(Owner::Gateway).expect("a block");
        assert_ne!(first, second);
        assert_eq!(accounts.free(block, first, |_| cleared += 1), Err(stale));
        assert_eq!((cleared, accounts.in_use()), (1, 1));
    }

    #[test]
    fn a_generation_that_is_out_of_range_names_no_block() {
        let accounts = accounts(2);
        let outside = Refused::OutsidePool {
            block: 2,
            blocks: 2,
        };
        assert_eq!(accounts.owner(2, 0), Err(outside));
        assert_eq!(accounts.free(2, 0, |_| {}), Err(outside));
    }

    #[test]
    fn an_owners_blocks_come_back_and_nobody_elses() {
        let accounts = accounts(4);
        let dead = |epoch| Owner::Instance {
            instance: crate::Instance(3),
            epoch,
        };
        let (first, _) = accounts.allocate(dead(1)).expect("a block");
        let (other, generation) = accounts.allocate(dead(2)).expect("a block");
        let (second, _) = accounts.allocate(dead(1)).expect("a block");
        let mut cleared = Vec::new();
        let of = |owner| {
            let owned = accounts.owned().filter(move |(_, found)| *found == owner);
            owned.map(|(block, _)| block.index).collect::<Vec<_>>()
        };
        assert_eq!(of(dead(1)), [first, second]);
        assert_eq!(accounts.reclaim(dead(1), |run| cleared.push(run.first)), 2);
        assert!(of(dead(1)).is_empty());
        assert_eq!(cleared, [first, second]);
        assert_eq!(accounts.reclaim(dead(1), |_| {}), 0);
        assert_eq!(accounts.owner(other, generation), Ok(Some(dead(2))));
        assert_eq!(accounts.in_use(), 1);
    }

    #[test]
    fn generations_go_round() {
        let accounts = accounts(1);
        accounts.entries[0]
            .tag
            .store(u32::MAX - 1, Ordering::Relaxed);
        let (block, last) = accounts.allocate(OWNER).expect("a block");
        assert_eq!(last, u16::MAX);
        accounts.free(block, last, |_| {}).expect("in use");
        assert_eq!(accounts.allocate(OWNER), Ok((block, 0)));
    }

    #[test]
    fn a_run_is_its_first_blocks_and_comes_back_whole() {
        let entries = (0..8).map(|_| Entry::default()).collect::<Box<[_]>>();
        let accounts = Accounts::with_runs(entries, 4);
        let (first, generation) = accounts.allocate_run(OWNER, 3).expect("a run");
        assert_eq!(first, 4);
        assert_eq!(accounts.allocate_run(OWNER, 2), Err(Exhausted));
        let used = Use {
            owner: Some(OWNER),
            blocks: 3,
        };
        assert_eq!(accounts.used(first, generation), Ok(used));
        for inner in 5..8 {
            assert!(accounts.used(inner, generation).is_err(), "{inner}");
            assert!(accounts.free(inner, generation, |_| {}).is_err(), "{inner}");
        }
        // One by one, all that is left of the pool.
        let mut rest: Vec<_> = std::iter::from_fn(|| accounts.allocate(OWNER).ok()).collect();
        rest.sort_unstable();
        let numbers: Vec<_> = rest.iter().map(|(block, _)| *block).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 7]);
        assert_eq!(accounts.in_use(), 8);
        let mut cleared = Vec::new();
        accounts
            .free(first, generation, |run| {
                cleared.push((run.first, run.blocks))
            })
            .expect("in use");
        assert_eq!(cleared, [(4, 3)]);
        assert!(accounts.free(first, generation, |_| {}).is_err(), "once");
        assert_eq!(accounts.in_use(), 5);
        // What was one block of a run begins with one of its own.
        let (last, generation) = accounts.allocate(OWNER).expect("a block");
        assert_eq!(
            accounts.used(last, generation).map(|used| used.blocks),
            Ok(1)
        );
        assert_eq!(accounts.reclaim(OWNER, |_| {}), 6);
        let (_, again) = accounts.allocate_run(OWNER, 4).expect("a run");
        assert_eq!(accounts.used(4, again).map(|used| used.blocks), Ok(4));
    }
}
