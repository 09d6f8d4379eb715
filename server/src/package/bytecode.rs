//! Byte code of a package's Python sources, compiled in a sandbox and stored where Python looks for it.
//!
//! ```text
//! compiler in its sandbox ─▶ two pipes ─▶ Frames (bounded) ─▶ ByteCodeWriter (a source of this package? once? a hash-based pyc?)
//!                                                                └▶ pkg/__pycache__/mod.cpython-311.pyc
//! ```
//!
//! The compiler's output is hostile input, because it has read the user's files. Paths to write are derived from the
//! package's own files only. Modules whose byte code is rejected or missing are compiled on each import.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::browse;

/// The directories where Python keeps byte code. They are Hearth's in every package: nothing that is uploaded gets there,
/// and they are not shown.
pub const DIRECTORY: &str = "__pycache__";
/// Bytes of all byte code of a package: half of what its files may have.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of one file: a source of 2 MiB, the largest that is compiled, makes less.
const MAX_FILE_BYTES: usize = 16 << 20;
/// Bytes of a source's path: more than [`super::names`] lets through.
const MAX_PATH_BYTES: usize = 1024;
/// Bytes of a frame's two lengths.
const LENGTHS: usize = 8;
/// Bytes before the code itself: the interpreter's magic number, flags, the source's hash.
const HEADER: usize = 16;
/// Flags of byte code that Python takes without a look at its source (PEP 552).
const UNCHECKED_HASH: [u8; 4] = [1, 0, 0, 0];
/// Bytes read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Whether a path leads into a directory for byte code, or to one.
pub(super) fn is_reserved(path: &str) -> bool {
    path.split('/').any(|component| component == DIRECTORY)
}

/// The Python sources of a package.
#[derive(Debug, Default)]
pub struct Sources {
    paths: BTreeSet<String>,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Sources {
    /// Those below `root`, blocking.
    ///
    /// # Errors
    /// The disk's.
    pub fn find(root: &Path) -> io::Result<Self> {
        let mut sources = Self::default();
        for (path, meta) in browse::walk(root)?.files {
            if path.ends_with(".py") {
                sources.bytes += meta.bytes;
                sources.paths.insert(path);
            }
        }
        Ok(sources)
    }
}

/// The byte code that was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether every stream came to its end, with nothing refused.
    pub complete: bool,
}

/// Keeps what comes on `streams` (read ends of pipes, non-blocking) until all have ended or `deadline` has come, blocking.
/// A stream with anything wrong in it is read no further. `tag` names the interpreter: `cpython-311`.
///
/// # Errors
/// The disk's. What was kept before stays, whole.
pub fn collect(
    root: &Path,
    sources: Sources,
    tag: &str,
    streams: Vec<OwnedFd>,
    deadline: Instant,
) -> io::Result<Kept> {
    let mut writer = ByteCodeWriter {
        root,
        tag,
        sources: sources.paths,
        directories: BTreeSet::new(),
        kept: Kept::default(),
    };
    let read = writer.read(streams, deadline);
    let sealed = writer.seal();
    writer.kept.complete = read?;
    sealed?;
    Ok(writer.kept)
}

/// The kind of a stream's next bytes.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// The byte code of this source.
    Frame(String, Vec<u8>),
    /// Not all there yet.
    Wanting,
    /// The stream's end.
    End,
}

/// It is no stream of frames.
#[derive(Debug, PartialEq, Eq)]
struct Refused;

/// One stream, cut into frames. Holds one frame and one piece at most.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    /// How far they have been taken.
    at: usize,
}

impl Frames {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(piece);
    }

    fn next(&mut self) -> Result<Next, Refused> {
        let rest = &self.bytes[self.at..];
        let Some((lengths, rest)) = rest.split_first_chunk::<LENGTHS>() else {
            return Ok(Next::Wanting);
        };
        let [a, b, c, d, e, f, g, h] = *lengths;
        let path = u32::from_le_bytes([a, b, c, d]) as usize;
        let code = u32::from_le_bytes([e, f, g, h]) as usize;
        if path == 0 && code == 0 {
            return Ok(Next::End);
        }
        if path > MAX_PATH_BYTES || code > MAX_FILE_BYTES {
            return Err(Refused);
        }
        if rest.len() < path + code {
            return Ok(Next::Wanting);
        }
        let (name, rest) = rest.split_at(path);
        let name = std::str::from_utf8(name).map_err(|_| Refused)?.to_owned();
        let code = rest[..code].to_vec();
        self.at += LENGTHS + path + code.len();
        Ok(Next::Frame(name, code))
    }
}

/// Writes byte code beside its source.
struct ByteCodeWriter<'a> {
    root: &'a Path,
    tag: &'a str,
    /// Those that have none yet.
    sources: BTreeSet<String>,
    /// Made here, and to be sealed.
    directories: BTreeSet<PathBuf>,
    kept: Kept,
}

impl ByteCodeWriter<'_> {
    /// Returns whether all came.
    fn read(&mut self, streams: Vec<OwnedFd>, deadline: Instant) -> io::Result<bool> {
        let mut complete = true;
        let mut open: Vec<_> = streams
            .into_iter()
            .map(|stream| (stream, Frames::default()))
            .collect();
        let mut piece = vec![0; PIECE_BYTES];
        while !open.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let mut ready: Vec<_> = open
                .iter()
                .map(|(stream, _)| PollFd::new(stream, PollFlags::IN))
                .collect();
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut ready, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut still = Vec::with_capacity(open.len());
            for (stream, mut frames) in open {
                let count = match rustix::io::read(&stream, &mut piece[..]) {
                    Ok(count) => count,
                    Err(Errno::AGAIN | Errno::INTR) => {
                        still.push((stream, frames));
                        continue;
                    }
                    Err(errno) => return Err(errno.into()),
                };
                frames.push(&piece[..count]);
                match self.take(&mut frames)? {
                    Some(Next::End) => {}
                    Some(_) if count > 0 => still.push((stream, frames)),
                    // Refused, or it broke off.
                    _ => complete = false,
                }
            }
            open = still;
        }
        Ok(complete)
    }

    /// Keeps all frames that are there. Nothing when the stream is refused.
    fn take(&mut self, frames: &mut Frames) -> io::Result<Option<Next>> {
        loop {
            match frames.next() {
                Ok(Next::Frame(source, code)) => {
                    if !self.keep(&source, &code)? {
                        return Ok(None);
                    }
                }
                Ok(next) => return Ok(Some(next)),
                Err(Refused) => return Ok(None),
            }
        }
    }

    /// Writes one file. Returns whether it was one that may be.
    fn keep(&mut self, source: &str, code: &[u8]) -> io::Result<bool> {
        let bytes = code.len() as u64;
        let is_bytecode =
            code.len() > HEADER && code[2..4] == *b"\r\n" && code[4..8] == UNCHECKED_HASH;
        if !is_bytecode || self.kept.bytes + bytes > MAX_BYTES || !self.sources.remove(source) {
            return Ok(false);
        }
        let (parent, name) = source.rsplit_once('/').unwrap_or(("", source));
        let stem = name.strip_suffix(".py").unwrap_or(name);
        let directory = self.root.join(parent).join(DIRECTORY);
        let place = directory.join(format!("{stem}.{}.pyc", self.tag));
        if self.directories.insert(directory.clone()) {
            fs::create_dir(&directory)?;
        }
        let written = write(&place, code);
        match written {
            Ok(()) => {
                self.kept.files += 1;
                self.kept.bytes += bytes;
                Ok(true)
            }
            // Its source's name is as long as a name can be.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Ok(true),
            Err(error) => {
                // Half of it must not be imported.
                let _ = fs::remove_file(&place);
                Err(error)
            }
        }
    }

    /// Read-only, as everything in a package.
    fn seal(&self) -> io::Result<()> {
        self.directories.iter().try_for_each(|directory| {
            fs::set_permissions(
                directory,
                Permissions::from_mode(super::tree::SEALED_DIRECTORY),
            )
        })
    }
}

fn write(place: &Path, code: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(super::tree::OPEN_FILE)
        .open(place)?;
    file.write_all(code)?;
    file.set_permissions(Permissions::from_mode(super::tree::SEALED_FILE))
}

#[cfg(test)]
mod tests;
