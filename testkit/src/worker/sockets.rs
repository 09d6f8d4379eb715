//! Sockets and pipes between the server's side and the worker's.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};

/// Longest wait for anything: a hang fails the test instead of stopping the run.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn seqpacket() -> (OwnedFd, OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("socketpair")
}

/// A pipe: the end to read, which does not block, and the end to write.
pub(super) fn pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("pipe");
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK).expect("non-blocking");
    (read, write)
}

/// Reads what is there.
pub(super) fn drain(pipe: &File) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    // Ends with WouldBlock when the writer is still there.
    let _ = (&*pipe).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until `fd` can be read.
pub(super) fn wait_readable(fd: BorrowedFd<'_>, whom: &str) {
    let timeout = Timespec {
        tv_sec: TIMEOUT.as_secs() as i64,
        tv_nsec: 0,
    };
    let ready = poll(
        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
        Some(&timeout),
    )
    .expect("poll");
    assert!(ready > 0, "{whom} does not answer");
}
