//! Memory that is filled by pages of 2 MiB: taken out of CRIU's files, which would fill it by pages of 4 KiB, and kept in
//! a file of its own, from which PID 1 fills it when CRIU is done. Five hundred pages become one, and one fault.
//!
//! Only ranges that can be one such page and are (nearly) full are taken, so that a template has no more memory than it
//! had.
//!
//! ```text
//! huge-PID.img   "HEARTHP1", number of ranges (u64), their first addresses (u64 each), padding to a page of 4 KiB,
//!                then what is in them, 2 MiB each; numbers are little-endian
//! ```

use std::io;
use std::ops::Range;

use super::memory::{
    ADDRESS, END, Mapping, PAGES, Pagemap, Run, START, with_mappings, with_numbers,
};
use super::odd;

/// Size of a large page where pages have 4 KiB, x86-64 and AArch64 alike.
pub const SIZE: u64 = 2 << 20;
/// The page size that belongs to it.
const PAGE: u64 = 4096;
/// A range is taken when at least so much of it is in the image: the rest becomes memory that was none before.
const FULL: u64 = SIZE / 16 * 15;
/// First bytes of the file.
const MAGIC: &[u8; 8] = b"HEARTHP1";
/// Most ranges in one file: 1 TiB, many times what a template may have. Protects PID 1 from a number that is none.
const RANGES_MAX: u64 = 1 << 19;
/// Name of the file, up to the process's number.
const NAME: &str = "huge-";

/// Kind of mapping: memory of a process's own, without a file; CRIU's `VMA_AREA_REGULAR | VMA_ANON_PRIVATE`, and the
/// bit by which it tells the heap.
const ORDINARY: u64 = 1 << 0 | 1 << 9;
const HEAP: u64 = 1 << 5;
const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

/// Name of the file of a process.
pub fn name(pid: &str) -> String {
    format!("{NAME}{pid}.img")
}

/// The process whose file has this name.
pub fn pid(name: &str) -> Option<i32> {
    name.strip_prefix(NAME)?.strip_suffix(".img")?.parse().ok()
}

/// What becomes of an image when its large pages are taken out.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// The new `mm-PID.img`: mappings are cut where a range begins and ends.
    pub mm: Vec<u8>,
    /// The new `pagemap-PID.img`.
    pub pagemap: Vec<u8>,
    /// Number of the pages file.
    pub pages_file: u64,
    /// Bytes of the pages file that stay in it, in order.
    pub kept: Vec<Range<u64>>,
    /// First addresses of the ranges, ascending.
    pub ranges: Vec<u64>,
    /// Bytes of the pages file that are taken out, and where they come to stand in the new file.
    pub taken: Vec<(Range<u64>, u64)>,
}

/// Splits an image, or returns nothing when there is nothing to be taken.
pub fn split(mm: &[u8], pagemap: &[u8], page: u64) -> io::Result<Option<Split>> {
    let pagemap = Pagemap::read(pagemap, page)?;
    // What is not in the pages file as it is, CRIU gets from elsewhere.
    if page != PAGE || pagemap.runs.iter().any(|run| !run.stored) {
        return Ok(None);
    }
    let mut ranges = Vec::new();
    let cut = with_mappings(mm, |vma| {
        let mapping = Mapping::read(vma)?;
        let found = takeable(&mapping, &pagemap);
        let mut parts = Vec::new();
        for part in parts_of(&mapping.range, &found) {
            parts.push(with_numbers(vma, &[(START, part.start), (END, part.end)])?);
        }
        ranges.extend(found);
        Ok(parts)
    })?;
    if ranges.is_empty() {
        return Ok(None);
    }
    ranges.sort_unstable();
    let mut split = Split {
        mm: cut,
        pagemap: pagemap.head.to_vec(),
        pages_file: pagemap.pages_file,
        kept: Vec::new(),
        ranges,
        taken: Vec::new(),
    };
    let mut at = 0;
    for run in &pagemap.runs {
        split.divide(run, at)?;
        at += run.range.end - run.range.start;
    }
    Ok(Some(split))
}

/// First addresses of what is taken of a mapping.
fn takeable(mapping: &Mapping, pagemap: &Pagemap<'_>) -> Vec<u64> {
    // No flag but these two, and no advice that the program gave: whatever else there is, is left to CRIU.
    let plain = mapping.flags == ANONYMOUS
        && mapping.protection == READ_WRITE
        && mapping.status & !HEAP == ORDINARY
        && mapping.advice == 0;
    if !plain {
        return Vec::new();
    }
    let first = mapping.range.start.checked_next_multiple_of(SIZE);
    first
        .into_iter()
        .flat_map(|first| (first..mapping.range.end).step_by(SIZE as usize))
        .filter(|start| mapping.range.end - start >= SIZE)
        .filter(|start| pagemap.covered(&(*start..start + SIZE)) >= FULL)
        .collect()
}

/// A mapping cut into what is taken and what is between.
fn parts_of(range: &Range<u64>, taken: &[u64]) -> Vec<Range<u64>> {
    let (mut parts, mut next) = (Vec::new(), range.start);
    for taken in joined(taken) {
        parts.push(next..taken.start);
        next = taken.end;
        parts.push(taken);
    }
    parts.push(next..range.end);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Ranges with these first addresses, in which those that follow each other are one.
fn joined(starts: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for start in starts {
        match ranges.last_mut() {
            Some(last) if last.end == *start => last.end += SIZE,
            _ => ranges.push(*start..start + SIZE),
        }
    }
    ranges
}

impl Split {
    /// Shares out one run of pages, which stands at `at` in the pages file.
    fn divide(&mut self, run: &Run<'_>, at: u64) -> io::Result<()> {
        let file = |addresses: &Range<u64>| {
            let begin = at + (addresses.start - run.range.start);
            begin..begin + (addresses.end - addresses.start)
        };
        let mut next = run.range.start;
        while next < run.range.end {
            // The first range that is not over at `next`.
            let index = self.ranges.partition_point(|start| start + SIZE <= next);
            let range = self.ranges.get(index).map(|start| *start..start + SIZE);
            let inside = range.filter(|range| range.start < run.range.end);
            let stay = next..inside.as_ref().map_or(run.range.end, |r| r.start.max(next));
            if !stay.is_empty() {
                let message = run.message;
                let pages = (stay.end - stay.start) / PAGE;
                let numbers = [(ADDRESS, stay.start), (PAGES[0], pages), (PAGES[1], pages)];
                let message = with_numbers(message, &numbers)?;
                let length = u32::try_from(message.len()).map_err(|_| odd("a long entry"))?;
                self.pagemap.extend_from_slice(&length.to_le_bytes());
                self.pagemap.extend_from_slice(&message);
                self.kept.push(file(&stay));
                next = stay.end;
            }
            if let Some(range) = inside {
                let go = next..range.end.min(run.range.end);
                let place = content_at(self.ranges.len() as u64)
                    + index as u64 * SIZE
                    + (go.start - range.start);
                next = go.end;
                self.taken.push((file(&go), place));
            }
        }
        Ok(())
    }

    /// The new file up to what is in the ranges.
    pub fn head(&self) -> Vec<u8> {
        let count = self.ranges.len() as u64;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&count.to_le_bytes());
        for start in &self.ranges {
            head.extend_from_slice(&start.to_le_bytes());
        }
        head.resize(content_at(count) as usize, 0);
        head
    }

    /// Bytes of the new file.
    pub fn size(&self) -> u64 {
        let count = self.ranges.len() as u64;
        content_at(count) + count * SIZE
    }
}

/// Where in a file of so many ranges the first one stands.
const fn content_at(count: u64) -> u64 {
    (16 + count * 8).next_multiple_of(PAGE)
}

/// What stands where in a file of `size` bytes, read through `read_at`: ranges of memory, joined where they follow each
/// other, and where in the file each begins.
pub fn contents(
    size: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<Vec<(Range<u64>, u64)>> {
    let mut begin = [0; 16];
    read_at(&mut begin, 0)?;
    let count = u64::from_le_bytes(begin[8..].try_into().unwrap_or_default());
    if begin[..8] != *MAGIC || count > RANGES_MAX || size != content_at(count) + count * SIZE {
        return Err(odd("large pages of another format"));
    }
    let mut starts = vec![0; count as usize * 8];
    read_at(&mut starts, 16)?;
    let mut addresses = Vec::new();
    for start in starts.as_chunks::<8>().0 {
        let start = u64::from_le_bytes(*start);
        let after_last = addresses.last().is_none_or(|last| last + SIZE <= start);
        if !start.is_multiple_of(SIZE) || start.checked_add(SIZE).is_none() || !after_last {
            return Err(odd("an address of no large page"));
        }
        addresses.push(start);
    }
    let mut at = content_at(count);
    let place = |range: Range<u64>| {
        let begin = at;
        at += range.end - range.start;
        (range, begin)
    };
    Ok(joined(&addresses).into_iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imagefile::tests::{file, message};
    use crate::imagefile::write_number;

    const BASE: u64 = 0x7f00_0000_0000;

    /// An image: its mappings as (first page, pages, flags), its stored pages, both counted from [`BASE`].
    fn image(mappings: &[(u64, u64, u64)], runs: &[Range<u64>]) -> (Vec<u8>, Vec<u8>) {
        let mut mm = message(&[(1, 7)]);
        for (first, pages, flags) in mappings {
            let start = BASE + first * PAGE;
            let vma = message(&[
                (START, start),
                (END, start + pages * PAGE),
                (3, 0),
                (5, READ_WRITE),
                (6, *flags),
                (7, ORDINARY),
                (9, 0),
            ]);
            write_number(&mut mm, 14 << 3 | 2);
            write_number(&mut mm, vma.len() as u64);
            mm.extend_from_slice(&vma);
        }
        let mut entries = vec![message(&[(1, 1)])];
        entries.extend(runs.iter().map(|run| {
            let pages = run.end - run.start;
            // Every other one as CRIU 4.1.1 writes it, with another bit for memory without a file.
            let place = 4 | (run.start % 2) << 1;
            message(&[
                (1, BASE + run.start * PAGE),
                (2, pages),
                (4, place),
                (5, pages),
            ])
        }));
        (file(&[mm]), file(&entries))
    }

    /// Where each stored page is in the pages file, by its address.
    fn stored(pagemap: &[u8]) -> Vec<(u64, u64)> {
        let pagemap = Pagemap::read(pagemap, PAGE).unwrap();
        let pages = pagemap
            .runs
            .iter()
            .flat_map(|run| run.range.clone().step_by(PAGE as usize));
        pages.zip((0..).step_by(PAGE as usize)).collect()
    }

    fn mappings(mm: &[u8]) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        with_mappings(mm, |vma| {
            found.push(Mapping::read(vma)?.range);
            Ok(vec![vma.to_vec()])
        })
        .unwrap();
        found
    }

    /// Every page is in one of the two files, with the bytes that it had, and no other page is; a range is full.
    fn check(mm: &[u8], pagemap: &[u8], split: &Split) {
        let mut left = split
            .kept
            .iter()
            .flat_map(|kept| kept.clone().step_by(PAGE as usize));
        let mut found: Vec<(u64, u64)> = stored(&split.pagemap)
            .into_iter()
            .map(|(address, _)| (address, left.next().unwrap()))
            .collect();
        assert_eq!(left.next(), None);
        let head = split.head();
        let read_at = |buffer: &mut [u8], at: u64| {
            buffer.copy_from_slice(&head[at as usize..][..buffer.len()]);
            Ok(())
        };
        let contents = contents(split.size(), read_at).unwrap();
        for (bytes, place) in &split.taken {
            let (range, begin) = contents
                .iter()
                .find(|(range, begin)| (*begin..begin + (range.end - range.start)).contains(place))
                .unwrap();
            for offset in (0..bytes.end - bytes.start).step_by(PAGE as usize) {
                found.push((range.start + (place - begin) + offset, bytes.start + offset));
            }
        }
        found.sort_unstable();
        let mut before = stored(pagemap);
        before.sort_unstable();
        assert_eq!(found, before);
        for start in &split.ranges {
            let range = start..&(start + SIZE);
            assert!(
                before
                    .iter()
                    .filter(|(address, _)| range.contains(&address))
                    .count()
                    >= 480
            );
        }
        // The same addresses are mapped.
        let joined = |mm: &[u8]| {
            let mut joined: Vec<Range<u64>> = Vec::new();
            for range in mappings(mm) {
                match joined.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => joined.push(range),
                }
            }
            joined
        };
        assert_eq!(joined(&split.mm), joined(mm));
    }

    #[test]
    fn full_ranges_are_taken_and_the_rest_stays() {
        // 3 pages short of an aligned address, two full ranges, one with a hole of 40 pages, and a tail.
        let (mm, pagemap) = image(
            &[(509, 3 + 3 * 512 + 7, ANONYMOUS)],
            &[509..512 + 100, 512 + 101..1600, 1640..2055],
        );
        let split = split(&mm, &pagemap, PAGE).unwrap().unwrap();
        check(&mm, &pagemap, &split);
        assert_eq!(split.ranges, [BASE + SIZE, BASE + 2 * SIZE]);
        let page = |number: u64| BASE + number * PAGE;
        assert_eq!(
            mappings(&split.mm),
            [
                page(509)..page(512),
                page(512)..page(1536),
                page(1536)..page(2055)
            ]
        );
        // The page that was not stored is none in the new file either.
        assert_eq!(split.taken.len(), 3);
    }

    #[test]
    fn what_is_not_plain_memory_stays() {
        let full = [(0, 512, ANONYMOUS)];
        let (mm, pagemap) = image(&full, &[0..512]);
        assert!(split(&mm, &pagemap, PAGE).unwrap().is_some());
        assert!(split(&mm, &pagemap, 4 * PAGE).unwrap().is_none());
        for flags in [
            libc::MAP_PRIVATE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_LOCKED,
        ] {
            let (mm, pagemap) = image(&[(0, 512, flags as u64)], &[0..512]);
            assert_eq!(split(&mm, &pagemap, PAGE).unwrap(), None, "{flags:x}");
        }
        let (_, pagemap) = image(&full, &[0..479]);
        assert_eq!(split(&mm, &pagemap, PAGE).unwrap(), None, "not full");
        let (mm, pagemap) = image(&[(1, 1022, ANONYMOUS)], &[1..1023]);
        assert_eq!(split(&mm, &pagemap, PAGE).unwrap(), None, "not aligned");
        // Pages of an earlier image.
        let (mm, _) = image(&full, &[]);
        let parent = [message(&[(1, 1)]), message(&[(1, BASE), (2, 512), (3, 1)])];
        assert_eq!(split(&mm, &file(&parent), PAGE).unwrap(), None);
    }

    #[test]
    fn no_page_is_lost_whatever_the_layout() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut splits = 0;
        for _ in 0..300 {
            let (mut mappings, mut runs, mut at) = (Vec::new(), Vec::new(), 0);
            for _ in 0..1 + random(4) {
                // Some follow each other without a gap.
                at += random(3) * random(700);
                let pages = 1 + random(2500);
                mappings.push((at, pages, ANONYMOUS));
                let mut next = at;
                while next < at + pages {
                    let end = (next + 1 + random(900)).min(at + pages);
                    runs.push(next..end);
                    next = end + random(2) * random(40);
                }
                at += pages;
            }
            let (mm, pagemap) = image(&mappings, &runs);
            if let Some(split) = split(&mm, &pagemap, PAGE).unwrap() {
                check(&mm, &pagemap, &split);
                splits += 1;
            }
        }
        assert!(splits > 50, "{splits}");
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let (mm, pagemap) = image(&[(0, 2048, ANONYMOUS)], &[0..512, 1024..1536]);
        let split = split(&mm, &pagemap, PAGE).unwrap().unwrap();
        let read = |head: &[u8], size: u64| {
            contents(size, |buffer, at| {
                let bytes = head.get(at as usize..at as usize + buffer.len());
                buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            })
        };
        let (head, size) = (split.head(), split.size());
        let good = read(&head, size).unwrap();
        assert_eq!(good.len(), 2, "they do not follow each other");
        assert_eq!(good[1], (BASE + 2 * SIZE..BASE + 3 * SIZE, PAGE + SIZE));
        assert!(read(&head, size + 1).is_err());
        assert!(read(&head, size - SIZE).is_err());
        for (at, byte) in [(0, b'X'), (8, 3), (15, 1), (16, 1), (18, 0x40)] {
            let mut bad = head.clone();
            bad[at] = byte;
            assert!(read(&bad, size).is_err(), "{at}");
        }
        for length in 0..32 {
            assert!(read(&head[..length], size).is_err());
        }
    }

    #[test]
    fn names_are_found_again() {
        assert_eq!(pid(&name("1000")), Some(1000));
        for other in ["huge-.img", "huge-1.im", "pages-1.img", "huge-x.img"] {
            assert_eq!(pid(other), None);
        }
    }
}
