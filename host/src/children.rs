//! Programs that were started.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Keeps the allocator from asking for huge pages ahead: a process that needs a few hundred KiB would have some of 2 MiB.
pub(crate) const NO_HUGE_PAGES: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// A descriptor of one that was not waited for yet.
pub(crate) fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Whether one ends within this time. Blocks until it has.
pub(crate) fn ends_within(child: &Child, time: Duration) -> io::Result<bool> {
    let pidfd = pidfd(child)?;
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| rustix::event::poll(&mut ended, Some(&time)))?;
    Ok(ready > 0)
}
