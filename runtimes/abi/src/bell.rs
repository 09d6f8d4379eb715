//! The doorbell: a descriptor that one side rings and the other sleeps on.
//!
//! Ringing increments, sleeping drains: any number of rings wake once. A bell carries no information, so the woken side
//! checks its rings, and a spurious bell costs one check.
//!
//! There are two kinds, with the same code on both ends:
//! - [`Bell::new`], an eventfd: one open file, shared by both sides.
//! - [`Bell::pair`], a pipe: an open file for each side.
//!
//! **The host uses pairs towards a worker.** `O_NONBLOCK` belongs to the open file. A hostile worker that shares the
//! eventfd can clear the flag and fill the counter, and the host's next ring would block in `write` forever; no
//! per-call flag prevents that for an eventfd. Of a pair the worker holds only its own end, and the host's end stays
//! non-blocking whatever the worker does. A pair also detects that the peer is gone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::AbiError;

/// What one ring writes: an eventfd takes exactly eight bytes.
const RING: [u8; 8] = 1u64.to_ne_bytes();

/// Bytes taken at once. An eventfd gives eight; a pipe gives what is there, normally one ring.
const DRAIN_BYTES: usize = 512;

/// One end of a doorbell, non-blocking unless it is [for sleeping](Bell::for_sleeping).
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
    /// [`Bell::wait`] sleeps in `read` itself.
    for_sleeping: bool,
}

impl Bell {
    /// A bell for both sides: an eventfd. Only between sides that trust each other; see the module's text.
    ///
    /// # Errors
    /// The system refuses the descriptor.
    pub fn new() -> Result<Self, AbiError> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        fd.map(Self::from)
            .map_err(|errno| AbiError::os("eventfd", errno))
    }

    /// A bell of two ends, which share no state that one side could turn against the other: the first end is for
    /// ringing, the second for sleeping.
    ///
    /// # Errors
    /// The system refuses the descriptors.
    pub fn pair() -> Result<(Self, Self), AbiError> {
        let ends = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        ends.map(|(sleep, ring)| (Self::from(ring), Self::from(sleep)))
            .map_err(|errno| AbiError::os("pipe2", errno))
    }

    /// Wakes the side that sleeps on this bell, now or when it next tries to. Never blocks, provided that no hostile side
    /// shares the open file.
    ///
    /// # Errors
    /// [`AbiError::PeerGone`] if the other end of a pair is closed.
    pub fn ring(&self) -> Result<(), AbiError> {
        match retry_on_intr(|| write(&self.fd, &RING)) {
            // Full: it rings already.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(Errno::PIPE) => Err(AbiError::PeerGone),
            Err(errno) => Err(AbiError::os("write to a bell", errno)),
        }
    }

    /// Takes the rings so far, without blocking; whether there were any. For a side that waits for readiness by
    /// other means, such as epoll.
    ///
    /// # Errors
    /// [`AbiError::PeerGone`] if the other end of a pair is closed and all rings are taken.
    pub fn drain(&self) -> Result<bool, AbiError> {
        let mut taken = [0; DRAIN_BYTES];
        match retry_on_intr(|| read(&self.fd, &mut taken)) {
            Ok(0) => Err(AbiError::PeerGone),
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(AbiError::os("read from a bell", errno)),
        }
    }

    /// The same end, made to sleep in `read` itself: one system call for each sleep instead of two. For the end of a pair
    /// on which its holder does nothing but [`Bell::wait`]: [`Bell::drain`] would sleep as well.
    ///
    /// # Errors
    /// The system refuses.
    pub fn for_sleeping(self) -> Result<Self, AbiError> {
        let blocking = || {
            let flags = fcntl_getfl(&self.fd)?;
            fcntl_setfl(&self.fd, flags - OFlags::NONBLOCK)
        };
        blocking().map_err(|errno| AbiError::os("fcntl", errno))?;
        Ok(Self {
            for_sleeping: true,
            ..self
        })
    }

    /// Sleeps until the bell rings, and takes the rings. Signals do not end the sleep.
    ///
    /// # Errors
    /// [`AbiError::PeerGone`] if the other end of a pair is closed.
    pub fn wait(&self) -> Result<(), AbiError> {
        loop {
            if !self.for_sleeping {
                let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
                retry_on_intr(|| poll(&mut fds, None))
                    .map_err(|errno| AbiError::os("poll", errno))?;
            }
            if self.drain()? {
                return Ok(());
            }
        }
    }
}

impl From<OwnedFd> for Bell {
    fn from(fd: OwnedFd) -> Self {
        Self {
            fd,
            for_sleeping: false,
        }
    }
}

impl From<Bell> for OwnedFd {
    fn from(bell: Bell) -> Self {
        bell.fd
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_rings_wakes_once() {
        let bell = Bell::new().expect("an eventfd");
        let other = Bell::from(bell.as_fd().try_clone_to_owned().expect("a descriptor"));
        let (ring, sleep) = Bell::pair().expect("a pair");
        for (ring, sleep) in [(&bell, &other), (&ring, &sleep)] {
            assert!(!sleep.drain().expect("open"));
            (0..3).for_each(|_| ring.ring().expect("open"));
            sleep.wait().expect("open");
            assert!(!sleep.drain().expect("open"));
        }
    }

    #[test]
    fn a_worker_cannot_make_the_host_block_with_its_end_of_a_pair() {
        let (ring, sleep) = Bell::pair().expect("a pair");
        fcntl_setfl(&sleep, OFlags::empty()).expect("its own flags");
        // Nobody drains the pipe, and it fills up.
        (0..50_000).for_each(|_| ring.ring().expect("a full bell rings"));
        sleep.wait().expect("it rings");
    }

    #[test]
    fn an_end_for_sleeping_sleeps_until_it_is_rung() {
        let (ring, sleep) = Bell::pair().expect("a pair");
        let sleep = sleep.for_sleeping().expect("flags");
        std::thread::scope(|scope| {
            let woken = scope.spawn(|| sleep.wait());
            ring.ring().expect("open");
            assert!(woken.join().expect("no panic").is_ok());
            let woken = scope.spawn(|| sleep.wait());
            drop(ring);
            let ended = woken.join().expect("no panic");
            assert!(matches!(ended, Err(AbiError::PeerGone)));
        });
    }

    #[test]
    fn an_end_notices_that_the_other_is_gone() {
        let (ring, sleep) = Bell::pair().expect("a pair");
        drop(sleep);
        assert!(matches!(ring.ring(), Err(AbiError::PeerGone)));
        let (ring, sleep) = Bell::pair().expect("a pair");
        ring.ring().expect("open");
        drop(ring);
        sleep.wait().expect("the earlier rings");
        assert!(matches!(sleep.wait(), Err(AbiError::PeerGone)));
    }
}
