//! The checksum of a frame: CRC32 (IEEE 802.3) over its payload, zeros up to a multiple of [`BLOCK`] bytes of payload, and
//! the header's first three words, which hold all of it but the checksum and a word that must be zero. The header says
//! how long the payload is, so the zeros hide nothing; they lie in the ring, too, so that the last block is copied and
//! summed like any other. The header comes last so that its words' distance from the end, and with it what they
//! are multiplied by, is always the same.
//!
//! A payload is copied and summed in one pass where the processor has what [`crate::fold`] needs, and in two, by
//! `crc32fast`, elsewhere. Either way what is summed is what lies in private memory: on the way in the source, on the
//! way out the copy. What a hostile peer does to the shared bytes meanwhile cannot make the two differ.

use core::mem::MaybeUninit;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fold::Fold;

/// Bytes that are summed at once.
pub const BLOCK: usize = 64;

/// `len` bytes up to a whole block.
#[inline]
pub(crate) const fn whole_blocks(len: usize) -> usize {
    // See `frame_bytes` for why not `next_multiple_of`. No slice is so long that this wraps.
    len.wrapping_add(BLOCK - 1) & !(BLOCK - 1)
}

/// What is summed of a header: its words before the one with the checksum.
pub(crate) type Summed = [u64; 3];

/// The checksum of `header` and `payload`.
#[inline]
pub(crate) fn sum(header: Summed, payload: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = Fold::detect() {
        return fold.sum(header, payload);
    }
    portable::sum(header, payload)
}

/// Copies `payload` to `to`, followed by zeros up to a whole block, and sums it.
///
/// # Safety
/// `to` has room for the payload and the zeros and does not overlap with it.
#[inline]
pub(crate) unsafe fn copy_in(header: Summed, payload: &[u8], to: *mut u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = Fold::detect() {
        // SAFETY: the payload is readable, and the caller vouches for `to`.
        return unsafe { fold.copy(header, payload.as_ptr(), to, payload.len()) };
    }
    // SAFETY: by the contract.
    unsafe { portable::copy_in(header, payload, to) }
}

/// Copies as many bytes as `into` takes from `from`, all of them, and sums the copy. They are whole blocks: a payload and
/// what lies behind it, which are zeros if the sum comes out right.
///
/// # Safety
/// As many bytes are readable at `from`, and they do not overlap with `into`. They may change meanwhile.
#[inline]
pub(crate) unsafe fn copy_out(
    header: Summed,
    from: *const u8,
    into: &mut [MaybeUninit<u8>],
) -> u32 {
    debug_assert!(into.len().is_multiple_of(BLOCK));
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = Fold::detect() {
        let to = into.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller vouches for `from`, and `into` is writable and of whole blocks.
        return unsafe { fold.copy(header, from, to, into.len()) };
    }
    // SAFETY: by the contract.
    unsafe { portable::copy_out(header, from, into) }
}

/// The same for every processor, in two passes.
mod portable {
    use core::mem::MaybeUninit;
    use core::ptr;

    use crc32fast::Hasher;

    use super::{BLOCK, Summed};

    pub(super) fn sum(header: Summed, payload: &[u8]) -> u32 {
        const ZEROS: [u8; BLOCK] = [0; BLOCK];
        let mut hasher = Hasher::new();
        hasher.update(payload);
        hasher.update(&ZEROS[..payload.len().next_multiple_of(BLOCK) - payload.len()]);
        for word in header {
            hasher.update(&word.to_le_bytes());
        }
        hasher.finalize()
    }

    /// As [`super::copy_in`].
    pub(super) unsafe fn copy_in(header: Summed, payload: &[u8], to: *mut u8) -> u32 {
        let len = payload.len();
        // SAFETY: by the contract.
        unsafe {
            ptr::copy_nonoverlapping(payload.as_ptr(), to, len);
            ptr::write_bytes(to.add(len), 0, len.next_multiple_of(BLOCK) - len);
        }
        sum(header, payload)
    }

    /// As [`super::copy_out`].
    pub(super) unsafe fn copy_out(
        header: Summed,
        from: *const u8,
        into: &mut [MaybeUninit<u8>],
    ) -> u32 {
        let to = into.as_mut_ptr().cast::<u8>();
        // SAFETY: by the contract; the copy has initialised what is summed.
        let copy = unsafe {
            ptr::copy_nonoverlapping(from, to, into.len());
            core::slice::from_raw_parts(to, into.len())
        };
        sum(header, copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sum = fn(Summed, &[u8]) -> u32;
    type CopyIn = unsafe fn(Summed, &[u8], *mut u8) -> u32;
    type CopyOut = unsafe fn(Summed, *const u8, &mut [MaybeUninit<u8>]) -> u32;

    /// Each way that this processor has, by force.
    fn ways() -> Vec<(Sum, CopyIn, CopyOut)> {
        // The first is whichever the processor is given.
        vec![
            (sum, copy_in, copy_out),
            (portable::sum, portable::copy_in, portable::copy_out),
        ]
    }

    /// Bytes without a pattern that a fold could hide.
    fn bytes(count: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect()
    }

    /// CRC32 bit by bit, as the standard has it.
    fn by_definition(bytes: impl Iterator<Item = u8>) -> u32 {
        !bytes.fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                if crc & 1 == 1 {
                    (crc >> 1) ^ 0xedb8_8320
                } else {
                    crc >> 1
                }
            })
        })
    }

    #[test]
    fn every_way_gives_the_same_sum_and_the_same_bytes() {
        let header: Summed = [0x0123_4567_89ab_cdef, 1, u64::MAX];
        let lengths = if cfg!(miri) { 0..=70 } else { 0..=1100 };
        for len in lengths.chain([4096, 4097, 65_535, 65_536]) {
            if cfg!(miri) && len > 100 {
                continue;
            }
            let payload = bytes(len);
            let whole = len.next_multiple_of(BLOCK);
            let padded: Vec<u8> = payload
                .iter()
                .copied()
                .chain(std::iter::repeat_n(0, whole - len))
                .collect();
            let header_bytes = header.into_iter().flat_map(u64::to_le_bytes);
            let expected = by_definition(padded.iter().copied().chain(header_bytes));
            for (sum, copy_in, copy_out) in ways() {
                assert_eq!(sum(header, &payload), expected, "{len} bytes");
                let mut ring = vec![0xaa; whole + BLOCK];
                // SAFETY: there is room, and the two are different allocations.
                let found = unsafe { copy_in(header, &payload, ring.as_mut_ptr()) };
                assert_eq!((found, &ring[..whole]), (expected, &padded[..]));
                assert_eq!(ring[whole..], [0xaa; BLOCK], "written beyond {len} bytes");
                let mut copy = vec![MaybeUninit::new(0xaa); whole + BLOCK];
                // SAFETY: `ring` holds at least `whole` bytes, in another allocation.
                let found = unsafe { copy_out(header, ring.as_ptr(), &mut copy[..whole]) };
                assert_eq!(found, expected, "{len} bytes");
                // SAFETY: each was initialised above.
                let copy: Vec<u8> = copy
                    .into_iter()
                    .map(|byte| unsafe { byte.assume_init() })
                    .collect();
                assert_eq!(
                    (&copy[..whole], &copy[whole..]),
                    (&padded[..], &[0xaa; BLOCK][..])
                );
            }
        }
    }
}
