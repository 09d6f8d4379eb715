//! The bytes of one ring, and its shared words: the only place where shared memory is read and written.
//!
//! Anyone who maps the region can write into it at any time. So bytes are copied between the region and private memory,
//! and no reference into the region exists while a hostile peer may write to its target; the two apparent exceptions
//! are justified where they occur. A racing write can only garble the copied bytes: they are plain `u8`, and all
//! decisions are based on the private copy. Every access checks its bounds, although the callers' checks already imply
//! them.

use core::ops::Deref;
use std::sync::Arc;

use crate::checksum::{self, BLOCK, Summed, whole_blocks};
use crate::error::Violation;
use crate::frame::HeaderWords;
use crate::layout::{HEADER_BYTES, LINE_BYTES, RingControl};
use crate::region::Mapping;

/// Most cache lines that are claimed ahead: a header's and 2 KiB. It is half of what a processor's store buffer holds (64 on
/// Zen 4, 72 on Golden Cove), so that looking for the peer's answer does not wait for them.
const CLAIM_LINES: usize = 33;

/// The shared words of one ring; keeps the mapping alive.
#[derive(Debug)]
pub(crate) struct Control {
    words: *const RingControl,
    _mapping: Arc<Mapping>,
}

// SAFETY: the words are atomics, and the mapping that they lie in may be used from every thread.
unsafe impl Send for Control {}
// SAFETY: as above.
unsafe impl Sync for Control {}

impl Control {
    /// The words at `at` of `mapping`: [`crate::layout::TO_WORKER_CONTROL`] or [`crate::layout::TO_HOST_CONTROL`].
    pub(crate) fn new(mapping: Arc<Mapping>, at: usize) -> Self {
        assert!(at.is_multiple_of(LINE_BYTES) && at + size_of::<RingControl>() <= HEADER_BYTES);
        assert!(mapping.len() >= HEADER_BYTES);
        // SAFETY: just checked to lie in the mapping's first page.
        let words = unsafe { mapping.base().add(at) };
        Self {
            words: words.cast::<RingControl>(),
            _mapping: mapping,
        }
    }
}

impl Deref for Control {
    type Target = RingControl;

    #[inline]
    fn deref(&self) -> &RingControl {
        // SAFETY: the mapping is page-aligned, `new` checked that the words lie in its first page and are aligned, and it
        // stays mapped while `self` lives. The words are atomics, for which every bit pattern is valid and which may
        // change under a shared reference.
        unsafe { &*self.words }
    }
}

/// The bytes of one ring. One side's [`crate::Sender`] or [`crate::Receiver`] holds it, and is the only one in this
/// process to use these bytes.
#[derive(Debug)]
pub(crate) struct Area {
    /// The first of the bytes, at the start of a cache line.
    base: *mut u8,
    capacity: u32,
    _mapping: Arc<Mapping>,
}

// SAFETY: the mapping may be used from every thread, and its owner alone decides who uses these bytes.
unsafe impl Send for Area {}
// SAFETY: as above; with a shared reference, the bytes are only read.
unsafe impl Sync for Area {}

impl Area {
    /// The `capacity` bytes at `at` of `mapping`.
    pub(crate) fn new(mapping: Arc<Mapping>, at: usize, capacity: u32) -> Self {
        assert!(
            at.checked_add(capacity as usize)
                .is_some_and(|end| end <= mapping.len())
        );
        assert!(at.is_multiple_of(BLOCK));
        // SAFETY: just checked to lie in the mapping.
        let base = unsafe { mapping.base().add(at) };
        Self {
            base,
            capacity,
            _mapping: mapping,
        }
    }

    /// Size of the ring in bytes.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The address of `len` bytes at `offset`, all inside the ring.
    #[inline]
    fn span(&self, offset: u64, len: usize) -> Result<*mut u8, Violation> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > u64::from(self.capacity)) {
            return Err(Violation::OutsideRing {
                offset,
                len: len as u64,
            });
        }
        // SAFETY: `new` checked that `capacity` bytes lie in the mapping, and `offset` is at most `capacity`.
        Ok(unsafe { self.base.add(offset as usize) })
    }

    /// Copies a header out.
    #[inline]
    pub(crate) fn read_header(&self, offset: u64) -> Result<HeaderWords, Violation> {
        let from = self.span(offset, size_of::<HeaderWords>())?.cast::<u64>();
        // SAFETY: `span` checked that four words lie there; unaligned reads ask for no alignment.
        Ok(unsafe { [0, 1, 2, 3].map(|index| from.add(index).read_unaligned()) })
    }

    /// Writes a header.
    #[inline]
    pub(crate) fn write_header(
        &mut self,
        offset: u64,
        header: HeaderWords,
    ) -> Result<(), Violation> {
        let to = self.span(offset, size_of::<HeaderWords>())?.cast::<u64>();
        for (index, word) in header.into_iter().enumerate() {
            // SAFETY: `span` checked that four words lie there; unaligned writes ask for no alignment.
            unsafe { to.add(index).write_unaligned(word) };
        }
        Ok(())
    }

    /// Copies `len` bytes out, to the end of `into`, and sums the copy together with `header`. Whole blocks are copied; what
    /// lies behind the payload ends up behind the vector's end.
    #[inline]
    pub(crate) fn append_to(
        &self,
        offset: u64,
        len: usize,
        into: &mut Vec<u8>,
        header: Summed,
    ) -> Result<u32, Violation> {
        let blocks = whole_blocks(len);
        let from = self.span(offset, blocks)?;
        into.reserve(blocks);
        // SAFETY: `span` checked the source; `reserve` left at least `blocks` bytes of unused capacity, which the copy
        // initialises before the length covers `len` of them. Private memory does not overlap with the mapping.
        unsafe {
            let room = into.spare_capacity_mut().get_unchecked_mut(..blocks);
            let sum = checksum::copy_out(header, from, room);
            into.set_len(into.len() + len);
            Ok(sum)
        }
    }

    /// Copies a payload in, with zeros up to a whole block, and sums it together with `header`.
    #[inline]
    pub(crate) fn write_payload(
        &mut self,
        offset: u64,
        payload: &[u8],
        header: Summed,
    ) -> Result<u32, Violation> {
        let to = self.span(offset, whole_blocks(payload.len()))?;
        // SAFETY: `span` checked the destination, and private memory does not overlap with the mapping.
        Ok(unsafe { checksum::copy_in(header, payload, to) })
    }

    /// Writes a word to each cache line of the `len` bytes at `offset`, but to [`CLAIM_LINES`] at most, so that this
    /// processor has the lines to itself when they are written in earnest. A prefetch for writing would not do: while this
    /// processor has an old copy, as it mostly does after its own prefetcher's guess, it stays shared.
    ///
    /// From the last line to the first: the prefetcher follows the direction of what is used, and upwards it would fetch
    /// copies of the lines that are claimed next.
    ///
    /// # Safety
    /// The caller is the ring's producer and the bytes are free.
    pub(crate) unsafe fn claim(&mut self, offset: u64, len: u64) -> Result<(), Violation> {
        let lines = usize::try_from(len).map_or(CLAIM_LINES, |len| CLAIM_LINES.min(len / BLOCK));
        let at = self.span(offset, lines * BLOCK)?.cast::<[u64; BLOCK / 8]>();
        for line in (0..lines).rev() {
            // SAFETY: `span` checked that the lines lie there, and the caller vouches that they are the producer's.
            // Nothing reads the word, so the write is volatile to keep it from being optimised out.
            unsafe { at.add(line).cast::<u64>().write_volatile(0) };
        }
        Ok(())
    }

    /// `len` bytes to be read in place.
    ///
    /// # Safety
    /// The caller is the ring's consumer, the bytes are published and not released, and the producer is trusted not to
    /// touch them until they are.
    pub(crate) unsafe fn bytes(&self, offset: u64, len: usize) -> Result<&[u8], Violation> {
        let at = self.span(offset, len)?;
        // SAFETY: `span` checked the bounds; the caller vouches that nobody writes while `self` is borrowed.
        Ok(unsafe { core::slice::from_raw_parts(at, len) })
    }
}
