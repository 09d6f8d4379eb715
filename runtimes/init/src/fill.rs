//! Fills the memory of a restored process from the separate file written when the image was created ([`aside`]).
//!
//! CRIU would have each page of a mapping cleared and looked up once more before it is read: nearly twice the work. PID 1
//! hands the kernel the pages with their content ([`uffd`](crate::uffd)), on more than one processor where there are some.
//! Where the kernel refuses that, it writes them as a debugger would.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::thread::CpuSet;

use crate::imagefile::aside::{self, Contents};
use crate::inject::Stopped;

/// What a thread fills at a time, bytes: little enough to be in the processor's cache when it has been read, and for none
/// to wait long for another at the end.
const PIECE: usize = 64 << 10;
/// Bytes for which it pays to have one more thread, which takes some 100 µs to come.
const BYTES_EACH: u64 = 2 << 20;
/// Most helpers. Protects other starts from a large one.
const HELPERS: u64 = 3;
/// Size of their stacks, bytes.
const STACK: usize = 64 << 10;

/// The files of an image with memory that was laid aside, within reach.
#[derive(Debug)]
pub struct Fillings(Vec<Filling>);

#[derive(Debug)]
struct Filling {
    pid: i32,
    file: File,
    contents: Contents,
}

impl Fillings {
    /// Opens those that are in the directory `images`.
    pub fn open(images: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(images, flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut fillings = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let entry = entry?;
            if let Some(pid) = entry.file_name().to_str().ok().and_then(aside::pid) {
                let flags = flags | OFlags::NOFOLLOW;
                let file = rustix::fs::openat(&dir, entry.file_name(), flags, Mode::empty())?;
                fillings.push(Filling::open(pid, File::from(file))?);
            }
        }
        Ok(Self(fillings))
    }

    /// Fills what belongs to this process, and does `meanwhile`, at the same time where it can.
    pub fn fill(
        &self,
        pid: Pid,
        process: &Stopped<'_>,
        meanwhile: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let pid = pid.as_raw_nonzero().get();
        match self.0.iter().find(|filling| filling.pid == pid) {
            Some(filling) => filling.fill(process, meanwhile),
            None => meanwhile(),
        }
    }

    /// Whether each of them belongs to one of these processes.
    pub fn are_all_of(&self, processes: &[Pid]) -> bool {
        self.0.iter().all(|filling| {
            processes
                .iter()
                .any(|pid| pid.as_raw_nonzero().get() == filling.pid)
        })
    }
}

impl Filling {
    fn open(pid: i32, file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let page = rustix::param::page_size() as u64;
        let contents = Contents::read(size, page, |buffer, at| file.read_exact_at(buffer, at))?;
        Ok(Self {
            pid,
            file,
            contents,
        })
    }

    fn fill(
        &self,
        process: &Stopped<'_>,
        meanwhile: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mappings = &self.contents.mappings;
        let missing = process.missing_pages()?.filter(|missing| {
            let registered = |mapping| missing.register(mapping).is_ok();
            mappings.iter().all(registered)
        });
        let pieces = Pieces {
            file: &self.file,
            all: self.pieces(),
            next: AtomicUsize::new(0),
        };
        let Some(missing) = missing else {
            // A kernel without it, or a rule against it: the slower way.
            pieces.work_off(|at, bytes| process.write(at, bytes))?;
            return meanwhile();
        };
        let fill = || pieces.work_off(|at, bytes| missing.fill(at, bytes));
        let elsewhere = other_processors();
        let help = || {
            // The scheduler may take a while to see that there is another one. Without leave, it helps where it is.
            let _ = rustix::thread::sched_setaffinity(None, &elsewhere);
            fill()
        };
        let helpers = (elsewhere.count() as usize).min(pieces.useful_helpers());
        thread::scope(|scope| {
            let helpers: Vec<_> = (0..helpers)
                .map_while(|_| {
                    let builder = thread::Builder::new().stack_size(STACK);
                    builder.spawn_scoped(scope, help).ok()
                })
                .collect();
            // Alone it fills first: the process may have to wait for one of its pages with what is done meanwhile.
            let done = if helpers.is_empty() {
                fill().and_then(|()| meanwhile())
            } else {
                meanwhile().and_then(|()| fill())
            };
            helpers.into_iter().fold(done, |done, helper| {
                let helped = helper.join();
                done.and(helped.unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
            })
        })
    }

    fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut place = self.contents.begin;
        for run in &self.contents.runs {
            for at in (run.start..run.end).step_by(PIECE) {
                let length = (run.end - at).min(PIECE as u64);
                pieces.push(Piece { at, place, length });
                place += length;
            }
        }
        pieces
    }
}

/// The processors that this process may use, but for the one that it is on.
fn other_processors() -> CpuSet {
    let mut processors = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    processors.unset(rustix::thread::sched_getcpu());
    processors
}

/// A piece of memory to fill.
#[derive(Debug)]
struct Piece {
    /// Address in the process.
    at: u64,
    /// Place in the file.
    place: u64,
    /// Bytes, at most [`PIECE`].
    length: u64,
}

/// Work shared by threads: each takes the next chunk when free.
struct Pieces<'a> {
    file: &'a File,
    all: Vec<Piece>,
    next: AtomicUsize,
}

impl Pieces<'_> {
    /// How many helpers pay.
    fn useful_helpers(&self) -> usize {
        let bytes: u64 = self.all.iter().map(|piece| piece.length).sum();
        (bytes / BYTES_EACH).min(HELPERS) as usize
    }

    fn work_off(&self, put: impl Fn(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        // Whole pages are copied fastest.
        let page = rustix::param::page_size();
        let mut buffer = vec![0; PIECE + page];
        let first = buffer.as_ptr().align_offset(page).min(page);
        while let Some(piece) = self.all.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = &mut buffer[first..first + piece.length as usize];
            self.file
                .read_exact_at(bytes, piece.place)
                .and_then(|()| put(piece.at, bytes))
                .map_err(|error| {
                    io::Error::new(error.kind(), format!("at {:x}: {error}", piece.at))
                })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    const BEGIN: u64 = 8192;
    const PAGE: u64 = 4096;

    /// A file of which the runs are these, and the byte that belongs to each of their addresses.
    fn filling(runs: &[std::ops::Range<u64>]) -> (Filling, BTreeMap<u64, u8>) {
        let file = tempfile::tempfile().unwrap();
        let mut expected = BTreeMap::new();
        let mut place = BEGIN;
        for address in runs.iter().cloned().flatten() {
            // No two pages nor pieces are alike.
            let byte = (address ^ address >> 8 ^ address >> 16) as u8;
            expected.insert(address, byte);
        }
        for run in runs {
            let bytes: Vec<u8> = expected.range(run.clone()).map(|(_, byte)| *byte).collect();
            file.write_all_at(&bytes, place).unwrap();
            place += bytes.len() as u64;
        }
        let contents = Contents {
            mappings: runs.to_vec(),
            runs: runs.to_vec(),
            begin: BEGIN,
        };
        let filling = Filling {
            pid: 1,
            file,
            contents,
        };
        (filling, expected)
    }

    fn pieces(filling: &Filling) -> Pieces<'_> {
        Pieces {
            file: &filling.file,
            all: filling.pieces(),
            next: AtomicUsize::new(0),
        }
    }

    #[test]
    fn every_byte_comes_to_its_place_whoever_brings_it() {
        let large = 3 * PIECE as u64 + PAGE;
        let (filling, expected) = filling(&[
            PAGE..2 * PAGE,
            1 << 20..(1 << 20) + large,
            1 << 30..(1 << 30) + PIECE as u64,
        ]);
        let pieces = pieces(&filling);
        let filled = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let put = |at: u64, bytes: &[u8]| {
                        assert!(bytes.len() <= PIECE);
                        let mut filled = filled.lock().unwrap();
                        for (address, byte) in (at..).zip(bytes) {
                            assert_eq!(filled.insert(address, *byte), None, "twice");
                        }
                        Ok(())
                    };
                    pieces.work_off(put).unwrap();
                });
            }
        });
        assert!(filled.into_inner().unwrap() == expected);
    }

    #[test]
    fn a_file_that_ends_too_soon_is_an_error_that_says_where() {
        let (filling, _) = filling(&[PAGE..3 * PAGE, 1 << 20..(1 << 20) + PAGE]);
        filling.file.set_len(BEGIN + 2 * PAGE).unwrap();
        let error = pieces(&filling).work_off(|_, _| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().starts_with("at 100000:"), "{error}");
    }
}
