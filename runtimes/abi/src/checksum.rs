//! The checksum of a frame: CRC32 (IEEE 802.3) over its header, with the checksum's field zero, its payload, and zeros
//! up to a multiple of [`BLOCK`] bytes of payload. The header says how long the payload is, so the zeros hide nothing;
//! they are what lets the last block be summed like any other.
//!
//! A payload is copied and summed in one pass where the processor has what [`crate::fold`] needs, and in two, by
//! `crc32fast`, elsewhere. Either way what is summed is what lies in private memory: on the way in the source, on the
//! way out the copy. What a hostile peer does to the shared bytes meanwhile cannot make the two differ.

use core::mem::MaybeUninit;

use crc32fast::Hasher;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fold;
use crate::frame::HeaderWords;

/// Bytes that are summed at once.
pub const BLOCK: usize = 64;

/// The checksum of `header` and `payload`.
pub(crate) fn sum(header: HeaderWords, payload: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = fold::Fold::detect() {
        return fold.sum(header, payload);
    }
    portable(header, payload)
}

/// Copies `payload` to `to` and sums it.
///
/// # Safety
/// `to` has room for the payload and does not overlap with it.
pub(crate) unsafe fn copy_in(header: HeaderWords, payload: &[u8], to: *mut u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = fold::Fold::detect() {
        // SAFETY: the payload is readable, and the caller vouches for `to`.
        return unsafe { fold.copy(header, payload.as_ptr(), to, payload.len()) };
    }
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len()) };
    portable(header, payload)
}

/// Copies as many bytes as `into` takes from `from`, all of them, and sums the copy.
///
/// # Safety
/// As many bytes are readable at `from`, and they do not overlap with `into`. They may change meanwhile.
pub(crate) unsafe fn copy_out(
    header: HeaderWords,
    from: *const u8,
    into: &mut [MaybeUninit<u8>],
) -> u32 {
    let to = into.as_mut_ptr().cast::<u8>();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(fold) = fold::Fold::detect() {
        // SAFETY: the caller vouches for `from`, and `into` is writable.
        return unsafe { fold.copy(header, from, to, into.len()) };
    }
    // SAFETY: as above; the copy has initialised what is summed.
    let copy = unsafe {
        core::ptr::copy_nonoverlapping(from, to, into.len());
        core::slice::from_raw_parts(to, into.len())
    };
    portable(header, copy)
}

fn portable(header: HeaderWords, payload: &[u8]) -> u32 {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let mut hasher = Hasher::new();
    for word in header {
        hasher.update(&word.to_le_bytes());
    }
    hasher.update(payload);
    hasher.update(&ZEROS[..payload.len().next_multiple_of(BLOCK) - payload.len()]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn it_is_the_crc_that_the_module_says() {
        // CRC32 of 32 + 64 zero bytes, as `zlib.crc32(bytes(96))` gives it.
        assert_eq!(portable([0; 4], &[0; 1]), 0xbaf4_65ae);
    }

    #[test]
    fn every_way_gives_the_same_sum_and_the_same_bytes() {
        let header: HeaderWords = [0x0123_4567_89ab_cdef, 1, u64::MAX, 0x0f1e_2d3c];
        let lengths = if cfg!(miri) { 0..=70 } else { 0..=1100 };
        for len in lengths.chain([4096, 4097, 65_535, 65_536]) {
            if cfg!(miri) && len > 100 {
                continue;
            }
            let payload = bytes(len);
            let expected = portable(header, &payload);
            assert_eq!(sum(header, &payload), expected, "{len} bytes");
            let mut ring = vec![0xaa; len + 64];
            // SAFETY: there is room, and the two are different allocations.
            let found = unsafe { copy_in(header, &payload, ring.as_mut_ptr()) };
            assert_eq!((found, &ring[..len]), (expected, &payload[..]));
            assert!(
                ring[len..].iter().all(|&byte| byte == 0xaa),
                "written beyond {len} bytes"
            );
            let mut copy = vec![MaybeUninit::new(0xaa); len + 64];
            // SAFETY: `ring` holds at least `len` bytes, in another allocation.
            let found = unsafe { copy_out(header, ring.as_ptr(), &mut copy[..len]) };
            assert_eq!(found, expected, "{len} bytes");
            for (at, byte) in copy.iter().enumerate() {
                // SAFETY: each was initialised above.
                let byte = unsafe { byte.assume_init() };
                assert_eq!(
                    byte,
                    payload.get(at).copied().unwrap_or(0xaa),
                    "{at} of {len}"
                );
            }
        }
    }
}
