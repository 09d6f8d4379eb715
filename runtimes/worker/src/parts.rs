//! The descriptors of a START message, and what a fresh instance does with them first.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{getpid, set_child_subreaper};
use rustix::stdio::{dup2_stderr, dup2_stdout};

/// How many there are.
pub const FORK_DESCRIPTORS: usize = 6;

/// The descriptors of a START message. Their order in the message is that of the fields.
#[derive(Debug)]
pub struct Parts {
    /// The memfd of the channel.
    pub channel: OwnedFd,
    /// The bell that the worker sleeps on.
    pub worker_bell: OwnedFd,
    /// The bell that wakes the server.
    pub host_bell: OwnedFd,
    /// Where READY goes. Held open as long as the instance lives, so that the server notices its exit.
    pub ready: OwnedFd,
    /// The pipe that becomes the child's stdout.
    pub stdout: OwnedFd,
    /// The pipe that becomes the child's stderr.
    pub stderr: OwnedFd,
}

impl TryFrom<Vec<OwnedFd>> for Parts {
    /// How many there were.
    type Error = usize;

    fn try_from(descriptors: Vec<OwnedFd>) -> Result<Self, usize> {
        let descriptors: [OwnedFd; FORK_DESCRIPTORS] = descriptors
            .try_into()
            .map_err(|descriptors: Vec<_>| descriptors.len())?;
        let [channel, worker_bell, host_bell, ready, stdout, stderr] = descriptors;
        Ok(Self {
            channel,
            worker_bell,
            host_bell,
            ready,
            stdout,
            stderr,
        })
    }
}

impl Parts {
    /// The descriptors in the order of the message.
    #[must_use]
    pub fn descriptors(&self) -> [BorrowedFd<'_>; FORK_DESCRIPTORS] {
        [
            self.channel.as_fd(),
            self.worker_bell.as_fd(),
            self.host_bell.as_fd(),
            self.ready.as_fd(),
            self.stdout.as_fd(),
            self.stderr.as_fd(),
        ]
    }

    /// Whether a request already waits for the instance: GO has arrived.
    #[must_use]
    pub fn are_wanted(&self) -> bool {
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        // The child finds out what else there may be.
        recv(&self.ready, &mut [0_u8; 1][..], peek) != Err(Errno::AGAIN)
    }

    /// In a fresh instance: makes the pipes its stdout and stderr, and the instance the parent of what its own children leave
    /// behind, so that a killed instance's processes can be found.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn take_streams(&self) -> io::Result<()> {
        dup2_stdout(&self.stdout)?;
        dup2_stderr(&self.stderr)?;
        // Any process id switches it on.
        set_child_subreaper(Some(getpid()))?;
        Ok(())
    }
}
