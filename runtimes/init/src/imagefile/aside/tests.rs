use prost::encoding::bytes;

use super::*;
use crate::imagefile::memory::VMA;
use crate::imagefile::tests::{PAGE, file, message};

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
            (1, pages(range.clone()).start),
            (2, pages(range.clone()).end),
            (3, 0),
            (5, *protection),
            (6, *flags),
            (7, *status),
            (9, *advice),
        ]);
        bytes::encode(VMA, &vma, &mut mm);
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
        let around = |mapping: &&Range<u64>| mapping.start <= run.start && run.end <= mapping.end;
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
    let split = split(&mm, &pagemap, PAGE, &[], &[]).unwrap().unwrap();
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
        split(&mm(&[mapping]), &pagemap(runs), PAGE, &[], &[]).unwrap()
    };
    let all = std::slice::from_ref(&(0..9));
    assert!(of(plain(0..9), all).is_some());
    let small = (0..9, ANONYMOUS, READ_WRITE, ORDINARY, SMALL_PAGES);
    assert!(of(small, all).is_some());
    // As V8 maps its heap.
    let uncounted = (
        0..9,
        ANONYMOUS | UNCOUNTED,
        READ_WRITE,
        ORDINARY,
        NOT_FOR_CHILDREN,
    );
    assert!(of(uncounted, all).is_some());
    assert_eq!(of(plain(0..9), &[]), None);
    let with = |flags: libc::c_int| (0..9, flags as u64, READ_WRITE, ORDINARY, 0);
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    for mapping in [
        with(libc::MAP_PRIVATE),
        with(libc::MAP_SHARED | libc::MAP_ANONYMOUS),
        with(anonymous | libc::MAP_GROWSDOWN),
        with(anonymous | libc::MAP_LOCKED),
        (0..9, ANONYMOUS, libc::PROT_READ as u64, ORDINARY, 0),
        (0..9, ANONYMOUS, READ_WRITE | 4, ORDINARY, 0),
        (0..9, ANONYMOUS, READ_WRITE, ORDINARY | 1 << 3, 0),
        (0..9, ANONYMOUS, READ_WRITE, ORDINARY, 1 << 18),
        (0..9, ANONYMOUS, READ_WRITE, ORDINARY, SMALL_PAGES | 1 << 18),
    ] {
        assert_eq!(of(mapping.clone(), all), None, "{mapping:?}");
    }
    // Pages of an earlier image, and pages in no order.
    let parent = [message(&[(1, 1)]), message(&[(1, BASE), (2, 9), (3, 1)])];
    assert_eq!(
        split(&mm(&[plain(0..9)]), &file(&parent), PAGE, &[], &[]).unwrap(),
        None
    );
    assert_eq!(of(plain(0..9), &[4..6, 0..2]), None);
}

#[test]
fn what_the_kernel_writes_stays() {
    let mm = mm(&[plain(0..9), plain(20..29)]);
    let pagemap = pagemap(&[0..9, 20..29]);
    let inside = pages(3..4).start + 0x120;
    let split = split(&mm, &pagemap, PAGE, &[inside], &[]).unwrap().unwrap();
    check(&pagemap, &split);
    assert_eq!(split.contents.mappings, [pages(20..29)]);
}

#[test]
fn what_is_marked_stays() {
    let mm = mm(&[plain(0..9), plain(20..29)]);
    let pagemap = pagemap(&[0..9, 20..29]);
    let mark = |range| Mark {
        range: pages(range),
        protection: READ_WRITE,
        droppable: false,
        advice: 1 << libc::MADV_WIPEONFORK,
        sealed: false,
    };
    let taken = |marks: &[Mark]| {
        let split = split(&mm, &pagemap, PAGE, &[], marks).unwrap().unwrap();
        check(&pagemap, &split);
        split.contents.mappings
    };
    assert_eq!(taken(&[mark(8..9)]), [pages(20..29)]);
    assert_eq!(taken(&[mark(9..20)]), [pages(0..9), pages(20..29)]);
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
        if let Some(split) = split(&mm(&mappings), &pagemap, PAGE, &[], &[]).unwrap() {
            check(&pagemap, &split);
        }
    }
}

#[test]
fn a_file_that_is_none_is_refused() {
    let pagemap = pagemap(&[2..4, 5..9]);
    let split = split(&mm(&[plain(0..9)]), &pagemap, PAGE, &[], &[])
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
        assert!(split(&mm[..length], &pagemap, PAGE, &[], &[]).is_err());
    }
    for length in 0..pagemap.len() {
        assert!(split(&mm, &pagemap[..length], PAGE, &[], &[]).is_err());
    }
}

#[test]
fn names_are_found_again() {
    assert_eq!(pid(&name("1000")), Some(1000));
    for other in ["aside-.img", "aside-1.im", "pages-1.img", "aside-x.img"] {
        assert_eq!(pid(other), None);
    }
}
