//! What a fork inherits of its template's descriptors without use: those that the interpreter had open before the function's
//! module was imported.
//!
//! A fork shares open files with its template and siblings. What is written into such a pipe or eventfd reaches threads
//! that only the template has (Node's, for delayed tasks), which would crash on garbage. So a child gets a file of its
//! own, of the same kind, under each of these numbers: code that uses the number finds what it expects, but no other
//! process.
//!
//! What the function's module opened while it was imported is the function's, and is shared as after any `fork`.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::sys;

/// What kind of file a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One end of a pipe; which of the noted pipes.
    Pipe(usize),
    Eventfd,
    Epoll,
    /// `/dev/null`.
    Null,
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    fd: RawFd,
    kind: Kind,
}

/// The interpreter's own descriptors.
#[derive(Debug, Default)]
pub struct Inherited {
    noted: Vec<Noted>,
    pipes: usize,
}

/// They as they are just before a fork.
#[derive(Debug)]
pub struct Shared<'a> {
    inherited: &'a Inherited,
    /// The inode of each, by which a child sees whether a library has renewed a pipe already.
    inodes: Vec<u64>,
}

impl Inherited {
    /// Notes what is open now. To be called before anything of the function's runs.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn note() -> io::Result<Self> {
        let mut inherited = Self::default();
        let mut pipes: Vec<String> = Vec::new();
        for entry in fs::read_dir("/proc/self/fd")? {
            let entry = entry?;
            // The one that reads the directory is gone by the time it is looked at, or is no kind that matters.
            let (Ok(link), Some(Ok(fd))) = (
                fs::read_link(entry.path()),
                entry.file_name().to_str().map(str::parse),
            ) else {
                continue;
            };
            let link = link.to_string_lossy().into_owned();
            let kind = match link.as_str() {
                "anon_inode:[eventfd]" => Kind::Eventfd,
                "anon_inode:[eventpoll]" => Kind::Epoll,
                "/dev/null" => Kind::Null,
                // A child's stdout and stderr are given to it.
                pipe if pipe.starts_with("pipe:") && fd > libc::STDERR_FILENO => {
                    let at = pipes.iter().position(|known| known == pipe);
                    Kind::Pipe(at.unwrap_or_else(|| {
                        pipes.push(link);
                        pipes.len() - 1
                    }))
                }
                _ => continue,
            };
            inherited.noted.push(Noted { fd, kind });
        }
        inherited.pipes = pipes.len();
        Ok(inherited)
    }

    /// In the template, just before a fork.
    #[must_use]
    pub fn before_fork(&self) -> Shared<'_> {
        let inode = |noted: &Noted| {
            borrow(noted.fd)
                .and_then(fstat)
                .map_or(0, |stat| stat.st_ino)
        };
        Shared {
            inherited: self,
            inodes: self.noted.iter().map(inode).collect(),
        }
    }
}

impl Shared<'_> {
    /// In a fresh child: puts a file of its own in the place of each that is still the template's.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn replace(&self) -> io::Result<()> {
        let mut pipes: Vec<Option<(OwnedFd, OwnedFd)>> = Vec::new();
        pipes.resize_with(self.inherited.pipes, || None);
        for (noted, inode) in self.inherited.noted.iter().zip(&self.inodes) {
            let Ok(fd) = borrow(noted.fd) else { continue };
            // Closed, or another file by now: the function's, or one that a library has renewed.
            if fstat(fd).map_or(true, |stat| stat.st_ino != *inode) {
                continue;
            }
            let status = fcntl_getfl(fd)?;
            let nonblocking = status.contains(OFlags::NONBLOCK);
            match noted.kind {
                Kind::Eventfd if is(noted.fd, "anon_inode:[eventfd]") => {
                    put(&eventfd(0, EventfdFlags::empty())?, fd, nonblocking)?;
                }
                Kind::Epoll if is(noted.fd, "anon_inode:[eventpoll]") => {
                    put(&epoll::create(epoll::CreateFlags::empty())?, fd, false)?;
                }
                Kind::Null if is(noted.fd, "/dev/null") => {
                    let access = status & OFlags::RWMODE;
                    put(&open("/dev/null", access, Mode::empty())?, fd, nonblocking)?;
                }
                Kind::Pipe(at) => {
                    let Some(place) = pipes.get_mut(at) else {
                        continue;
                    };
                    if place.is_none() {
                        *place = Some(pipe_with(PipeFlags::CLOEXEC)?);
                    }
                    let Some((read, write)) = place else { continue };
                    let reads = (status & OFlags::RWMODE) == OFlags::RDONLY;
                    put(if reads { read } else { write }, fd, nonblocking)?;
                }
                Kind::Eventfd | Kind::Epoll | Kind::Null => {}
            }
        }
        Ok(())
    }
}

/// Whether the descriptor leads there.
fn is(fd: RawFd, link: &str) -> bool {
    fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|found| found.as_os_str() == link)
}

/// Puts `new` under the number of `old`, which stays closed on exec if it was.
fn put(new: &OwnedFd, old: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    let closes = fcntl_getfd(old)?.contains(FdFlags::CLOEXEC);
    if nonblocking {
        fcntl_setfl(new, fcntl_getfl(new)? | OFlags::NONBLOCK)?;
    }
    sys::replace(new, old.as_raw_fd(), closes)
}

fn borrow(fd: RawFd) -> Result<BorrowedFd<'static>, Errno> {
    sys::borrow(fd).ok_or(Errno::BADF)
}
