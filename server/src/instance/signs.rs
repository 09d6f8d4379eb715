//! Polls an instance's descriptors, twice per invocation: whether it has printed something and whether it is still
//! running.
//!
//! They are in an epoll set of their own, which is polled without waiting. The kernel keeps the ready list, so the
//! usual answer, none, costs little more than the system call; poll(2) would check each descriptor, which takes two to
//! three times as long.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};

/// The descriptors, as numbered in their events.
const STDOUT: u64 = 0;
const STDERR: u64 = 1;
const PROCESS: u64 = 2;
/// Number of them.
const SIGNS: usize = 3;

/// The epoll set.
#[derive(Debug)]
pub(super) struct Signs(OwnedFd);

/// State of the descriptors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether standard output and error may have something to read, including their end.
    pub(super) written: [bool; 2],
    /// Whether the process has ended.
    pub(super) ended: bool,
}

impl Signs {
    /// Watches the read ends of the two pipes; the process is not known yet.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub(super) fn of(stdout: impl AsFd, stderr: impl AsFd) -> std::io::Result<Self> {
        let signs = Self(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        signs.add(stdout, STDOUT)?;
        signs.add(stderr, STDERR)?;
        Ok(signs)
    }

    /// The process is this one. A pidfd becomes readable when its process ends.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn add_process(&self, pidfd: impl AsFd) -> std::io::Result<()> {
        self.add(pidfd, PROCESS)
    }

    fn add(&self, fd: impl AsFd, sign: u64) -> std::io::Result<()> {
        let data = epoll::EventData::new_u64(sign);
        Ok(epoll::add(&self.0, fd, data, epoll::EventFlags::IN)?)
    }

    /// Polls without waiting. If polling fails, assumes that there is something to read and that the process runs.
    pub(super) fn look(&self) -> Seen {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; SIGNS];
        let Ok((events, _)) = epoll::wait(&self.0, &mut events, Some(&Timespec::default())) else {
            return Seen {
                written: [true; 2],
                ended: false,
            };
        };
        let mut seen = Seen::default();
        for event in events {
            match event.data.u64() {
                PROCESS => seen.ended = true,
                STDOUT => seen.written[0] = true,
                _ => seen.written[1] = true,
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn each_descriptor_is_told_apart_and_what_was_read_is_no_sign_any_more() {
        let (stdout, print) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let (stderr, warn) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let signs = Signs::of(&stdout, &stderr).expect("signs");
        assert_eq!(signs.look(), Seen::default());
        rustix::io::write(&warn, b"beware").expect("room");
        let warned = Seen {
            written: [false, true],
            ended: false,
        };
        assert_eq!(signs.look(), warned);
        assert_eq!(signs.look(), warned, "as long as nobody reads it");
        rustix::io::read(&stderr, &mut [0; 16]).expect("bytes");
        assert_eq!(signs.look(), Seen::default());
        drop(print);
        assert_eq!(
            signs.look().written,
            [true, false],
            "its end is for reading"
        );
    }

    #[test]
    fn the_end_of_the_process_is_seen_beside_what_it_wrote() {
        let (stdout, print) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let (stderr, warn) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let signs = Signs::of(&stdout, &stderr).expect("signs");
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a process");
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("a pidfd");
        signs.add_process(&pidfd).expect("room");
        for pipe in [&print, &warn] {
            rustix::io::write(pipe, b"a line").expect("room");
        }
        assert!(!signs.look().ended);
        drop(child.stdin.take());
        child.wait().expect("its end");
        let all = Seen {
            written: [true; 2],
            ended: true,
        };
        assert_eq!(signs.look(), all);
    }
}
