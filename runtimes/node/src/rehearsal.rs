//! A channel that leads back into the same process: the template runs through it what its instances will do, so that they
//! find that code compiled and its inline caches filled (`Instance.rehearse` in `worker/instance.js`).

use std::io;
use std::os::fd::OwnedFd;

use hearth_abi::{AbiError, Bell, Blocking, Kind, Region, RequestHead, Trigger};
use hearth_worker::channel::{Channel, ChannelError};
use hearth_worker::message;
use hearth_worker::parts::Parts;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

/// Bytes of a ring: each holds one short message at a time.
const RING_BYTES: u32 = 64 * 1024;

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = RING_BYTES as usize;

/// Any time that has not come, in microseconds since 1970: the year 2200.
const DEADLINE_UNIX_US: u64 = 7_258_118_400_000_000;

/// The requests of one round: the handler looks into `do` (`worker/instance.js`). As HTTP requests they have a body.
const EVENTS: [&str; 3] = [
    r#"{"do":"value","headers":{"content-type":"application/json"},"a":[1,"b"]}"#,
    r#"{"do":"response","headers":{"content-type":"application/json"}}"#,
    r#"{"do":"raise","headers":{}}"#,
];

/// The rehearsal's channel could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The rings or the bells.
    #[error(transparent)]
    Abi(#[from] AbiError),
    /// The worker's end.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The descriptors.
    #[error("no descriptors for it: {0}")]
    Descriptors(#[from] io::Error),
}

/// The server's part in it.
pub struct Rehearsal {
    host: Blocking,
    /// The other end of the ready socket: GO was sent there, and READY is not read.
    _ready: OwnedFd,
    /// Requests that are still to come.
    left: usize,
    /// The message that ends the answer to the last request; none is awaited before the first.
    awaited: bool,
    answer: Vec<u8>,
}

impl Rehearsal {
    /// The worker's end of a fresh channel, and the server that will send `rounds` times each kind of request.
    pub fn open(rounds: u32) -> Result<(Channel, Self), RehearsalError> {
        let (region, channel) = Region::create(RING_BYTES)?;
        let (host_rings, worker_bell) = Bell::pair()?;
        let (host_bell, host_sleeps) = Bell::pair()?;
        let (ours, ready) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(io::Error::from)?;
        send(&ours, &[message::GO], SendFlags::NOSIGNAL).map_err(io::Error::from)?;
        let parts = Parts {
            channel,
            worker_bell: worker_bell.into(),
            host_bell: host_bell.into(),
            // Streams are not taken over in a rehearsal.
            stdout: ready.try_clone()?,
            stderr: ready.try_clone()?,
            ready,
        };
        let rehearsal = Self {
            host: Blocking::new(region.host(), host_sleeps, host_rings),
            _ready: ours,
            left: rounds as usize * 2 * EVENTS.len(),
            awaited: false,
            answer: Vec::new(),
        };
        Ok((Channel::open(parts)?, rehearsal))
    }

    /// Takes the answer to the last request and sends the next one; false when that was the last. Never waits: both ends
    /// are this thread's.
    pub fn advance(&mut self) -> Result<bool, RehearsalError> {
        while self.awaited {
            let message = self.host.recv_message(&mut self.answer, ANSWER_BYTES_MAX)?;
            self.awaited = message.kind == Kind::ResponseHead;
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        self.left = left;
        let (event, trigger) = if left % 2 == 0 {
            (EVENTS[left / 2 % EVENTS.len()], Trigger::Invoke)
        } else {
            (EVENTS[left / 2 % EVENTS.len()], Trigger::Http)
        };
        let id = [0; 16];
        let head = RequestHead::new(DEADLINE_UNIX_US, trigger).encode(None);
        self.host.send_message(Kind::RequestHead, &id, &head)?;
        self.host
            .send_message(Kind::RequestEvent, &id, event.as_bytes())?;
        if trigger == Trigger::Http {
            self.host.send_message(Kind::RequestBody, &id, b"{}")?;
        }
        self.awaited = true;
        Ok(true)
    }
}
