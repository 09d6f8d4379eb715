//! What the kernel does with a mapping and CRIU does not restore: that it is wiped in forked children
//! (`MADV_WIPEONFORK`), that it may be dropped at any time (`MAP_DROPPABLE`), that it is sealed (`mseal(2)`). Libraries
//! that draw random numbers keep their state in such memory, so that no two processes go on with the same one: glibc 2.41
//! and later for `getrandom` in the vDSO, BoringSSL and AWS-LC to notice a fork. To be restored is for them like being
//! forked, so that the content of a wiped mapping never gets into an image.
//!
//! ```text
//! marks-PID.img   JSON: the mappings of a process that PID 1 has to mark again, by address
//! ```
//! Any advice of the same kind that CRIU left out of its own notes is marked again, too.

use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::memory::{Mapping, Pagemap};
use super::odd;
use crate::smaps::Listed;

/// Most mappings of a process that are marked again. Each takes a system call or two at every restore, and C libraries
/// have one for some thirty threads.
const MARKS_MAX: usize = 1024;
/// Name of the file, up to the process's number.
const NAME: &str = "marks-";

/// Advice by the letters that the kernel lists for it.
const ADVICE: [(&str, libc::c_int); 8] = [
    ("wf", libc::MADV_WIPEONFORK),
    ("dc", libc::MADV_DONTFORK),
    ("dd", libc::MADV_DONTDUMP),
    ("mg", libc::MADV_MERGEABLE),
    ("hg", libc::MADV_HUGEPAGE),
    ("nh", libc::MADV_NOHUGEPAGE),
    ("sr", libc::MADV_SEQUENTIAL),
    ("rr", libc::MADV_RANDOM),
];
const DROPPABLE: &str = "dp";
const SEALED: &str = "sl";
/// Advice that a droppable mapping has from the start, and never loses.
const OF_DROPPABLE: u64 = 1 << libc::MADV_WIPEONFORK | 1 << libc::MADV_DONTDUMP;

/// A mapping to mark again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Addresses.
    pub range: Range<u64>,
    /// `PROT_…`.
    pub protection: u64,
    /// Whether to map it again, as droppable.
    pub droppable: bool,
    /// One bit for each `MADV_…` by its number.
    pub advice: u64,
    pub sealed: bool,
}

impl Mark {
    /// Whether children find it empty.
    pub fn is_wiped(&self) -> bool {
        self.droppable || self.advice & 1 << libc::MADV_WIPEONFORK != 0
    }
}

/// Name of the file of a process.
pub fn name(pid: &str) -> String {
    format!("{NAME}{pid}.img")
}

/// The process whose file has this name.
pub fn pid(name: &str) -> Option<i32> {
    name.strip_prefix(NAME)?.strip_suffix(".img")?.parse().ok()
}

/// What of a process's mappings, as the kernel lists them, is not in CRIU's notes of them.
///
/// # Errors
/// Both are not of the same memory, or there are too many.
pub fn lost(listed: &[Listed], noted: &[Mapping]) -> io::Result<Vec<Mark>> {
    // Where one begins may differ: CRIU counts the gap below a stack that grows.
    let same = |mapping: &Mapping, listed: &Listed| mapping.range.end == listed.range.end;
    let gone = |mapping: &&Mapping| !listed.iter().any(|listed| same(mapping, listed));
    if let Some(mapping) = noted.iter().find(gone) {
        let start = mapping.range.start;
        return Err(odd(&format!("memory at {start:x} that is gone")));
    }
    let mut marks = Vec::new();
    for listed in listed.iter().filter(|listed| !listed.is_kernels()) {
        let droppable = listed.has(DROPPABLE);
        let advice = ADVICE.iter().filter(|(letters, _)| listed.has(letters));
        let advice = advice.fold(0, |bits, (_, number)| bits | 1_u64 << number);
        let mut mark = Mark {
            range: listed.range.clone(),
            protection: listed.protection,
            droppable,
            advice,
            sealed: listed.has(SEALED),
        };
        match noted.iter().find(|mapping| same(mapping, listed)) {
            None if mark.is_wiped() => {
                let start = mark.range.start;
                return Err(odd(&format!("no note of the memory at {start:x}")));
            }
            None => continue,
            Some(_) if droppable => mark.advice &= !OF_DROPPABLE,
            Some(mapping) => mark.advice &= !mapping.advice,
        }
        if mark.droppable || mark.sealed || mark.advice != 0 {
            marks.push(mark);
        }
    }
    if marks.len() > MARKS_MAX {
        let count = marks.len();
        return Err(odd(&format!(
            "{count} mappings that are wiped in forks, dropped or sealed, and at most {MARKS_MAX} can be restored"
        )));
    }
    Ok(marks)
}

/// The bytes of the pages file that hold what is wiped.
///
/// # Errors
/// Some of it is stored elsewhere.
pub fn wiped(marks: &[Mark], pagemap: &[u8], page: u64) -> io::Result<Vec<Range<u64>>> {
    let pagemap = Pagemap::read(pagemap, page)?;
    let (mut found, mut at) = (Vec::new(), 0);
    for run in &pagemap.runs {
        for mark in marks.iter().filter(|mark| mark.is_wiped()) {
            let start = run.range.start.max(mark.range.start);
            let end = run.range.end.min(mark.range.end);
            if start < end {
                let begin = at + (start - run.range.start);
                found.push(begin..begin + (end - start));
            }
        }
        at += run.range.end - run.range.start;
    }
    // Pages that are stored elsewhere take no place in the file, so that the numbers above were wrong.
    if !found.is_empty() && pagemap.runs.iter().any(|run| !run.stored) {
        return Err(odd("memory to be wiped that is not stored as it is"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imagefile::tests::{PAGE, file, message};
    use crate::smaps;

    const WIPED: u64 = 1 << libc::MADV_WIPEONFORK;
    const LISTED: &str = "\
1000-3000 rw-p 00000000 00:00 0                          [heap]
VmFlags: rd wr mr mw me ac sd
3000-4000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me nr wf dd dp
4000-6000 r--p 00000000 00:00 0
VmFlags: rd mr mw me ac wf dc
6000-7000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me ac dc dd hg
7000-9000 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me gd ac sl
9000-a000 r-xp 00000000 00:00 0                          [vdso]
VmFlags: rd ex mr mw me de sd sl
";

    fn noted(advice: [u64; 5]) -> Vec<Mapping> {
        let ranges = [
            0x1000..0x3000,
            0x3000..0x4000,
            0x4000..0x6000,
            0x6000..0x7000,
            0x6000..0x9000,
        ];
        let with = |(range, advice)| Mapping {
            range,
            advice,
            ..Mapping::default()
        };
        ranges.into_iter().zip(advice).map(with).collect()
    }

    fn mark(range: Range<u64>, protection: u64) -> Mark {
        Mark {
            range,
            protection,
            droppable: false,
            advice: 0,
            sealed: false,
        }
    }

    #[test]
    fn what_criu_does_not_note_is_lost_and_nothing_else() {
        let (dump, fork, huge) = (1 << 16, 1 << 10, 1 << 14);
        let listed = smaps::parse(LISTED);
        let marks = lost(&listed, &noted([0, dump, fork, dump | fork | huge, 0])).unwrap();
        let expected = [
            Mark {
                droppable: true,
                ..mark(0x3000..0x4000, 3)
            },
            Mark {
                advice: WIPED,
                ..mark(0x4000..0x6000, 1)
            },
            Mark {
                sealed: true,
                ..mark(0x7000..0x9000, 3)
            },
        ];
        assert_eq!(marks, expected);
        assert_eq!(marks.iter().filter(|mark| mark.is_wiped()).count(), 2);
        // A CRIU that notes less, and one that notes more.
        let marks = lost(&listed, &noted([0, dump, fork, dump | huge, 0])).unwrap();
        assert_eq!(
            marks[2],
            Mark {
                advice: fork,
                ..mark(0x6000..0x7000, 3)
            }
        );
        let marks = lost(
            &listed,
            &noted([0, dump, fork | WIPED, dump | fork | huge, 0]),
        )
        .unwrap();
        assert_eq!(marks.len(), 2, "{marks:?}");
    }

    #[test]
    fn memory_that_changed_after_the_dump_is_an_error() {
        let (listed, noted) = (smaps::parse(LISTED), noted([0; 5]));
        assert!(lost(&listed[1..], &noted).is_err(), "gone");
        assert!(lost(&[], &noted).is_err(), "the process is");
        assert!(lost(&listed, &noted[2..]).is_err(), "new and wiped");
        assert!(lost(&listed, &noted[..1]).is_err(), "new and wiped");
    }

    #[test]
    fn more_marks_than_a_restore_has_time_for_are_an_error() {
        let listing = |count: u64| -> (Vec<Listed>, Vec<Mapping>) {
            let text: String = (1..=count)
                .map(|at| format!("{at:x}000-{at:x}800 rw-p 0 00:00 0\nVmFlags: rd wr wf\n"))
                .collect();
            let listed = smaps::parse(&text);
            let note = |listed: &Listed| Mapping {
                range: listed.range.clone(),
                ..Mapping::default()
            };
            let noted = listed.iter().map(note).collect();
            (listed, noted)
        };
        let (listed, noted) = listing(MARKS_MAX as u64);
        assert_eq!(lost(&listed, &noted).unwrap().len(), MARKS_MAX);
        let (listed, noted) = listing(MARKS_MAX as u64 + 1);
        let error = lost(&listed, &noted).unwrap_err().to_string();
        assert!(error.contains("1025 mappings"), "{error}");
    }

    #[test]
    fn every_stored_byte_of_a_wiped_mapping_is_found() {
        let marks = [
            Mark {
                droppable: true,
                ..mark(3 * PAGE..5 * PAGE, 3)
            },
            Mark {
                sealed: true,
                ..mark(5 * PAGE..6 * PAGE, 3)
            },
            Mark {
                advice: WIPED,
                ..mark(9 * PAGE..12 * PAGE, 3)
            },
        ];
        let runs = |place: u64| {
            file(&[
                message(&[(1, 1)]),
                message(&[(1, 2 * PAGE), (2, 4), (4, 4)]),
                message(&[(1, 7 * PAGE), (2, 1), (4, place)]),
                message(&[(1, 10 * PAGE), (2, 1), (4, 4)]),
            ])
        };
        let found = wiped(&marks, &runs(4), PAGE).unwrap();
        assert_eq!(found, [PAGE..3 * PAGE, 5 * PAGE..6 * PAGE]);
        assert!(
            wiped(&marks, &runs(1), PAGE).is_err(),
            "a page that is elsewhere"
        );
        assert_eq!(wiped(&marks[1..2], &runs(1), PAGE).unwrap(), []);
    }
}
