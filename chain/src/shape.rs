//! A pool's shape: how many blocks of what size, and where they lie.

use core::ops::Range;

use crate::accounts::Entry;
use crate::descriptor::{Descriptor, MAX_BLOCK_BYTES, MAX_BLOCKS, MAX_PAYLOAD_BYTES};
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

/// How many blocks of what size, and how many of them one payload may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    blocks: u32,
    block_bytes: u32,
    /// Blocks of the longest payload.
    run: u32,
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
            return wrong("a number of blocks", blocks.into(), "from 1 to 65,536");
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
            run: 1,
        })
    }

    /// With payloads of up to so many bytes, which lie in runs of blocks.
    ///
    /// # Errors
    /// They are no whole blocks, more than [`MAX_PAYLOAD_BYTES`], or, if they are more than a block, more than half of the pool.
    pub fn with_payload_bytes(self, bytes: u32) -> Result<Self, ChainError> {
        let wrong = |rule| {
            Err(ChainError::Size {
                what: "a payload",
                found: bytes.into(),
                rule,
            })
        };
        let run = bytes / self.block_bytes;
        if run == 0 || !bytes.is_multiple_of(self.block_bytes) || bytes > MAX_PAYLOAD_BYTES {
            return wrong("whole blocks, one at least and 64 MiB at most");
        }
        if run > 1 && run > self.blocks / 2 {
            return wrong("half of the pool at most");
        }
        Ok(Self { run, ..self })
    }

    /// Bytes that a payload may have at most: a block's, or those of the longest run.
    #[must_use]
    pub const fn payload_bytes(self) -> u32 {
        self.run * self.block_bytes
    }

    /// How many blocks so many bytes take: one at least.
    #[must_use]
    pub fn blocks_for(self, bytes: u32) -> u32 {
        bytes.div_ceil(self.block_bytes).max(1)
    }

    /// The first block that is kept for runs: those of the upper half, if payloads may have some.
    pub(crate) fn runs_from(self) -> u32 {
        match self.run {
            1 => self.blocks,
            _ => self.blocks / 2,
        }
    }

    /// Bytes of so many blocks that begin with this one: of those that there are.
    #[inline]
    pub(crate) fn bytes_in(self, block: u32, blocks: u32) -> u32 {
        let left = self.blocks.saturating_sub(block);
        blocks.min(left).min(self.run) * self.block_bytes
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

    /// Where the first bytes of a block, or of the run that it begins, lie in the file of the blocks. The block's number has been
    /// checked, and the length.
    #[inline]
    pub(crate) fn bytes_of(self, block: u32, len: u32) -> Range<usize> {
        debug_assert!(block < self.blocks && len <= self.payload_bytes());
        let at = self.notes_bytes() + block as usize * self.block_bytes as usize;
        at..at + len as usize
    }

    #[inline]
    pub(crate) fn note_of(self, block: u32) -> usize {
        debug_assert!(block < self.blocks);
        block as usize * NOTE_BYTES
    }

    /// Checks what a descriptor says of the pool. How long the run is that its block begins, only the ledger knows.
    #[inline]
    pub(crate) fn check(self, descriptor: &Descriptor) -> Result<(), Refused> {
        if descriptor.more {
            return Err(Refused::Continued);
        }
        if descriptor.block >= self.blocks {
            return Err(Refused::OutsidePool {
                block: descriptor.block,
                blocks: self.blocks,
            });
        }
        Self::fits(descriptor.len, self.payload_bytes())
    }

    /// Whether a payload fits into so many bytes.
    #[inline]
    pub(crate) fn fits(len: u32, room: u32) -> Result<(), Refused> {
        if len > room {
            return Err(Refused::TooLong { len, room });
        }
        Ok(())
    }
}
