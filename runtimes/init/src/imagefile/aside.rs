//! Memory that CRIU does not fill: taken out of its files and laid aside in a file of its own, from which PID 1 fills it
//! when CRIU is done. PID 1 can do it for little more than half of the cost.
//!
//! Only memory without a file is taken, and only where no flag nor advice asks for a special treatment (small pages are
//! what PID 1 fills it with), and nothing is written before PID 1's turn comes. Whatever else there is, is left to CRIU.
//!
//! ```text
//! aside-PID.img   "HEARTHA1", number of mappings, number of runs; first and last address of each mapping; the same of
//!                 each run of pages; padding to a page; then what is in the runs
//! ```
//! Numbers are u64, little-endian. Runs are ascending and lie within mappings; neither overlap.

use std::io;
use std::ops::Range;

use super::marks::Mark;
use super::memory::{ADDRESS, Mapping, PAGES, Pagemap, Run, mappings};
use super::odd;
use crate::protobuf::with_numbers;

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"HEARTHA1";
/// Bytes before the tables.
const HEAD: u64 = 24;
/// Most mappings and runs in one file: more than the kernel lets a process have. Protects PID 1 from a corrupt count.
const RANGES_MAX: u64 = 1 << 20;
/// Name of the file, up to the process's number.
const NAME: &str = "aside-";

/// Kind of mapping: memory of a process's own, without a file; CRIU's `VMA_AREA_REGULAR | VMA_ANON_PRIVATE`, and the
/// bit by which it tells the heap.
const ORDINARY: u64 = 1 << 0 | 1 << 9;
const HEAP: u64 = 1 << 5;
const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
/// Memory that is not counted before it is used, as V8's heap is: how it is filled does not depend on it.
const UNCOUNTED: u64 = libc::MAP_NORESERVE as u64;
const SMALL_PAGES: u64 = 1 << libc::MADV_NOHUGEPAGE;
/// V8 keeps its heap from children, which changes nothing of how it is filled.
const NOT_FOR_CHILDREN: u64 = 1 << libc::MADV_DONTFORK;
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

/// Splits an image, or returns nothing if there is nothing to take. `written` has the addresses that the kernel writes
/// to when a thread resumes; `marks` are applied before PID 1 fills anything.
pub fn split(
    mm: &[u8],
    pagemap: &[u8],
    page: u64,
    written: &[u64],
    marks: &[Mark],
) -> io::Result<Option<Split>> {
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
        .filter(|range| !marks.iter().any(|mark| overlap(&mark.range, range)))
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

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn is_plain(mapping: &Mapping) -> bool {
    mapping.flags & !UNCOUNTED == ANONYMOUS
        && mapping.protection == READ_WRITE
        && mapping.status & !HEAP == ORDINARY
        && mapping.advice & !(SMALL_PAGES | NOT_FOR_CHILDREN) == 0
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
    /// Start of the first run.
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
                    return Err(odd("inconsistent memory"));
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
mod tests;
