//! Filling the memory of a restored process from the file that was laid aside for it when the image was made
//! ([`aside`]).
//!
//! CRIU would have each page of a mapping cleared and looked up once more before it is read: nearly twice the work. PID 1
//! hands the kernel the pages with their content ([`uffd`](crate::uffd)). Where the kernel refuses that, it writes them as a
//! debugger would.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::imagefile::aside::{self, Contents};
use crate::inject::Stopped;
use crate::sys::MappedFile;

/// The files of an image with memory that was laid aside, within reach. Letting them go takes a moment.
#[derive(Debug)]
pub struct Fillings(Vec<Filling>);

#[derive(Debug)]
struct Filling {
    pid: i32,
    file: MappedFile,
    contents: Contents,
}

impl Fillings {
    /// Opens those that are in the directory `images`, and maps them, which takes a moment, too.
    pub fn open(images: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(images, flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut fillings = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let entry = entry?;
            if let Some(pid) = entry.file_name().to_str().ok().and_then(aside::pid) {
                let flags = flags | OFlags::NOFOLLOW;
                let file = rustix::fs::openat(&dir, entry.file_name(), flags, Mode::empty())?;
                fillings.push(Filling::open(pid, &File::from(file))?);
            }
        }
        Ok(Self(fillings))
    }

    /// Fills what belongs to this process.
    pub fn fill(&self, pid: Pid, process: &Stopped<'_>) -> io::Result<()> {
        let pid = pid.as_raw_nonzero().get();
        match self.0.iter().find(|filling| filling.pid == pid) {
            Some(filling) => filling.fill(process),
            None => Ok(()),
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
    fn open(pid: i32, file: &File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let page = rustix::param::page_size() as u64;
        Ok(Self {
            pid,
            file: MappedFile::new(file, size)?,
            contents: Contents::read(size, page, |buffer, at| file.read_exact_at(buffer, at))?,
        })
    }

    fn fill(&self, process: &Stopped<'_>) -> io::Result<()> {
        let mappings = &self.contents.mappings;
        let missing = process.missing_pages()?.filter(|missing| {
            let registered = |mapping| missing.register(mapping).is_ok();
            mappings.iter().all(registered)
        });
        let mut next = self.contents.begin;
        for run in &self.contents.runs {
            let bytes = next..next + (run.end - run.start);
            next = bytes.end;
            let filled = match &missing {
                Some(missing) => missing.fill(run.start, &self.file, bytes),
                // A kernel without it, or a rule against it: the slower way.
                None => process.write(run.start, &self.file, bytes),
            };
            filled.map_err(|error| io::Error::new(error.kind(), format!("{run:x?}: {error}")))?;
        }
        Ok(())
    }
}
