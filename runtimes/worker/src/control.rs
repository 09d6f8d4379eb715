//! The template's control socket: datagrams from the server, with descriptors, and reports back.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

use crate::message::{self, START_BYTES, Way};
use crate::parts::{FORK_DESCRIPTORS, Parts};
use crate::sys;

/// Longest message without descriptors: a configuration holds a handful of short settings, a report of an import the
/// error that a runtime cuts to less than this.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// The control socket failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The inherited descriptor cannot be used.
    #[error("no control socket on descriptor {fd}: {source}")]
    Adopt {
        /// Its number.
        fd: RawFd,
        /// What the kernel said.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("cannot receive from the server: {0}")]
    Receive(io::Error),
    /// Sending failed.
    #[error("cannot report to the server: {0}")]
    Send(io::Error),
    /// Children cannot be watched.
    #[error("cannot watch for children: {0}")]
    Watch(io::Error),
    /// A message is longer than any can be.
    #[error("a message of more than {MESSAGE_BYTES_MAX} bytes")]
    MessageTooLong,
    /// A message that is neither the configuration nor a command.
    #[error("an unknown command of {0} bytes")]
    UnknownCommand(usize),
}

/// What the server asks for.
pub enum Command {
    /// A new instance. There are as many descriptors as arrived, which may be fewer than were sent when this process
    /// has too many open.
    Start {
        /// How.
        way: Way,
        /// The server's number for it.
        sequence: u64,
        /// What came along.
        descriptors: Vec<OwnedFd>,
    },
    /// The server closed its end.
    Close,
}

/// The socket.
pub struct Control(OwnedFd);

impl Control {
    /// Takes over the inherited descriptor.
    ///
    /// # Errors
    /// It is not open.
    pub fn adopt(fd: RawFd) -> Result<Self, ControlError> {
        sys::adopt(fd)
            .map(Self)
            .map_err(|source| ControlError::Adopt { fd, source })
    }

    /// Waits for a message that brings no descriptors; nothing when the peer is gone.
    ///
    /// # Errors
    /// Receiving failed or the message is too long.
    pub fn receive_message(&self) -> Result<Option<Vec<u8>>, ControlError> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (read, full) =
            match retry_on_intr(|| recv(&self.0, buffer.as_mut_slice(), RecvFlags::TRUNC)) {
                Ok(received) => received,
                Err(Errno::CONNRESET) => return Ok(None),
                Err(errno) => return Err(ControlError::Receive(errno.into())),
            };
        if full > read {
            return Err(ControlError::MessageTooLong);
        }
        buffer.truncate(read);
        Ok(Some(buffer).filter(|buffer| !buffer.is_empty()))
    }

    /// Takes the next command, if there is one.
    ///
    /// # Errors
    /// Receiving failed, or it is no command.
    pub fn try_receive(&self) -> Result<Option<Command>, ControlError> {
        // One byte more than a command has, to see that a message is longer.
        let mut buffer = [0; START_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FORK_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = loop {
            match recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut ancillary,
                flags,
            ) {
                Ok(received) => break received,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::CONNRESET) => return Ok(Some(Command::Close)),
                Err(errno) => return Err(ControlError::Receive(errno.into())),
            }
        };
        let mut descriptors = Vec::with_capacity(FORK_DESCRIPTORS);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Ok(Some(Command::Close));
        }
        let message = &buffer[..received.bytes.min(buffer.len())];
        let truncated = received.flags.contains(ReturnFlags::TRUNC);
        match message::parse_start(message).filter(|_| !truncated) {
            Some((way, sequence)) => Ok(Some(Command::Start {
                way,
                sequence,
                descriptors,
            })),
            None => Err(ControlError::UnknownCommand(received.bytes)),
        }
    }

    /// Sends one report. Waits while the server's queue is full.
    ///
    /// # Errors
    /// The server is gone, or the report is longer than a datagram.
    pub fn send(&self, report: &[u8]) -> Result<(), ControlError> {
        retry_on_intr(|| send(&self.0, report, SendFlags::NOSIGNAL))
            .map(drop)
            .map_err(|errno| ControlError::Send(errno.into()))
    }

    /// Asks a pre-booted process to become an instance, for a template that cannot fork.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn send_become(&self, sequence: u64, parts: &Parts) -> Result<(), ControlError> {
        let descriptors = parts.descriptors();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FORK_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let message = message::start(Way::Become, sequence);
        retry_on_intr(|| {
            sendmsg(
                &self.0,
                &[IoSlice::new(&message)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )
        })
        .map(drop)
        .map_err(|errno| ControlError::Send(errno.into()))
    }
}

impl From<OwnedFd> for Control {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
