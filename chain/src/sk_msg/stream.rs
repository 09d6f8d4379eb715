//! Whole records from and to a socket. Messages arrive joined to each other, and by TCP also in parts.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::descriptor::DESCRIPTOR_BYTES;
use crate::error::RecvError;

/// Bytes taken at once.
const SPACE: usize = 64 * DESCRIPTOR_BYTES;
/// A limit of the socket's that is that much shorter than what is left is lengthened: each change costs a system call.
const LENGTHEN: u32 = 8;

/// What became of sending.
pub(super) enum Sent {
    Yes,
    /// Too much is under way.
    Full,
    /// The target's socket, or this end, is closed.
    Gone,
    Failed(io::Error),
}

/// What came.
pub(super) enum Received {
    Some,
    Nothing,
    /// The other end is closed.
    End,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    /// The beginning of a record.
    part: Vec<u8>,
    /// How long the socket lets a receiver wait.
    limit: Duration,
}

impl Stream {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            part: Vec::new(),
            limit: Duration::ZERO,
        }
    }

    /// Sends a record, without waiting.
    pub(super) fn send(&self, [first, second]: [u64; 2]) -> Sent {
        let bytes = (u128::from(first) | u128::from(second) << 64).to_le_bytes();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            return match send(&self.socket, &bytes, flags) {
                Ok(DESCRIPTOR_BYTES) => Sent::Yes,
                Ok(sent) => Sent::Failed(io::Error::other(format!("{sent} bytes of a record"))),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Sent::Full,
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN | Errno::ACCESS) => Sent::Gone,
                Err(errno) => Sent::Failed(errno.into()),
            };
        }
    }

    /// Takes what has come; waits for it until the deadline, if there is one. It may return earlier.
    pub(super) fn receive(
        &mut self,
        into: &mut VecDeque<[u64; 2]>,
        deadline: Option<Instant>,
    ) -> Result<Received, RecvError> {
        let flags = match deadline {
            None => RecvFlags::DONTWAIT,
            Some(deadline) => match self.set_limit(deadline)? {
                true => RecvFlags::empty(),
                false => RecvFlags::DONTWAIT,
            },
        };
        let mut space = [0; SPACE];
        match recv(&self.socket, &mut space[..], flags) {
            Ok((0, _)) => Ok(Received::End),
            Ok((length, _)) => {
                self.take(&space[..length], into);
                Ok(Received::Some)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(Errno::CONNRESET | Errno::NOTCONN | Errno::PIPE) => Ok(Received::End),
            Err(errno) => Err(RecvError::Os {
                call: "recv",
                source: errno.into(),
            }),
        }
    }

    fn take(&mut self, mut bytes: &[u8], into: &mut VecDeque<[u64; 2]>) {
        if !self.part.is_empty() {
            let missing = (DESCRIPTOR_BYTES - self.part.len()).min(bytes.len());
            let (end, rest) = bytes.split_at(missing);
            self.part.extend_from_slice(end);
            bytes = rest;
            let Ok(whole) = self.part.as_slice().try_into() else {
                return;
            };
            into.push_back(words(whole));
            self.part.clear();
        }
        let (records, part) = bytes.as_chunks();
        into.extend(records.iter().map(|record| words(*record)));
        self.part.extend_from_slice(part);
    }

    /// Lets the socket wait until the deadline at most. `false`: it has passed.
    fn set_limit(&mut self, deadline: Instant) -> Result<bool, RecvError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        // Less than a clock tick would be none.
        let left = left.max(Duration::from_millis(1));
        if left < self.limit || left / LENGTHEN > self.limit {
            // Half of it, so that the next waits until the same deadline need no other; the last ones wait in steps.
            let limit = (left / 2).max(Duration::from_millis(1));
            let set = set_socket_timeout(&self.socket, Timeout::Recv, Some(limit));
            set.map_err(|errno| RecvError::Os {
                call: "setsockopt(SO_RCVTIMEO)",
                source: errno.into(),
            })?;
            self.limit = limit;
        }
        Ok(true)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn words(record: [u8; DESCRIPTOR_BYTES]) -> [u64; 2] {
    let both = u128::from_le_bytes(record);
    [both as u64, (both >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_whole_wherever_they_are_cut() {
        let all: Vec<u8> = (0..48).collect();
        let expected: Vec<[u64; 2]> = all
            .as_chunks()
            .0
            .iter()
            .map(|record| words(*record))
            .collect();
        for first in 0..=48 {
            for second in first..=48 {
                let socket = std::fs::File::open("/dev/null").expect("there").into();
                let mut stream = Stream::new(socket);
                let mut taken = VecDeque::new();
                for part in [&all[..first], &all[first..second], &all[second..]] {
                    stream.take(part, &mut taken);
                }
                assert_eq!(taken, expected, "{first} {second}");
                assert!(stream.part.is_empty());
            }
        }
    }
}
