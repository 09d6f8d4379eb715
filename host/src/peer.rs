//! One process's end of a socket to another, which may be hostile. Nothing here blocks: what the other one does not take is
//! queued, and one that takes nothing is given up.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::os::fd::{AsFd as _, OwnedFd};

use hearth_init::wire;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::protocol::{Malformed, Message};

/// Most messages that wait for the other one: it reads all the time, and this many mean that it hangs. Protects memory and
/// descriptors.
const QUEUED_MAX: usize = 4096;

/// Why a process is not talked to any more.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It has said something that it never says.
    #[error("sent a malformed message: {0}")]
    Malformed(#[from] Malformed),
    /// It does not read.
    #[error("does not read its messages")]
    Deaf,
    /// The kernel refused.
    #[error("cannot be reached: {0}")]
    Kernel(#[from] io::Error),
}

/// A process that takes messages `O` and sends messages `I`. See the module.
pub struct Peer<O, I> {
    socket: OwnedFd,
    /// Its name in an epoll.
    token: u64,
    queued: VecDeque<(O, Vec<OwnedFd>)>,
    /// The epoll says also when there is room to write.
    waits_for_room: bool,
    /// What happened when something could not be sent; nothing is sent any more then.
    failed: Option<PeerError>,
    hung_up: bool,
    receives: PhantomData<fn() -> I>,
}

/// What came of looking for a message.
pub enum Received<I> {
    /// This, with its descriptors: fewer than it needs where none was free for them.
    Message(I, Vec<OwnedFd>),
    /// Nothing for now.
    Nothing,
    /// The other process is gone.
    End,
}

impl<O: Message, I: Message> Peer<O, I> {
    /// Over this socket, which is made non-blocking. This epoll says by this token when there is something to do.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(socket: OwnedFd, epoll: &OwnedFd, token: u64) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        epoll::add(epoll, &socket, EventData::new_u64(token), EventFlags::IN)?;
        Ok(Self {
            socket,
            token,
            queued: VecDeque::new(),
            waits_for_room: false,
            failed: None,
            hung_up: false,
            receives: PhantomData,
        })
    }

    /// To be called before each wait: has the epoll say when there is room to write, if something waits for that.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn rewatch(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        let waits = !self.queued.is_empty();
        if self.hung_up || waits == self.waits_for_room {
            return Ok(());
        }
        self.waits_for_room = waits;
        let flags = match waits {
            true => EventFlags::IN | EventFlags::OUT,
            false => EventFlags::IN,
        };
        Ok(epoll::modify(
            epoll,
            &self.socket,
            EventData::new_u64(self.token),
            flags,
        )?)
    }

    /// Neither sends nor receives any more, and is taken out of this epoll.
    pub fn hang_up(&mut self, epoll: &OwnedFd) {
        if !std::mem::replace(&mut self.hung_up, true) {
            self.queued.clear();
            // It would be readable for ever.
            let _ = epoll::delete(epoll, &self.socket);
        }
    }

    /// Sends a message with its descriptors, or queues it.
    pub fn send(&mut self, message: O, fds: Vec<OwnedFd>) {
        if self.hung_up || self.failed.is_some() {
            return;
        }
        if self.queued.len() >= QUEUED_MAX {
            self.failed = Some(PeerError::Deaf);
            return;
        }
        self.queued.push_back((message, fds));
        self.flush();
    }

    /// Sends what was queued, as far as there is room.
    pub fn flush(&mut self) {
        while let Some((message, fds)) = self.queued.front() {
            let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            match wire::send(&self.socket, &message.encode(), &fds) {
                Ok(()) => drop(self.queued.pop_front()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // It is gone, which reading says, too.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.queued.clear();
                    return;
                }
                // Without memory, say: a message would be lost.
                Err(error) => {
                    self.failed = Some(error.into());
                    return;
                }
            }
        }
    }

    /// What has gone wrong, once.
    pub fn take_failure(&mut self) -> Option<PeerError> {
        self.failed.take()
    }

    /// Takes one message off the socket.
    ///
    /// # Errors
    /// When it is none.
    pub fn receive(&mut self) -> Result<Received<I>, PeerError> {
        // A byte more than there may be, so that a longer message is seen to be one.
        let mut bytes = vec![0; I::BYTES + 1];
        let (length, fds, were_more) = match wire::receive_some(&self.socket, &mut bytes) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Received::End),
            Err(error) => return Err(error.into()),
        };
        if length == 0 && fds.is_empty() {
            return Ok(Received::End);
        }
        let message = I::decode(&bytes[..length])?;
        // None was free to receive one: that is no fault of the other's, and the request is refused.
        let is_short = fds.len() < message.descriptors() && were_more;
        if fds.len() != message.descriptors() && !is_short {
            return Err(Malformed::Descriptors(fds.len()).into());
        }
        Ok(Received::Message(message, fds))
    }
}
