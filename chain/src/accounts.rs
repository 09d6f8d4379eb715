//! Who owns which block, since when, and which are free: the part of the pool that loom models.
//!
//! Each block has an [`Entry`] in the ledger, which the gateway writes and members read, and a place in the [`FreeList`],
//! which is the gateway's own. All transitions are the gateway's, from any of its threads:
//!
//! ```text
//! free, generation g ── allocate(owner) ──> in use, g ── free(g) or reclaim(owner) ──> cleared ──> free, g + 1
//! ```
//!
//! Freeing is one compare-and-exchange of the entry's tag. So of any number of threads that free a block at once (its
//! descriptor came back while its request timed out), one does, and the others are told that the descriptor is stale.
//! The winner has the block to itself until it pushes it on the free list: that is when it is cleared.

use core::ops::Deref;

use crate::error::{Exhausted, Refused};
use crate::free_list::FreeList;
use crate::id::Owner;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// A tag's lowest bit: the block is in use. The generation is above.
const IN_USE: u32 = 1;

/// One block's line in the ledger.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Entry {
    owner: AtomicU64,
    tag: AtomicU32,
    // Up to sixteen bytes.
    _reserved: [u32; 1],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == 16);

/// The lower half of the generation of a tag, as descriptors have it.
#[inline]
const fn generation(tag: u32) -> u16 {
    (tag >> 1) as u16
}

#[inline]
const fn is_of(tag: u32, wanted: u16) -> bool {
    tag & IN_USE != 0 && generation(tag) == wanted
}

/// The owner of a block if it is in use and of this generation, for who reads the ledger in any process.
///
/// # Errors
/// The block is free or of another generation.
#[inline]
pub fn owner_of(entry: &Entry, block: u32, generation: u16) -> Result<Option<Owner>, Refused> {
    let stale = Refused::Stale { block, generation };
    // Relaxed loads with fences, since the reader's mapping is read-only: see `PeerWord`.
    let tag = entry.tag.load(Ordering::Relaxed);
    if !is_of(tag, generation) {
        return Err(stale);
    }
    // SYNC POINT: allocated
    fence(Ordering::Acquire);
    let owner = entry.owner.load(Ordering::Relaxed);
    // SYNC POINT: superseded. A later use's owner comes with a tag that differs.
    fence(Ordering::Acquire);
    if entry.tag.load(Ordering::Relaxed) == tag {
        Ok(Owner::unpack(owner))
    } else {
        Err(stale)
    }
}

/// The gateway's accounts of one pool. `E` leads to the ledger.
#[derive(Debug)]
pub struct Accounts<E> {
    entries: E,
    free: FreeList,
    in_use: AtomicU32,
}

impl<E: Deref<Target = [Entry]>> Accounts<E> {
    /// Of a fresh ledger, all of whose blocks are free.
    pub fn new(entries: E) -> Self {
        // The ledger has `MAX_BLOCKS` entries at most.
        let free = FreeList::full(entries.len() as u32);
        Self {
            entries,
            free,
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
        let index = self.free.pop().ok_or(Exhausted)?;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        let entry = &self.entries[index as usize];
        // Only this thread writes the entry while the block is on no list and not in use.
        let tag = entry.tag.load(Ordering::Relaxed) | IN_USE;
        // SYNC POINT: superseded. Whoever sees this owner sees the tag that ended the use before.
        entry.owner.store(owner.pack(), Ordering::Release);
        // SYNC POINT: allocated. Whoever sees this tag sees the owner.
        entry.tag.store(tag, Ordering::Release);
        Ok((index, generation(tag)))
    }

    /// The block's owner.
    ///
    /// # Errors
    /// There is no such block, or it is free or of another generation.
    pub fn owner(&self, block: u32, generation: u16) -> Result<Option<Owner>, Refused> {
        owner_of(self.entry(block)?, block, generation)
    }

    /// The owner of a block, of whatever generation; none if it is free.
    pub fn current_owner(&self, block: u32) -> Option<Owner> {
        let entry = self.entry(block).ok()?;
        let generation = generation(entry.tag.load(Ordering::Relaxed));
        owner_of(entry, block, generation).ok().flatten()
    }

    /// Gives a block back, after `clear` has had it.
    ///
    /// # Errors
    /// There is no such block, or it is free or of another generation: somebody else has given it back.
    pub fn free(
        &self,
        block: u32,
        generation: u16,
        clear: impl FnOnce(u32),
    ) -> Result<(), Refused> {
        let entry = self.entry(block)?;
        let tag = entry.tag.load(Ordering::Relaxed);
        if is_of(tag, generation) && self.end(block, entry, tag, clear) {
            Ok(())
        } else {
            Err(Refused::Stale { block, generation })
        }
    }

    /// Gives back all blocks of an owner that takes no more, after `clear` has had each; how many. Looks at every entry, so
    /// it is for owners that failed.
    pub fn reclaim(&self, owner: Owner, mut clear: impl FnMut(u32)) -> u32 {
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

    /// The blocks of an owner, with their generations. Looks at every entry.
    pub fn blocks_of(&self, owner: Owner) -> Vec<(u32, u16)> {
        let of_owner = |(entry, block): (&Entry, u32)| {
            let generation = generation(entry.tag.load(Ordering::Relaxed));
            let found = owner_of(entry, block, generation);
            (found == Ok(Some(owner))).then_some((block, generation))
        };
        self.entries.iter().zip(0..).filter_map(of_owner).collect()
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
    fn end(&self, block: u32, entry: &Entry, tag: u32, clear: impl FnOnce(u32)) -> bool {
        // In use has the lowest bit, so one more is free and of the next generation.
        let ended = tag.wrapping_add(1);
        let exchanged = entry
            .tag
            .compare_exchange(tag, ended, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_err() {
            return false;
        }
        clear(block);
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        self.free.push(block);
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
        let both = accounts
            .blocks_of(dead(1))
            .into_iter()
            .map(|(block, _)| block);
        assert_eq!(both.collect::<Vec<_>>(), [first, second]);
        assert_eq!(accounts.reclaim(dead(1), |block| cleared.push(block)), 2);
        assert_eq!(accounts.blocks_of(dead(1)), []);
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
}
