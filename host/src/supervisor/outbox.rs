//! The host process's end of the socket to the server. Nothing here blocks: what the server does not take is queued, and a
//! server that takes nothing is given up.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};

use hearth_init::wire;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::HostProcessError;
use crate::protocol::{Malformed, REQUEST_BYTES, Reply, Request};

/// Most replies that wait for the server: it reads all the time, and this many mean that it hangs. Protects memory and
/// descriptors.
const QUEUED_MAX: usize = 4096;

/// See the module.
pub(super) struct Outbox {
    socket: OwnedFd,
    queued: VecDeque<(Reply, Vec<OwnedFd>)>,
    /// What happened when something could not be sent; nothing is sent any more then.
    failed: Option<HostProcessError>,
    hung_up: bool,
}

/// What came of looking for a request.
pub(super) enum Received {
    /// This, with its descriptors.
    Request(Request, Vec<OwnedFd>),
    /// Nothing for now.
    Nothing,
    /// The server is gone.
    End,
}

impl Outbox {
    /// Over this socket, which is made non-blocking.
    pub(super) fn new(socket: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket,
            queued: VecDeque::new(),
            failed: None,
            hung_up: false,
        })
    }

    /// Has this epoll say when there is something to read.
    pub(super) fn watch(&self, epoll: &OwnedFd, token: u64) -> rustix::io::Result<()> {
        epoll::add(
            epoll,
            &self.socket,
            EventData::new_u64(token),
            EventFlags::IN,
        )
    }

    /// Has this epoll say also when there is room to write, if something waits for that.
    pub(super) fn rewatch(&self, epoll: &OwnedFd, token: u64) -> rustix::io::Result<()> {
        if self.hung_up {
            return Ok(());
        }
        let flags = match self.queued.is_empty() {
            true => EventFlags::IN,
            false => EventFlags::IN | EventFlags::OUT,
        };
        epoll::modify(epoll, &self.socket, EventData::new_u64(token), flags)
    }

    /// Neither sends nor receives any more, and is taken out of this epoll.
    pub(super) fn hang_up(&mut self, epoll: &OwnedFd) {
        if !std::mem::replace(&mut self.hung_up, true) {
            self.queued.clear();
            // It would be readable for ever.
            let _ = epoll::delete(epoll, &self.socket);
        }
    }

    /// Whether something waits for room.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Sends a reply with its descriptors, or queues it.
    pub(super) fn send(&mut self, reply: Reply, fds: Vec<OwnedFd>) {
        if self.hung_up || self.failed.is_some() {
            return;
        }
        if self.queued.len() >= QUEUED_MAX {
            self.failed = Some(HostProcessError::Deaf);
            return;
        }
        self.queued.push_back((reply, fds));
        self.flush();
    }

    /// Sends what was queued, as far as there is room.
    pub(super) fn flush(&mut self) {
        while let Some((reply, fds)) = self.queued.front() {
            let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            match wire::send(&self.socket, &reply.encode(), &fds) {
                Ok(()) => drop(self.queued.pop_front()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // It is gone, which reading says, too.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.queued.clear();
                    return;
                }
                // Without memory, say: a reply would be lost.
                Err(error) => {
                    self.failed = Some(error.into());
                    return;
                }
            }
        }
    }

    /// What has gone wrong, once.
    pub(super) fn take_failure(&mut self) -> Option<HostProcessError> {
        self.failed.take()
    }

    /// Takes one request off the socket.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn receive(&mut self) -> Result<Received, HostProcessError> {
        // A byte more than there may be, so that a longer message is seen to be one.
        let mut bytes = [0; REQUEST_BYTES + 1];
        let (length, fds, were_more) = match wire::receive_some(&self.socket, &mut bytes) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Received::End),
            Err(error) => return Err(error.into()),
        };
        if length == 0 && fds.is_empty() {
            return Ok(Received::End);
        }
        let request = Request::decode(&bytes[..length])?;
        // None was free to receive one: that is no fault of the server's, and the request is refused.
        let is_short = fds.is_empty() && were_more;
        if fds.len() != request.descriptors() && !is_short {
            return Err(Malformed::Descriptors(fds.len()).into());
        }
        Ok(Received::Request(request, fds))
    }
}
