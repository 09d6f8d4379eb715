//! Has the kernel fill mappings in one go when they are made. Each page that CRIU reads into a new mapping costs a fault
//! otherwise, and there are thousands: they are a third of a restore.
//!
//! Format: `mm_entry` in CRIU's `images/mm.proto`, `vma_entry` in `images/vma.proto`, `pagemap_entry` in
//! `images/pagemap.proto`. CRIU hands the flags of a mapping to `mmap(2)` as they are.

use std::io;
use std::ops::Range;

use super::{Value, entry, entry_at, next_field, odd, with_message, write_number};

/// Field of `mm_entry` that holds a `vma_entry`, one for each mapping.
const VMA: u64 = 14;
/// Fields of `vma_entry`: first address, the one after the last, flags.
const START: u64 = 1;
const END: u64 = 2;
const FLAGS: u64 = 6;
/// Fields of `pagemap_entry`: first address; number of pages, which newer versions write twice.
const ADDRESS: u64 = 1;
const PAGES: [u64; 2] = [2, 5];

const PRIVATE_ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
const POPULATE: u64 = libc::MAP_POPULATE as u64;
/// Not filled: a stack, which is larger than what is in use of it, and what is locked, which the kernel fills by itself.
const NEVER: u64 = (libc::MAP_GROWSDOWN | libc::MAP_LOCKED | libc::MAP_NORESERVE) as u64;
/// A mapping is filled when at least this part of it, in quarters, is in the image: the rest becomes memory that was
/// none before.
const QUARTERS: u64 = 3;

/// The file `mm-PID.img` with the mappings that are (nearly) full marked to be filled. `pagemap` is `pagemap-PID.img`.
pub fn populated(mm: &[u8], pagemap: &[u8], page: u64) -> io::Result<Vec<u8>> {
    let stored = stored(pagemap, page)?;
    let (start, end) = entry(mm)?;
    let message = &mm[start..end];
    let mut changed = Vec::with_capacity(message.len() + 64);
    let mut at = 0;
    while at < message.len() {
        let (field, value, place) = next_field(message, &mut at)?;
        match value {
            Value::Bytes(vma) if field == VMA => {
                let vma = mapping(vma, &stored)?;
                write_number(&mut changed, VMA << 3 | 2);
                write_number(&mut changed, vma.len() as u64);
                changed.extend_from_slice(&vma);
            }
            _ => changed.extend_from_slice(&message[place]),
        }
    }
    with_message(mm, start, end, &changed)
}

/// A `vma_entry`, marked if it is to be.
fn mapping(vma: &[u8], stored: &[Range<u64>]) -> io::Result<Vec<u8>> {
    let (mut start, mut end, mut flags) = (0, 0, None);
    let mut at = 0;
    while at < vma.len() {
        match next_field(vma, &mut at)? {
            (START, Value::Number(number), _) => start = number,
            (END, Value::Number(number), _) => end = number,
            (FLAGS, Value::Number(number), place) => flags = Some((number, place)),
            _ => {}
        }
    }
    let size = end
        .checked_sub(start)
        .ok_or_else(|| odd("a mapping that ends before it begins"))?;
    let Some((flags, place)) = flags else {
        return Err(odd("a mapping without flags"));
    };
    let plain = flags & PRIVATE_ANONYMOUS == PRIVATE_ANONYMOUS && flags & NEVER == 0;
    if !plain || covered(start..end, stored) < size / 4 * QUARTERS || size == 0 {
        return Ok(vma.to_vec());
    }
    let mut changed = vma[..place.start].to_vec();
    write_number(&mut changed, FLAGS << 3);
    write_number(&mut changed, flags | POPULATE);
    changed.extend_from_slice(&vma[place.end..]);
    Ok(changed)
}

/// Bytes of a range that are stored.
fn covered(range: Range<u64>, stored: &[Range<u64>]) -> u64 {
    let shared = |part: &Range<u64>| {
        let (start, end) = (part.start.max(range.start), part.end.min(range.end));
        end.saturating_sub(start)
    };
    stored.iter().map(shared).sum()
}

/// What memory is in the image. The first entry of the file says which file it is in, the others are ranges.
fn stored(pagemap: &[u8], page: u64) -> io::Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let (_, mut next) = entry(pagemap)?;
    while next < pagemap.len() {
        let (start, end) = entry_at(pagemap, next)?;
        let (mut address, mut pages) = (0, 0);
        let (message, mut at) = (&pagemap[start..end], 0);
        while at < message.len() {
            match next_field(message, &mut at)? {
                (ADDRESS, Value::Number(number), _) => address = number,
                (field, Value::Number(number), _) if PAGES.contains(&field) => pages = number,
                _ => {}
            }
        }
        let bytes = pages
            .checked_mul(page)
            .and_then(|bytes| address.checked_add(bytes));
        ranges.push(address..bytes.ok_or_else(|| odd("more pages than addresses"))?);
        next = end;
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const MAGIC: [u8; 8] = *b"\x19\x43\x56\x54\0\0\0\0";

    fn file(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for entry in entries {
            file.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            file.extend_from_slice(entry);
        }
        file
    }

    fn message(fields: &[(u64, u64)]) -> Vec<u8> {
        let mut message = Vec::new();
        for (field, number) in fields {
            write_number(&mut message, field << 3);
            write_number(&mut message, *number);
        }
        message
    }

    /// Mappings of ten pages each, one after the other.
    fn mm(flags: &[u64]) -> Vec<u8> {
        let mut mm = message(&[(1, 7)]);
        for (index, flags) in (1..).zip(flags) {
            let start = index * 10 * PAGE;
            let vma = message(&[
                (START, start),
                (END, start + 10 * PAGE),
                (5, 3),
                (FLAGS, *flags),
                (7, 513),
            ]);
            write_number(&mut mm, VMA << 3 | 2);
            write_number(&mut mm, vma.len() as u64);
            mm.extend_from_slice(&vma);
        }
        file(&[mm])
    }

    #[test]
    fn full_anonymous_mappings_are_marked_and_no_others() {
        const PLAIN: u64 = PRIVATE_ANONYMOUS;
        let stack = PLAIN | libc::MAP_GROWSDOWN as u64;
        let file_backed = libc::MAP_PRIVATE as u64;
        let before = mm(&[PLAIN, PLAIN, PLAIN, stack, file_backed]);
        // All of the first, half of the second, the third in two parts, all of the others.
        let pagemap = file(&[
            message(&[(1, 1)]),
            message(&[(ADDRESS, 10 * PAGE), (2, 15), (4, 4)]),
            message(&[(ADDRESS, 30 * PAGE), (5, 4)]),
            message(&[(ADDRESS, 35 * PAGE), (2, 25), (5, 25)]),
        ]);
        let after = populated(&before, &pagemap, PAGE).unwrap();
        let filled = PLAIN | POPULATE;
        assert_eq!(after, mm(&[filled, PLAIN, filled, stack, file_backed]));
        assert_eq!(populated(&after, &pagemap, PAGE).unwrap(), after);
    }

    #[test]
    fn cut_files_are_errors() {
        let (mm, pagemap) = (mm(&[PRIVATE_ANONYMOUS]), file(&[message(&[(1, 1)])]));
        for length in 0..mm.len() {
            assert!(populated(&mm[..length], &pagemap, PAGE).is_err());
        }
        for length in 0..pagemap.len() {
            assert!(populated(&mm, &pagemap[..length], PAGE).is_err());
        }
    }
}
