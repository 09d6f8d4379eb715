//! A pool's shape: how many blocks of what size, and where they lie.

use core::ops::Range;

use crate::accounts::Entry;
use crate::descriptor::{Descriptor, MAX_BLOCK_BYTES, MAX_BLOCKS};
use crate::error::{ChainError, Refused};
use crate::mapping::HUGE_PAGE;
use crate::memory::LINE;

/// Where the ledger's entries begin; before them are magic, version and shape.
pub(crate) const ENTRIES_AT: usize = LINE;
/// Smallest block, in bytes: a page, so that blocks never share one.
pub const MIN_BLOCK_BYTES: u32 = 4 << 10;
/// Largest pool, in bytes: bounds what one chain can make the server map.
pub const MAX_POOL_BYTES: u64 = 64 << 30;
/// Distance of two notes: what is said of a block beside its payload ([`crate::envelope`], [`crate::trace`]).
pub(crate) const NOTE_BYTES: usize = 1024;
/// Blocks begin at a multiple of this.
const PAGE: usize = 4 << 10;

/// How many blocks of what size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    blocks: u32,
    block_bytes: u32,
}

impl Shape {
    /// Checks the sizes.
    ///
    /// # Errors
    /// There is no block or there are more than [`MAX_BLOCKS`]; a block is not a power of two from [`MIN_BLOCK_BYTES`] to
    /// [`MAX_BLOCK_BYTES`]; or they make more than [`MAX_POOL_BYTES`].
    pub fn new(blocks: u32, block_bytes: u32) -> Result<Self, ChainError> {
        let wrong = |what, found, rule| Err(ChainError::Size { what, found, rule });
        if blocks == 0 || blocks > MAX_BLOCKS {
            return wrong("a number of blocks", blocks.into(), "from 1 to 524,288");
        }
        let sizes = MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES;
        if !block_bytes.is_power_of_two() || !sizes.contains(&block_bytes) {
            let rule = "a power of two from 4 KiB to 8 MiB";
            return wrong("a block size", block_bytes.into(), rule);
        }
        let bytes = u64::from(blocks) * u64::from(block_bytes);
        if bytes > MAX_POOL_BYTES {
            return wrong("a pool size", bytes, "64 GiB or less");
        }
        Ok(Self {
            blocks,
            block_bytes,
        })
    }

    /// The number of blocks.
    #[must_use]
    pub const fn blocks(self) -> u32 {
        self.blocks
    }

    /// A block's size, in bytes.
    #[must_use]
    pub const fn block_bytes(self) -> u32 {
        self.block_bytes
    }

    pub(crate) fn ledger_bytes(self) -> u64 {
        (ENTRIES_AT + self.blocks as usize * size_of::<Entry>()).next_multiple_of(PAGE) as u64
    }

    /// Bytes of notes before the blocks.
    fn notes_bytes(self) -> usize {
        (self.blocks as usize * NOTE_BYTES).next_multiple_of(PAGE)
    }

    /// Bytes of the file of the blocks: whole huge pages if there is one. What lies behind the blocks is not used.
    pub(crate) fn blocks_bytes(self) -> u64 {
        let needed =
            self.notes_bytes() as u64 + u64::from(self.blocks) * u64::from(self.block_bytes);
        if needed < HUGE_PAGE as u64 {
            needed
        } else {
            needed.next_multiple_of(HUGE_PAGE as u64)
        }
    }

    /// Where a block's bytes lie in the file of the blocks. The block's number has been checked.
    #[inline]
    pub(crate) fn bytes_of(self, block: u32, len: u32) -> Range<usize> {
        debug_assert!(block < self.blocks && len <= self.block_bytes);
        let at = self.notes_bytes() + block as usize * self.block_bytes as usize;
        at..at + len as usize
    }

    #[inline]
    pub(crate) fn note_of(self, block: u32) -> usize {
        debug_assert!(block < self.blocks);
        block as usize * NOTE_BYTES
    }

    /// Checks what a descriptor says of the pool.
    #[inline]
    pub(crate) fn check(self, descriptor: &Descriptor) -> Result<(), Refused> {
        if descriptor.block >= self.blocks {
            return Err(Refused::OutsidePool {
                block: descriptor.block,
                blocks: self.blocks,
            });
        }
        if descriptor.len > self.block_bytes {
            return Err(Refused::TooLong {
                len: descriptor.len,
                block_bytes: self.block_bytes,
            });
        }
        Ok(())
    }
}
