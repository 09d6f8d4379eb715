//! An instance's end of its channel: receive a request, answer it. Every call blocks the thread.

mod answer;
mod error;

use std::os::fd::{AsFd, OwnedFd};

use hearth_abi::time_slice::take_short_time_slices;
use hearth_abi::{AbiError, Bell, Blocking, Kind, Region, RequestHead, Trigger};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub use self::error::ChannelError;
use crate::chain::{CallError, ChainMember};
use crate::message;
use crate::owner::Owner;
use crate::parts::Parts;

/// Buffers larger than this are given back: an idle instance keeps little memory.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// What begins a request.
#[derive(Debug)]
pub struct Head {
    /// Deadline and trigger.
    pub head: RequestHead,
    /// W3C trace context, if the caller sent one.
    pub traceparent: Option<String>,
}

/// One instance's channel.
#[derive(Debug)]
pub struct Channel {
    blocking: Blocking,
    /// Held open as long as the instance lives, so that the server notices its exit.
    ready: OwnedFd,
    /// Whether GO has come.
    wanted: bool,
    /// Whether READY was said.
    is_ready: bool,
    /// The instance. A process that a handler forks has a copy of the channel and must not use it.
    owner: Owner,
    /// The request being served.
    id: [u8; 16],
    event: Vec<u8>,
    body: Vec<u8>,
    /// Whether the payloads of a chain's requests stay in their blocks; if nothing is said, that is for the chain's settings.
    in_place: Option<bool>,
    /// Where requests come from instead of the server, once it is a member of a chain.
    chain: Option<Box<ChainMember>>,
}

impl Channel {
    /// In the child: maps the channel.
    ///
    /// # Errors
    /// It is no channel of this version.
    pub fn open(parts: Parts) -> Result<Self, ChannelError> {
        let region = Region::attach(parts.channel.as_fd())?;
        // Where the kernel does not let it, it works all the same.
        let _ = take_short_time_slices();
        Ok(Self {
            blocking: Blocking::new(
                region.worker(),
                Bell::from(parts.worker_bell).for_sleeping()?,
                Bell::from(parts.host_bell),
            ),
            ready: parts.ready,
            wanted: false,
            is_ready: false,
            owner: Owner::this_process(),
            id: [0; 16],
            event: Vec::new(),
            body: Vec::new(),
            in_place: None,
            chain: None,
        })
    }

    /// The instance's process id, as it sees it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.owner.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the server wants this instance now, that is, GO is readable on the ready socket. Otherwise it is a
    /// pre-forked instance, which may prepare as long as that has no visible effect. If something is left for when it is
    /// wanted, it waits ([`Self::wait_until_wanted`]); if not, it is [ready](Self::ready). One that the server has dropped
    /// already learns that from either wait.
    ///
    /// # Errors
    /// The server said something else.
    pub fn is_wanted(&mut self) -> Result<bool, ChannelError> {
        match self.receive_byte(RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => Ok(false),
            other => self.understand(other),
        }
    }

    /// Says WAITING and waits for GO; false if the server is gone or drops this pre-forked instance.
    ///
    /// # Errors
    /// The server said something else.
    pub fn wait_until_wanted(&mut self) -> Result<bool, ChannelError> {
        if self.wanted {
            return Ok(true);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // A server that is gone is received of next.
        let _ = retry_on_intr(|| send(&self.ready, &[message::WAITING], flags));
        let received = self.receive_byte(RecvFlags::empty());
        self.understand(received)
    }

    /// Receives one message at the ready socket; how many bytes it had, GO being one.
    fn receive_byte(&self, flags: RecvFlags) -> rustix::io::Result<usize> {
        let mut message = [0; 2];
        let (length, _) = retry_on_intr(|| recv(&self.ready, &mut message[..], flags))?;
        if length == 1 && message[0] != message::GO {
            return Err(Errno::PROTO);
        }
        Ok(length)
    }

    fn understand(&mut self, received: rustix::io::Result<usize>) -> Result<bool, ChannelError> {
        match received {
            Ok(1) => {
                self.wanted = true;
                Ok(true)
            }
            // The server's end is closed.
            Ok(0) | Err(Errno::CONNRESET) => Ok(false),
            Ok(_) => Err(ChannelError::Go(Errno::PROTO.into())),
            Err(errno) => Err(ChannelError::Go(errno.into())),
        }
    }

    /// The chain that this instance is a member of, and the socket on which it hears of its peers.
    ///
    /// # Errors
    /// It is no member of a chain, or this is another process than the instance.
    pub fn chain(&mut self) -> Result<(&mut ChainMember, &OwnedFd), CallError> {
        if !self.owner.is_here() {
            return Err(CallError::NoRequest);
        }
        let chain = self.chain.as_deref_mut().ok_or(CallError::NoRequest)?;
        Ok((chain, &self.ready))
    }

    /// Whether payloads of a chain's requests stay in their blocks ([`ChainMember::block`]), whatever the chain's settings say.
    /// [`Channel::event`] is empty for these.
    pub fn leave_in_place(&mut self, in_place: bool) {
        self.in_place = Some(in_place);
    }

    /// Sends READY: this instance can take a request. A server that has given the start up is noticed by
    /// [`Self::receive`].
    ///
    /// # Errors
    /// It could not be sent.
    pub fn ready(&mut self) -> Result<(), ChannelError> {
        let message = message::ready(self.pid());
        match retry_on_intr(|| send(&self.ready, &message, SendFlags::NOSIGNAL)) {
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(errno) => return Err(ChannelError::Ready(errno.into())),
        }
        self.is_ready = true;
        Ok(())
    }

    /// Whether [`Self::ready`] was called.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Reads one request to its end; nothing when the server is gone. Event and body are then [`Channel::event`] and
    /// [`Channel::body`], until [`Channel::forget_request`].
    ///
    /// # Errors
    /// The channel broke.
    pub fn receive(&mut self) -> Result<Option<Head>, ChannelError> {
        if self.chain.is_none() {
            match self.receive_request() {
                Err(ChannelError::Abi(AbiError::PeerGone)) => return Ok(None),
                Err(error) => return Err(error),
                Ok(Some(head)) => return Ok(Some(head)),
                Ok(None) => self.chain = ChainMember::join(&self.ready)?.map(Box::new),
            }
        }
        self.receive_of_chain()
    }

    fn receive_of_chain(&mut self) -> Result<Option<Head>, ChannelError> {
        // Without one, the server went before it was said which.
        let Some(chain) = &mut self.chain else {
            return Ok(None);
        };
        let in_place = self.in_place.unwrap_or(chain.is_in_place());
        let event = (!in_place).then_some(&mut self.event);
        let request = chain.receive(&self.ready, event)?;
        Ok(request.map(|request| {
            self.id = request.id;
            Head {
                head: request.head,
                traceparent: request.traceparent,
            }
        }))
    }

    /// The invocation's id.
    #[must_use]
    pub fn id(&self) -> &[u8; 16] {
        &self.id
    }

    /// The event of the request received last, JSON text that the server has parsed.
    #[must_use]
    pub fn event(&self) -> &[u8] {
        &self.event
    }

    /// The body of the HTTP request received last.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Frees the buffers of event and body if they are large. The handler has its own copies, and theirs would count against
    /// the function's memory.
    pub fn forget_request(&mut self) {
        for buffer in [&mut self.event, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
    }

    /// Receives a request; none if the instance is to be a member of a chain instead.
    fn receive_request(&mut self) -> Result<Option<Head>, ChannelError> {
        self.blocking.endpoint().stamps.rests();
        // The head's few bytes pass through the body's buffer.
        let message = self.blocking.recv_message(&mut self.body, usize::MAX)?;
        match message.kind {
            Kind::RequestHead => self.id = message.id,
            Kind::Join => return Ok(None),
            found => {
                return Err(ChannelError::OutOfOrder {
                    expected: Kind::RequestHead,
                    found,
                });
            }
        }
        let (head, traceparent) = RequestHead::decode(&self.body)?;
        let head = Head {
            head,
            traceparent: traceparent.map(str::to_owned),
        };
        self.body.clear();
        // For the wait after this request; the rest of it is on its way.
        self.blocking.may_look(head.head.free_core);
        receive_message(&mut self.blocking, Kind::RequestEvent, &mut self.event)?;
        if head.head.trigger == Trigger::Http {
            receive_message(&mut self.blocking, Kind::RequestBody, &mut self.body)?;
        }
        self.blocking.endpoint().stamps.taken();
        Ok(Some(head))
    }
}

/// Receives a whole message, which must be of kind `expected`. Its size is the server's business.
fn receive_message(
    blocking: &mut Blocking,
    expected: Kind,
    into: &mut Vec<u8>,
) -> Result<[u8; 16], ChannelError> {
    let message = blocking.recv_message(into, usize::MAX)?;
    if message.kind == expected {
        Ok(message.id)
    } else {
        Err(ChannelError::OutOfOrder {
            expected,
            found: message.kind,
        })
    }
}
