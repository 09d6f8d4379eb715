//! Moves a template's memory into large folios.
//!
//! A fork copies the page tables of all private memory that was ever written. Page by page that is most of its time:
//! each page has a reference counter and a map counter of its own, a cache miss. Pages of one large folio that lie side
//! by side in memory and in the page table are copied as one batch (`copy_present_ptes` in the kernel's `mm/memory.c`,
//! Linux 6.9 and later), and so are they given back when the child ends.
//!
//! The kernel makes large folios only where 2 MiB of addresses are aligned and all one mapping's, which an interpreter's
//! heap and data seldom are. So huge pages are made elsewhere, filled with copies of the template's pages, and moved in their
//! place in pieces (mremap(2)). The addresses stay, the content stays; the children copy what they write 4 KiB at a time as
//! before.

use std::io;
use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

use crate::mappings::{self, Mapping};
use crate::sys;

/// What the kernel maps at once, and the smallest page: of x86-64, and of AArch64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;
const PAGE: usize = 4096;
/// Fewest bytes that are moved: a part of a mapping becomes a mapping of its own, which costs every fork as much as some
/// thirty pages.
const RUN_MIN: usize = 64 * PAGE;
/// Most bytes without content that are moved along rather than ending a run.
const GAP_MAX: usize = 32 * PAGE;
/// Smallest share of the last huge page that must be filled to be worth its memory.
const LAST_FILLED_MIN: usize = HUGE_PAGE / 4 * 3;

/// Flags of mappings that are more than plain memory: left out of forks or wiped in them, of a device, locked, growing, a
/// shadow stack, huge pages, watched by userfaultfd, or shared by equal content.
const SPECIAL: [&str; 15] = [
    "dc", "wf", "io", "pf", "de", "lo", "gd", "ss", "ht", "um", "uw", "ui", "mg", "sl", "dp",
];
/// Largest mapping that is looked through: a byte for each of its pages is needed meanwhile.
const MAPPING_MAX: usize = 4 << 30;

/// Moves this process' written memory into huge pages, in pieces. Returns how many bytes; 0 where the kernel has no huge
/// page to give, or where there are further threads, which could write meanwhile.
///
/// `interrupted` is asked before each huge page, and ends it. It must not ask for memory, nor write to any but its stack.
///
/// # Errors
/// The kernel's list of mappings cannot be read, or it refused a step. What was moved by then stays moved; nothing is lost.
pub fn compact(interrupted: impl FnMut() -> bool) -> io::Result<usize> {
    if rustix::param::page_size() != PAGE || !sys::is_single_threaded() {
        return Ok(0);
    }
    let own = sys::thread_local_address();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for mapping in mappings::list()? {
        if is_plain(&mapping) && !mapping.range.contains(&own) {
            runs.extend(written(&mapping.range));
        }
    }
    runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.len()));
    let total: usize = runs.iter().map(Range::len).sum();
    let rest = total % HUGE_PAGE;
    let wanted = total - rest + if rest < LAST_FILLED_MIN { 0 } else { rest };
    if wanted == 0 {
        return Ok(0);
    }
    sys::with_signals_blocked(|| move_all(&runs, wanted, interrupted))
}

fn is_plain(mapping: &Mapping) -> bool {
    mapping.permissions == "rw-p"
        && mapping.protection_key == 0
        && mapping.range.len() <= MAPPING_MAX
        && !SPECIAL.iter().any(|flag| mapping.has(flag))
}

/// The runs of pages with content.
fn written(range: &Range<usize>) -> Vec<Range<usize>> {
    let mut resident = vec![0_u8; range.len() / PAGE];
    if sys::residency(range, &mut resident).is_err() {
        // It was the list's own memory, and is gone.
        return Vec::new();
    }
    let pages = (range.start..).step_by(PAGE).zip(resident);
    let pages = pages.filter_map(|(page, state)| (state & 1 == 1).then_some(page));
    runs_of(pages, range)
}

/// The runs that these pages of a mapping make, ascending, with the gaps that are too short to end them.
fn runs_of(pages: impl Iterator<Item = usize>, mapping: &Range<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if page - run.end <= GAP_MAX => run.end = page + PAGE,
            _ => runs.push(page..page + PAGE),
        }
    }
    // A mapping that is moved whole stays one.
    if let Some(first) = runs.first_mut()
        && first.start - mapping.start <= GAP_MAX
    {
        first.start = mapping.start;
    }
    if let Some(last) = runs.last_mut()
        && mapping.end - last.end <= GAP_MAX
    {
        last.end = mapping.end;
    }
    runs.retain(|run| run.len() >= RUN_MIN);
    runs
}

/// Moves the first `wanted` bytes of the runs. Nothing here may write to what is being moved, nor ask for memory or give it
/// back.
fn move_all(
    runs: &[Range<usize>],
    wanted: usize,
    mut interrupted: impl FnMut() -> bool,
) -> io::Result<usize> {
    let mut stage = Stage::reserve(wanted)?;
    let mut moved = 0;
    for run in runs {
        let mut from = run.start;
        while from < run.end {
            // A piece ends with the huge page that it lies in: no more than that is ever there twice.
            let length = (run.end - from).min(stage.room()).min(wanted - moved);
            if length == 0 || (stage.is_at_a_page() && (interrupted() || !stage.make_page()?)) {
                return Ok(moved);
            }
            // What the list itself took is among the mappings, and may be gone by now, or the stage.
            let piece = from..from + length;
            let mut resident = [0; HUGE_PAGE / PAGE];
            if stage.overlaps(&piece) || sys::residency(&piece, &mut resident).is_err() {
                break;
            }
            stage.take(from, length)?;
            moved += length;
            from += length;
        }
    }
    Ok(moved)
}

/// Addresses of huge pages, which are filled from the start.
struct Stage {
    reserved: Range<usize>,
    next: usize,
}

impl Stage {
    fn reserve(bytes: usize) -> io::Result<Self> {
        let length = bytes.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        // SAFETY: new addresses, not used elsewhere.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?
        .expose_provenance();
        let stage = Self {
            reserved: start..start + length,
            next: start.next_multiple_of(HUGE_PAGE),
        };
        // All of it at once: pieces that end up side by side are then one mapping again.
        // SAFETY: advice on how to make pages that are not there yet.
        unsafe {
            rustix::mm::madvise(
                ptr::with_exposed_provenance_mut(start),
                length,
                Advice::LinuxHugepage,
            )?;
        }
        Ok(stage)
    }

    fn overlaps(&self, piece: &Range<usize>) -> bool {
        piece.start < self.reserved.end && self.reserved.start < piece.end
    }

    /// What is left of the current huge page.
    fn room(&self) -> usize {
        HUGE_PAGE - self.next % HUGE_PAGE
    }

    /// Whether the next byte is the first of a huge page.
    fn is_at_a_page(&self) -> bool {
        self.next.is_multiple_of(HUGE_PAGE)
    }

    /// Has the kernel make the huge page that begins here; false if it has none.
    fn make_page(&self) -> io::Result<bool> {
        let page = ptr::with_exposed_provenance_mut::<u8>(self.next);
        // SAFETY: inside of what `reserve` mapped, of which nothing from `next` on was used.
        unsafe { page.write_volatile(0) };
        let mut second = [0];
        let behind = self.next + PAGE..self.next + 2 * PAGE;
        sys::residency(&behind, &mut second)?;
        Ok(second[0] & 1 == 1)
    }

    /// Copies `length` bytes at `from` to the stage and puts the copy where they were, with the same permissions. They are
    /// plain private memory (`is_plain`), and mapped (`move_all` has just looked).
    ///
    /// Nobody writes between the copying and the moving: this is the only thread, signals are blocked, and the code here
    /// touches only its stack and registers, which stay where they are (the stack's mapping grows, the thread's own has
    /// `own` in it). New pages at the place are to be small, as they would have been.
    fn take(&mut self, from: usize, length: usize) -> io::Result<()> {
        let copy = ptr::with_exposed_provenance_mut::<u8>(self.next);
        let place = ptr::with_exposed_provenance_mut::<u8>(from);
        // SAFETY: both ranges are mapped and apart; that of the copy was not used yet. The mapping that `place` loses held the
        // same bytes as the one it gets, because nobody wrote meanwhile (see above).
        unsafe {
            ptr::copy_nonoverlapping(place, copy, length);
            rustix::mm::madvise(copy.cast(), length, Advice::LinuxNoHugepage)?;
            let moved = rustix::mm::mremap_fixed(
                copy.cast(),
                length,
                length,
                MremapFlags::MAYMOVE,
                place.cast(),
            );
            if let Err(errno) = moved {
                // The old pages are gone by now; the copy is not.
                let place_again = rustix::mm::mmap_anonymous(
                    place.cast(),
                    length,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE | MapFlags::FIXED,
                );
                if place_again.is_err() {
                    // Without its memory nothing can go on.
                    std::process::abort();
                }
                ptr::copy_nonoverlapping(copy, place, length);
                return Err(errno.into());
            }
        }
        self.next += length;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // SAFETY: what was moved away has left holes in these addresses, which nothing was mapped to since: signals are
        // blocked and this thread is the only one. The rest is known to nobody.
        let _ = unsafe {
            rustix::mm::munmap(
                ptr::with_exposed_provenance_mut(self.reserved.start),
                self.reserved.len(),
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of a mapping of 1,000 pages, as pages, of which these are in memory.
    fn runs(resident: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let mapping = 0x10_0000..0x10_0000 + 1000 * PAGE;
        let pages = resident.iter().flat_map(|&(start, end)| start..end);
        let number = |address| (address - mapping.start) / PAGE;
        runs_of(pages.map(|page| mapping.start + page * PAGE), &mapping)
            .into_iter()
            .map(|run| (number(run.start), number(run.end)))
            .collect()
    }

    #[test]
    fn short_gaps_are_moved_along_and_long_ones_are_not() {
        assert_eq!(runs(&[(100, 200), (232, 300)]), [(100, 300)]);
        assert_eq!(runs(&[(100, 200), (233, 300)]), [(100, 200), (233, 300)]);
    }

    #[test]
    fn a_run_reaches_to_the_ends_of_its_mapping_where_they_are_near() {
        assert_eq!(runs(&[(32, 968)]), [(0, 1000)]);
        assert_eq!(runs(&[(33, 967)]), [(33, 967)]);
    }

    #[test]
    fn short_runs_stay_where_they_are() {
        assert_eq!(runs(&[(100, 163), (500, 564)]), [(500, 564)]);
        assert_eq!(runs(&[]), []);
    }
}
