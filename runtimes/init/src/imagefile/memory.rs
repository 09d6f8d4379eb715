//! What CRIU noted of a process's memory: its mappings, and which pages of them are stored.
//!
//! Format: `mm_entry` in CRIU's `images/mm.proto`, `vma_entry` in `images/vma.proto`, `pagemap_head` and `pagemap_entry`
//! in `images/pagemap.proto`.

use std::io;
use std::ops::Range;

use prost::Message as _;

use super::records::{Mm, PagemapEntry, PagemapHead, Vma};
use super::{entry, entry_at, odd, with_message};
use crate::protobuf::{Change, changed};

/// Field of `mm_entry` that holds a `vma_entry`, one for each mapping.
pub const VMA: u32 = 14;
/// Field of `vma_entry`.
pub const FLAGS: u32 = 6;
/// Fields of `pagemap_entry`: first address; number of pages, which newer versions write twice.
pub const ADDRESS: u32 = 1;
pub const PAGES: [u32; 2] = [2, 5];

/// [`PagemapEntry::flags`] of pages that are in the pages file: this bit, and another where they could be sent later to a process that
/// runs already, which no restore of ours does.
const PRESENT: u32 = 1 << 2;
const LAZY: u32 = 1 << 1;

/// A `vma_entry`, as far as it matters.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses.
    pub range: Range<u64>,
    /// `PROT_…`.
    pub protection: u64,
    /// `MAP_…`.
    pub flags: u64,
    /// CRIU's `VMA_AREA_…`.
    pub status: u64,
    /// One bit for each `MADV_…` by its number.
    pub advice: u64,
}

impl Mapping {
    /// Reads one.
    pub fn read(vma: &[u8]) -> io::Result<Self> {
        Self::of(&Vma::decode(vma)?)
    }

    fn of(vma: &Vma) -> io::Result<Self> {
        if vma.end < vma.start {
            return Err(odd("a mapping that ends before it begins"));
        }
        Ok(Self {
            range: vma.start..vma.end,
            protection: vma.protection.into(),
            flags: vma
                .flags
                .ok_or_else(|| odd("a mapping without flags"))?
                .into(),
            status: vma.status.into(),
            advice: vma.advice,
        })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// The mappings in `mm-PID.img`.
pub fn mappings(mm: &[u8]) -> io::Result<Vec<Mapping>> {
    let (start, end) = entry(mm)?;
    let mm = Mm::decode(&mm[start..end])?;
    mm.vmas.iter().map(Mapping::of).collect()
}

/// The file `mm-PID.img` with each `vma_entry` replaced by what `change` makes of it.
pub fn with_mappings(
    mm: &[u8],
    mut change: impl FnMut(&[u8]) -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    let (start, end) = entry(mm)?;
    let changed = changed(&mm[start..end], |field, vma| match field {
        VMA => Ok(Change::Bytes(change(vma)?)),
        _ => Ok(Change::Keep),
    })?;
    with_message(mm, start, end, &changed)
}

/// Number of the file with the pages of `pagemap-PID.img`.
pub fn pages_file(pagemap: &[u8], page: u64) -> io::Result<u64> {
    Ok(Pagemap::read(pagemap, page)?.pages_file)
}

/// A `pagemap_entry`: pages that follow each other in memory and in the pages file.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Addresses.
    pub range: Range<u64>,
    /// Whether they are in the pages file, all of them and as they are.
    pub stored: bool,
    /// All of it.
    pub message: &'a [u8],
}

/// The file `pagemap-PID.img`.
#[derive(Debug)]
pub struct Pagemap<'a> {
    /// Its magic number and first entry.
    pub head: &'a [u8],
    /// Number of the file with the pages.
    pub pages_file: u64,
    /// In the order of the pages file.
    pub runs: Vec<Run<'a>>,
}

impl<'a> Pagemap<'a> {
    /// Reads it.
    pub fn read(file: &'a [u8], page: u64) -> io::Result<Self> {
        let (start, mut next) = entry(file)?;
        let pages_file = PagemapHead::decode(&file[start..next])?.pages_id.into();
        let head = &file[..next];
        let mut runs = Vec::new();
        while next < file.len() {
            let (start, end) = entry_at(file, next)?;
            runs.push(Run::read(&file[start..end], page)?);
            next = end;
        }
        Ok(Self {
            head,
            pages_file,
            runs,
        })
    }

    /// Bytes of a range that are noted.
    pub fn covered(&self, range: &Range<u64>) -> u64 {
        let shared = |run: &Run<'_>| {
            let (start, end) = (
                run.range.start.max(range.start),
                run.range.end.min(range.end),
            );
            end.saturating_sub(start)
        };
        self.runs.iter().map(shared).sum()
    }
}

impl<'a> Run<'a> {
    fn read(message: &'a [u8], page: u64) -> io::Result<Self> {
        let entry = PagemapEntry::decode(message)?;
        let end = entry
            .pages
            .unwrap_or(entry.compat_pages.into())
            .checked_mul(page)
            .and_then(|bytes| entry.address.checked_add(bytes))
            .ok_or_else(|| odd("more pages than addresses"))?;
        let present = entry.flags.is_none_or(|flags| flags & !LAZY == PRESENT);
        Ok(Self {
            range: entry.address..end,
            stored: present && !entry.in_parent,
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imagefile::tests::{PAGE, file, message};

    #[test]
    fn a_mapping_that_makes_no_sense_is_an_error() {
        let good = [(1, PAGE), (2, 3 * PAGE), (5, 3), (FLAGS, 0)];
        let mapping = Mapping::read(&message(&good)).unwrap();
        assert_eq!(mapping.range, PAGE..3 * PAGE);
        assert_eq!((mapping.protection, mapping.size()), (3, 2 * PAGE));
        assert!(Mapping::read(&message(&good[..3])).is_err(), "no flags");
        let reversed = [(1, 3 * PAGE), (2, PAGE), (FLAGS, 0)];
        assert!(Mapping::read(&message(&reversed)).is_err(), "reversed");
    }

    #[test]
    fn only_pages_that_are_present_and_here_are_stored() {
        let stored = |place: u32, parent: u64| {
            let fields = [
                (ADDRESS, PAGE),
                (PAGES[0], 2),
                (3, parent),
                (4, place.into()),
            ];
            Run::read(&message(&fields), PAGE).unwrap().stored
        };
        assert!(stored(PRESENT, 0) && stored(PRESENT | LAZY, 0));
        assert!(!stored(PRESENT, 1), "in an earlier image");
        assert!(!stored(0, 0) && !stored(LAZY, 0), "not present");
        assert!(!stored(PRESENT | 1, 0), "a flag that is not known");
    }

    #[test]
    fn a_run_past_the_last_address_is_an_error() {
        let read = |address, pages| {
            let fields = message(&[(ADDRESS, address), (PAGES[1], pages)]);
            Run::read(&fields, PAGE).map(|run| run.range)
        };
        let last = u64::MAX - 2 * PAGE + 1;
        assert_eq!(read(last, 1).unwrap(), last..last + PAGE);
        assert!(read(last, 2).is_err(), "the sum");
        assert!(read(0, u64::MAX / PAGE + 1).is_err(), "the product");
    }

    #[test]
    fn what_runs_share_with_a_range_is_covered() {
        let run = |first: u64, pages| message(&[(ADDRESS, first * PAGE), (PAGES[0], pages)]);
        let pagemap = file(&[message(&[(1, 5)]), run(1, 4), run(8, 2)]);
        let pagemap = Pagemap::read(&pagemap, PAGE).unwrap();
        assert_eq!(pagemap.pages_file, 5);
        for (range, pages) in [(0..20, 6), (3..9, 3), (5..8, 0), (4..5, 1), (10..20, 0)] {
            let bytes = range.start * PAGE..range.end * PAGE;
            assert_eq!(pagemap.covered(&bytes), pages * PAGE, "{range:?}");
        }
    }
}
