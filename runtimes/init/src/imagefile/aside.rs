//! Memory that CRIU does not fill: taken out of its files and laid aside in a file of its own, from which PID 1 fills it
//! when CRIU is done. PID 1 can do it for little more than half of the cost.
//!
//! Only memory without a file is taken, and only where no flag nor advice asks for a special treatment, and nothing is
//! written before PID 1's turn comes. Whatever else there is, is left to CRIU.
//!
//! ```text
//! aside-PID.img   "HEARTHA1", number of mappings, number of runs; first and last address of each mapping; the same of
//!                 each run of pages; padding to a page; then what is in the runs
//! ```
//! Numbers are u64, little-endian. Runs are ascending and lie within mappings; neither overlap.

use std::io;
use std::ops::Range;

use super::memory::{ADDRESS, Mapping, PAGES, Pagemap, Run, mappings, with_numbers};
use super::odd;

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"HEARTHA1";
/// Bytes before the tables.
const HEAD: u64 = 24;
/// Most mappings and runs in one file: more than the kernel lets a process have. Protects PID 1 from a number that is
/// none.
const RANGES_MAX: u64 = 1 << 20;
/// Name of the file, up to the process's number.
const NAME: &str = "aside-";

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

/// What is in such a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Addresses of the mappings.
    pub mappings: Vec<Range<u64>>,
    /// Addresses of pages that follow each other in the file, too; all of one run lie in one mapping.
    pub runs: Vec<Range<u64>>,
    /// Where in the file the first run begins. The others follow.
    pub begin: u64,
}

/// What becomes of an image when memory is taken out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The new `pagemap-PID.img`.
    pub pagemap: Vec<u8>,
    /// Number of the pages file.
    pub pages_file: u64,
    /// Bytes of the pages file that stay in it, in order.
    pub kept: Vec<Range<u64>>,
    /// Bytes of the pages file that are taken out, in the order of [`Contents::runs`].
    pub taken: Vec<Range<u64>>,
    /// What the new file has.
    pub contents: Contents,
}

/// Splits an image, or returns nothing when there is nothing to be taken. Of `written` are the addresses where the kernel
/// writes when a thread goes on.
pub fn split(mm: &[u8], pagemap: &[u8], page: u64, written: &[u64]) -> io::Result<Option<Split>> {
    let pagemap = Pagemap::read(pagemap, page)?;
    // What is not in the pages file as it is, CRIU gets from elsewhere.
    let ascending = pagemap
        .runs
        .is_sorted_by(|a, b| a.range.end <= b.range.start);
    if !ascending || pagemap.runs.iter().any(|run| !run.stored) {
        return Ok(None);
    }
    let mut split = Split {
        pagemap: pagemap.head.to_vec(),
        pages_file: pagemap.pages_file,
        ..Split::default()
    };
    let mut plain: Vec<Range<u64>> = mappings(mm)?
        .into_iter()
        .filter(is_plain)
        .map(|mapping| mapping.range)
        .filter(|range| !written.iter().any(|address| range.contains(address)))
        .filter(|range| pagemap.covered(range) > 0)
        .collect();
    plain.sort_unstable_by_key(|range| range.start);
    split.contents.mappings = plain;
    let mut at = 0;
    for run in &pagemap.runs {
        split.divide(run, at, page)?;
        at += run.range.end - run.range.start;
    }
    split.contents.begin = split.contents.begin(page);
    Ok(Some(split).filter(|split| !split.taken.is_empty()))
}

fn is_plain(mapping: &Mapping) -> bool {
    mapping.flags == ANONYMOUS
        && mapping.protection == READ_WRITE
        && mapping.status & !HEAP == ORDINARY
        && mapping.advice == 0
}

impl Split {
    /// Shares out one run of pages, which stands at `at` in the pages file.
    fn divide(&mut self, run: &Run<'_>, at: u64, page: u64) -> io::Result<()> {
        let file = |addresses: &Range<u64>| {
            let begin = at + (addresses.start - run.range.start);
            begin..begin + (addresses.end - addresses.start)
        };
        let mut next = run.range.start;
        while next < run.range.end {
            // The first mapping that is not over at `next`.
            let mappings = &self.contents.mappings;
            let index = mappings.partition_point(|mapping| mapping.end <= next);
            let mapping = mappings.get(index).cloned().unwrap_or(u64::MAX..u64::MAX);
            let stay = next..run.range.end.min(mapping.start.max(next));
            if !stay.is_empty() {
                let pages = (stay.end - stay.start) / page;
                let numbers = [(ADDRESS, stay.start), (PAGES[0], pages), (PAGES[1], pages)];
                let message = with_numbers(run.message, &numbers)?;
                let length = u32::try_from(message.len()).map_err(|_| odd("a long entry"))?;
                self.pagemap.extend_from_slice(&length.to_le_bytes());
                self.pagemap.extend_from_slice(&message);
                self.kept.push(file(&stay));
            }
            let go = stay.end..run.range.end.min(mapping.end);
            if !go.is_empty() {
                self.taken.push(file(&go));
                self.contents.runs.push(go.clone());
            }
            next = go.end;
        }
        Ok(())
    }
}

impl Contents {
    /// Where the first run has to begin.
    fn begin(&self, page: u64) -> u64 {
        let ranges = self.mappings.len() + self.runs.len();
        (HEAD + ranges as u64 * 16).next_multiple_of(page)
    }

    /// Bytes of the whole file.
    fn size(&self) -> u64 {
        let runs = self.runs.iter();
        let bytes = runs.map(|run| run.end - run.start).sum::<u64>();
        self.begin.saturating_add(bytes)
    }

    /// The file up to what is in the runs.
    pub fn head(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        for count in [self.mappings.len(), self.runs.len()] {
            head.extend_from_slice(&(count as u64).to_le_bytes());
        }
        for range in self.mappings.iter().chain(&self.runs) {
            head.extend_from_slice(&range.start.to_le_bytes());
            head.extend_from_slice(&range.end.to_le_bytes());
        }
        head.resize(self.begin as usize, 0);
        head
    }

    /// Reads what a file of `size` bytes holds, through `read_at`.
    pub fn read(
        size: u64,
        page: u64,
        read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut head = [0; HEAD as usize];
        read_at(&mut head, 0)?;
        let [magic, mappings, runs] = *head.as_chunks::<8>().0 else {
            return Err(odd("it ends early"));
        };
        let (mappings, runs) = (u64::from_le_bytes(mappings), u64::from_le_bytes(runs));
        if magic != *MAGIC || mappings > RANGES_MAX || runs > RANGES_MAX {
            return Err(odd("memory in another format"));
        }
        let mut table = vec![0; (mappings + runs) as usize * 16];
        read_at(&mut table, HEAD)?;
        let mut numbers = table
            .as_chunks::<8>()
            .0
            .iter()
            .map(|n| u64::from_le_bytes(*n));
        let mut ranges = |count: u64| -> io::Result<Vec<Range<u64>>> {
            let (mut ranges, mut last) = (Vec::new(), 0);
            for _ in 0..count {
                let (Some(start), Some(end)) = (numbers.next(), numbers.next()) else {
                    return Err(odd("it ends early"));
                };
                let aligned = start.is_multiple_of(page) && end.is_multiple_of(page);
                if !aligned || start < last || end <= start {
                    return Err(odd("memory mixed up"));
                }
                last = end;
                ranges.push(start..end);
            }
            Ok(ranges)
        };
        let mut contents = Self {
            mappings: ranges(mappings)?,
            runs: ranges(runs)?,
            begin: 0,
        };
        contents.begin = contents.begin(page);
        // No sum can be larger than the last address.
        if contents.size() != size {
            return Err(odd("memory of another size"));
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imagefile::memory::{END, START};
    use crate::imagefile::tests::{PAGE, file, message};
    use crate::imagefile::write_number;

    const BASE: u64 = 0x7f00_0000_0000;

    /// Addresses of pages, counted from [`BASE`].
    fn pages(range: Range<u64>) -> Range<u64> {
        BASE + range.start * PAGE..BASE + range.end * PAGE
    }

    /// A `mm-PID.img`: mappings as pages, flags, protection, status and advice.
    fn mm(mappings: &[(Range<u64>, u64, u64, u64, u64)]) -> Vec<u8> {
        let mut mm = message(&[(1, 7)]);
        for (range, flags, protection, status, advice) in mappings {
            let vma = message(&[
                (START, pages(range.clone()).start),
                (END, pages(range.clone()).end),
                (3, 0),
                (5, *protection),
                (6, *flags),
                (7, *status),
                (9, *advice),
            ]);
            write_number(&mut mm, 14 << 3 | 2);
            write_number(&mut mm, vma.len() as u64);
            mm.extend_from_slice(&vma);
        }
        file(&[mm])
    }

    fn plain(range: Range<u64>) -> (Range<u64>, u64, u64, u64, u64) {
        (range, ANONYMOUS, READ_WRITE, ORDINARY, 0)
    }

    fn pagemap(runs: &[Range<u64>]) -> Vec<u8> {
        let mut entries = vec![message(&[(1, 3)])];
        entries.extend(runs.iter().map(|run| {
            let count = run.end - run.start;
            // As CRIU 4.1.1 writes it: one bit more for memory without a file.
            let place = 4 | (run.start % 2) << 1;
            let start = BASE + run.start * PAGE;
            message(&[(1, start), (2, count), (4, place), (5, count)])
        }));
        file(&entries)
    }

    /// Where each stored page is in the pages file, by its address.
    fn stored(pagemap: &[u8]) -> Vec<(u64, u64)> {
        let pagemap = Pagemap::read(pagemap, PAGE).unwrap();
        let runs = pagemap.runs.iter();
        let addresses = runs.flat_map(|run| run.range.clone().step_by(PAGE as usize));
        addresses.zip((0..).step_by(PAGE as usize)).collect()
    }

    /// Every page is in one of the two files with the bytes that it had, and no other page is; what is taken lies in
    /// mappings that were named.
    fn check(before: &[u8], split: &Split) {
        let each = |ranges: &[Range<u64>]| -> Vec<u64> {
            let ranges = ranges.iter().cloned();
            ranges
                .flat_map(|range| range.step_by(PAGE as usize))
                .collect()
        };
        let kept = stored(&split.pagemap)
            .into_iter()
            .map(|(address, _)| address);
        let mut found: Vec<(u64, u64)> = kept.zip(each(&split.kept)).collect();
        assert_eq!(found.len(), each(&split.kept).len());
        let contents = read(&split.contents.head(), split.contents.size()).unwrap();
        assert_eq!(contents, split.contents);
        let (runs, taken) = (each(&contents.runs), each(&split.taken));
        assert_eq!(runs.len(), taken.len());
        found.extend(runs.into_iter().zip(taken));
        found.sort_unstable();
        assert_eq!(found, stored(before));
        for run in &contents.runs {
            let around =
                |mapping: &&Range<u64>| mapping.start <= run.start && run.end <= mapping.end;
            assert_eq!(contents.mappings.iter().filter(around).count(), 1);
        }
    }

    fn read(head: &[u8], size: u64) -> io::Result<Contents> {
        Contents::read(size, PAGE, |buffer, at| {
            let bytes = head.get(at as usize..at as usize + buffer.len());
            buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    #[test]
    fn plain_memory_is_taken_and_the_rest_stays() {
        let heap = (30..40, ANONYMOUS, READ_WRITE, ORDINARY | HEAP, 0);
        let mm = mm(&[
            plain(0..10),
            plain(10..20),
            (20..30, libc::MAP_PRIVATE as u64, READ_WRITE, 65, 0),
            heap,
            plain(50..60),
        ]);
        // One run goes over three mappings.
        let pagemap = pagemap(&[2..4, 5..25, 29..31, 33..34, 45..46]);
        let split = split(&mm, &pagemap, PAGE, &[]).unwrap().unwrap();
        check(&pagemap, &split);
        assert_eq!(split.pages_file, 3);
        let expected = [2..4, 5..10, 10..20, 30..31, 33..34].map(pages);
        assert_eq!(split.contents.runs, expected);
        assert_eq!(split.contents.mappings, [0..10, 10..20, 30..40].map(pages));
        assert_eq!(split.contents.begin, PAGE);
    }

    #[test]
    fn what_is_not_plain_memory_stays() {
        let of = |mapping, runs: &[Range<u64>]| {
            split(&mm(&[mapping]), &pagemap(runs), PAGE, &[]).unwrap()
        };
        assert!(of(plain(0..9), &[0..9]).is_some());
        assert_eq!(of(plain(0..9), &[]), None);
        let with = |flags: libc::c_int| (0..9, flags as u64, READ_WRITE, ORDINARY, 0);
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        for mapping in [
            with(libc::MAP_PRIVATE),
            with(libc::MAP_SHARED | libc::MAP_ANONYMOUS),
            with(anonymous | libc::MAP_GROWSDOWN),
            with(anonymous | libc::MAP_LOCKED),
            with(anonymous | libc::MAP_NORESERVE),
            (0..9, ANONYMOUS, libc::PROT_READ as u64, ORDINARY, 0),
            (0..9, ANONYMOUS, READ_WRITE | 4, ORDINARY, 0),
            (0..9, ANONYMOUS, READ_WRITE, ORDINARY | 1 << 3, 0),
            (0..9, ANONYMOUS, READ_WRITE, ORDINARY, 1 << 18),
        ] {
            assert_eq!(of(mapping.clone(), &[0..9]), None, "{mapping:?}");
        }
        // Pages of an earlier image, and pages in no order.
        let parent = [message(&[(1, 1)]), message(&[(1, BASE), (2, 9), (3, 1)])];
        assert_eq!(
            split(&mm(&[plain(0..9)]), &file(&parent), PAGE, &[]).unwrap(),
            None
        );
        assert_eq!(of(plain(0..9), &[4..6, 0..2]), None);
    }

    #[test]
    fn what_the_kernel_writes_stays() {
        let mm = mm(&[plain(0..9), plain(20..29)]);
        let pagemap = pagemap(&[0..9, 20..29]);
        let inside = pages(3..4).start + 0x120;
        let split = split(&mm, &pagemap, PAGE, &[inside]).unwrap().unwrap();
        check(&pagemap, &split);
        assert_eq!(split.contents.mappings, [pages(20..29)]);
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
        for _ in 0..500 {
            let (mut mappings, mut runs, mut at, mut next) = (Vec::new(), Vec::new(), 0, 0);
            for _ in 0..1 + random(9) {
                // Some follow each other without a gap.
                at += random(2) * random(50);
                let mapping = plain(at..at + 1 + random(90));
                at = mapping.0.end;
                mappings.push(match random(3) {
                    0 => (mapping.0, 2, READ_WRITE, 65, 0),
                    _ => mapping,
                });
            }
            while next < at + 20 {
                let run = next + random(30)..next + 31 + random(60);
                next = run.end;
                runs.push(run);
            }
            let pagemap = pagemap(&runs);
            if let Some(split) = split(&mm(&mappings), &pagemap, PAGE, &[]).unwrap() {
                check(&pagemap, &split);
            }
        }
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let pagemap = pagemap(&[2..4, 5..9]);
        let split = split(&mm(&[plain(0..9)]), &pagemap, PAGE, &[])
            .unwrap()
            .unwrap();
        let (head, size) = (split.contents.head(), split.contents.size());
        assert_eq!(size, 7 * PAGE);
        assert!(read(&head, size).is_ok());
        assert!(read(&head, size + 1).is_err());
        assert!(read(&head, size - PAGE).is_err());
        // Magic; numbers of mappings and runs; a mapping's and a run's addresses.
        for (at, byte) in [
            (0, b'X'),
            (8, 2),
            (15, 1),
            (16, 9),
            (24, 1),
            (40, 1),
            (41, 0x90),
        ] {
            let mut bad = head.clone();
            bad[at] = byte;
            assert!(read(&bad, size).is_err(), "{at}");
        }
        for length in 0..HEAD as usize + 3 * 16 {
            assert!(read(&head[..length], size).is_err());
        }
    }

    #[test]
    fn cut_files_are_errors() {
        let (mm, pagemap) = (mm(&[plain(0..9)]), pagemap(&[]));
        for length in 0..mm.len() {
            assert!(split(&mm[..length], &pagemap, PAGE, &[]).is_err());
        }
        for length in 0..pagemap.len() {
            assert!(split(&mm, &pagemap[..length], PAGE, &[]).is_err());
        }
    }

    #[test]
    fn names_are_found_again() {
        assert_eq!(pid(&name("1000")), Some(1000));
        for other in ["aside-.img", "aside-1.im", "pages-1.img", "aside-x.img"] {
            assert_eq!(pid(other), None);
        }
    }
}
