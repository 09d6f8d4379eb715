//! Filling the memory of a restored process from the file that was laid aside for it when the image was made
//! ([`aside`]).
//!
//! CRIU would have each page of a mapping cleared and looked up once more before it is read: nearly twice the work. PID 1
//! hands the kernel the pages with their content ([`uffd`](crate::uffd)). Where the kernel refuses that, it writes them as a
//! debugger would.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::imagefile::aside::{self, Contents};
use crate::inject::Stopped;
use crate::sys::MappedFile;

/// The files of an image with memory that was laid aside, opened.
#[derive(Debug, Default)]
pub struct Fillings(Vec<(i32, File)>);

impl Fillings {
    /// Opens `name` if it is one of them.
    pub fn add(&mut self, images: &OwnedFd, name: &str) -> io::Result<()> {
        if let Some(pid) = aside::pid(name) {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::openat(images, name, flags, Mode::empty())?;
            self.0.push((pid, File::from(file)));
        }
        Ok(())
    }

    /// Brings them within reach, which takes a moment.
    pub fn map(&self) -> io::Result<Mapped> {
        let page = rustix::param::page_size() as u64;
        let map = |(pid, file): &(i32, File)| {
            let size = file.metadata()?.len();
            Ok(Filling {
                pid: *pid,
                file: MappedFile::new(file, size)?,
                contents: Contents::read(size, page, |buffer, at| file.read_exact_at(buffer, at))?,
            })
        };
        Ok(Mapped(self.0.iter().map(map).collect::<io::Result<_>>()?))
    }
}

/// The same, in memory. Letting it go takes time, too.
#[derive(Debug)]
pub struct Mapped(Vec<Filling>);

#[derive(Debug)]
struct Filling {
    pid: i32,
    file: MappedFile,
    contents: Contents,
}

impl Mapped {
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
