//! Filling the memory of a restored process with large pages, from the file that was laid aside for it when the image was
//! made ([`huge`]).
//!
//! CRIU asks for large pages only when memory is filled already, and a process can be advised only by itself. So PID 1
//! has the stopped process ask for them and then writes what belongs there: a fault for each 2 MiB in place of one for
//! each 4 KiB. The advice is taken back in the end: what the process does with that memory later shall cost what it costs
//! in one that was booted.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::imagefile::huge;
use crate::inject::Stopped;
use crate::sys::MappedFile;

/// The files of an image with large pages, opened.
#[derive(Debug, Default)]
pub struct Fillings(Vec<(i32, File)>);

impl Fillings {
    /// Opens `name` if it is one of them.
    pub fn add(&mut self, images: &OwnedFd, name: &str) -> io::Result<()> {
        if let Some(pid) = huge::pid(name) {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::openat(images, name, flags, Mode::empty())?;
            self.0.push((pid, File::from(file)));
        }
        Ok(())
    }

    /// Brings them within reach, which takes a moment.
    pub fn map(self) -> io::Result<Mapped> {
        let map = |(pid, file): (i32, File)| {
            let size = file.metadata()?.len();
            let parts = huge::contents(size, |buffer, at| file.read_exact_at(buffer, at))?;
            Ok(Filling {
                pid,
                file: MappedFile::new(&file, size)?,
                parts,
            })
        };
        Ok(Mapped(
            self.0.into_iter().map(map).collect::<io::Result<_>>()?,
        ))
    }
}

/// The same, in memory. Letting it go takes time, too.
#[derive(Debug)]
pub struct Mapped(Vec<Filling>);

#[derive(Debug)]
struct Filling {
    pid: i32,
    file: MappedFile,
    /// Addresses of the process, and where in the file their content begins.
    parts: Vec<(Range<u64>, u64)>,
}

impl Mapped {
    /// Fills what belongs to this process.
    pub fn fill(&self, pid: Pid, process: &Stopped<'_>) -> io::Result<()> {
        let pid = pid.as_raw_nonzero().get();
        let Some(filling) = self.0.iter().find(|filling| filling.pid == pid) else {
            return Ok(());
        };
        for (range, begin) in &filling.parts {
            // A kernel without large pages fills small ones.
            let _ = process.advise(range, libc::MADV_HUGEPAGE);
            process.write(
                range.start,
                &filling.file,
                *begin..begin + (range.end - range.start),
            )?;
            let _ = process.advise(range, libc::MADV_NOHUGEPAGE);
        }
        Ok(())
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
