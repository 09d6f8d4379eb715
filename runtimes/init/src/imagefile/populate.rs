//! Has the kernel fill mappings in one go when they are made, where their memory is not laid aside. Each page that CRIU
//! reads into a new mapping costs a fault otherwise.
//!
//! CRIU hands the flags of a mapping to `mmap(2)` as they are.

use std::io;

use super::memory::{FLAGS, Mapping, Pagemap, with_mappings};
use crate::protobuf::with_numbers;

const POPULATE: u64 = libc::MAP_POPULATE as u64;
const PRIVATE: u64 = libc::MAP_PRIVATE as u64;
const TYPE: u64 = (libc::MAP_SHARED | libc::MAP_PRIVATE) as u64;
/// Not filled: a stack, which is larger than what is in use of it, and what is locked, which the kernel fills by itself.
const NEVER: u64 = (libc::MAP_GROWSDOWN | libc::MAP_LOCKED | libc::MAP_NORESERVE) as u64;
/// A mapping is filled when at least this part of it, in quarters, is in the image: the rest becomes memory that was
/// none before, or a copy of its part of the file.
const QUARTERS: u64 = 3;

/// The file `mm-PID.img` with the mappings that are (nearly) full marked to be filled. `pagemap` is `pagemap-PID.img`.
pub fn populated(mm: &[u8], pagemap: &[u8], page: u64) -> io::Result<Vec<u8>> {
    let pagemap = Pagemap::read(pagemap, page)?;
    with_mappings(mm, |vma| {
        let mapping = Mapping::read(vma)?;
        let (flags, size) = (mapping.flags, mapping.size());
        let plain = flags & TYPE == PRIVATE && flags & NEVER == 0;
        let full = size > 0 && pagemap.covered(&mapping.range) >= size / 4 * QUARTERS;
        if plain && full {
            return with_numbers(vma, &[(FLAGS, flags | POPULATE)]);
        }
        Ok(vma.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imagefile::tests::{PAGE, file, message, mm};

    #[test]
    fn full_private_mappings_are_marked_and_no_others() {
        const PLAIN: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let stack = PLAIN | libc::MAP_GROWSDOWN as u64;
        let shared = libc::MAP_SHARED as u64;
        let before = mm(&[PLAIN, PLAIN, PRIVATE, stack, shared]);
        // All of the first, half of the second, the third in two parts, all of the others.
        let pagemap = file(&[
            message(&[(1, 1)]),
            message(&[(1, 10 * PAGE), (2, 15), (4, 4)]),
            message(&[(1, 30 * PAGE), (5, 4)]),
            message(&[(1, 35 * PAGE), (2, 25), (5, 25)]),
        ]);
        let after = populated(&before, &pagemap, PAGE).unwrap();
        let filled = [PLAIN, PRIVATE].map(|flags| flags | POPULATE);
        assert_eq!(after, mm(&[filled[0], PLAIN, filled[1], stack, shared]));
        assert_eq!(populated(&after, &pagemap, PAGE).unwrap(), after);
    }

    #[test]
    fn cut_files_are_errors() {
        let (mm, pagemap) = (mm(&[PRIVATE]), file(&[message(&[(1, 1)])]));
        for length in 0..mm.len() {
            assert!(populated(&mm[..length], &pagemap, PAGE).is_err());
        }
        for length in 0..pagemap.len() {
            assert!(populated(&mm, &pagemap[..length], PAGE).is_err());
        }
    }
}
