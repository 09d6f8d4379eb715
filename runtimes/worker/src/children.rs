//! The template's live children.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::message::End;
use crate::sys::{self, ChildSignal};

/// Children that were forked and not yet reaped. A function may have children of its own in the template (a subprocess
/// started during the import): those are left alone.
pub struct Children {
    live: Vec<Pid>,
    bell: OwnedFd,
    before: ChildSignal,
}

impl Children {
    /// Starts watching. At most one of these may be alive.
    ///
    /// # Errors
    /// The kernel refused the eventfd or the signal handler.
    pub fn watch() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let before = sys::watch_children(bell.as_raw_fd())?;
        Ok(Self {
            live: Vec::new(),
            bell,
            before,
        })
    }

    /// Readable when a child may have ended.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Whether none is left.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.live.is_empty()
    }

    /// Counts a new child in.
    pub fn add(&mut self, pid: Pid) {
        self.live.push(pid);
    }

    /// Reaps every child that exited and calls `report` for each.
    pub fn reap(&mut self, mut report: impl FnMut(Pid, End)) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.live
            .retain(|&pid| match waitpid(Some(pid), WaitOptions::NOHANG) {
                Ok(None) => true,
                Ok(Some((_, status))) => {
                    let end = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => End::Code(code),
                        (None, signal) => End::Signal(signal.unwrap_or_default()),
                    };
                    report(pid, end);
                    false
                }
                // Reaped elsewhere (`os.wait` in a thread of the function): its exit status is lost.
                Err(_) => {
                    report(pid, End::Code(-1));
                    false
                }
            });
    }
}

impl Drop for Children {
    /// In a forked child, too, SIGCHLD is the function's again: what is listed here are its siblings.
    fn drop(&mut self) {
        self.before.restore();
    }
}
