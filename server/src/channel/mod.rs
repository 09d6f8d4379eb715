//! The server's end of an instance's channel: the ring of `hearth-abi`, driven by tokio.
//!
//! The worker is not trusted: [`hearth_abi`] bounds, copies and checks everything it sends before this module sees it,
//! and any violation ends the instance.

mod hangup;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hearth_abi::spin::{AdaptiveSpin, look};
use hearth_abi::{AbiError, Bell, Counters, Endpoint, Flags, Kind, Region, Stamps, Violation};
use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use uuid::Uuid;

use crate::turns;
use crate::watched::Watched;

pub use hangup::Hangup;

/// Bytes of each ring. Large enough that a typical request and its answer never wait for space, small enough that a
/// thousand instances' rings stay below half a gigabyte even when all of their pages have been touched.
pub const RING_BYTES: u32 = 256 * 1024;

/// Rings in vain (nothing to read, no room) before the server delays its reaction. A healthy worker rings in vain once
/// in a while; one that does nothing but ring must not keep the server busy.
const FREE_RINGS: u32 = 64;
/// The delay.
const RING_PAUSE: Duration = Duration::from_millis(1);

/// Why an exchange with a worker broke off.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The worker broke the protocol.
    #[error("it broke the channel's protocol: {0}")]
    Violation(#[from] Violation),
    /// The worker answered an invocation that it was not asked.
    #[error("it broke the channel's protocol: a frame of another invocation")]
    WrongInvocation,
    /// The worker is gone.
    #[error("it ended before it answered")]
    Gone,
    /// The server's own side failed.
    #[error("the channel failed: {0}")]
    Abi(#[from] AbiError),
    /// A system call failed.
    #[error("the channel failed: {0}")]
    Io(#[from] std::io::Error),
}

/// The descriptors that go to the worker with a FORK command.
#[derive(Debug)]
pub struct PeerEnds {
    /// The region.
    pub memfd: OwnedFd,
    /// The worker sleeps on it.
    pub worker_bell: OwnedFd,
    /// The worker rings it.
    pub host_bell: OwnedFd,
}

/// One received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its kind.
    pub kind: Kind,
    /// Whether the message continues in the next frame.
    pub more: bool,
}

/// The server's end of one instance's channel.
#[derive(Debug)]
pub struct HostChannel {
    endpoint: Endpoint,
    worker_bell: Bell,
    /// An eventfd that the worker writes and that is never read: epoll is edge-triggered and reports every write.
    host_bell: Watched,
    hangup: Hangup,
    /// Rings since the last frame went either way.
    rings: u32,
    spin: AdaptiveSpin,
}

impl HostChannel {
    /// Creates a region and its two bells. Both sides spin for up to `busy_poll` before they sleep: the worker when
    /// that pays off, this side also only when asked to ([`Self::recv`]).
    ///
    /// # Errors
    /// When the kernel refuses a memfd, a mapping or an eventfd.
    pub fn new(busy_poll: Duration) -> Result<(Self, PeerEnds), ChannelError> {
        let (mut region, memfd) = Region::create(RING_BYTES)?;
        region.set_busy_poll(busy_poll);
        // Two ends that share no open file: a worker could make a shared one block, or fill it, and stop the server.
        let (worker_bell, worker_end) = Bell::pair()?;
        let host_bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(std::io::Error::from)?;
        let ends = PeerEnds {
            memfd,
            worker_bell: worker_end.into(),
            host_bell: host_bell.try_clone()?,
        };
        let channel = Self {
            endpoint: region.host(),
            worker_bell,
            host_bell: Watched::new(host_bell, Interest::READABLE)?,
            hangup: Hangup::default(),
            rings: 0,
            spin: AdaptiveSpin::new(busy_poll),
        };
        Ok((channel, ends))
    }

    /// A handle that ends waits when the worker dies.
    pub fn hangup(&self) -> Hangup {
        self.hangup.clone()
    }

    /// Sends one message whole, waiting for space if the ring is full. Does not ring the bell for the last frame: call
    /// [`Self::ring`] once the whole request is written.
    pub async fn send(
        &mut self,
        kind: Kind,
        id: &Uuid,
        payload: &[u8],
    ) -> Result<(), ChannelError> {
        self.send_part(kind, id, payload, false).await
    }

    /// Sends a part of a message; `more` says that further parts follow.
    pub async fn send_part(
        &mut self,
        kind: Kind,
        id: &Uuid,
        mut payload: &[u8],
        more: bool,
    ) -> Result<(), ChannelError> {
        let id = id.as_bytes();
        if payload.len() <= self.endpoint.tx.max_payload() {
            let flags = Flags::more(more);
            if self.endpoint.tx.try_send(kind, flags, id, payload)? {
                return Ok(());
            }
        }
        loop {
            let taken = self.endpoint.tx.try_send_piece(kind, id, payload, more)?;
            match taken {
                Some(taken) => {
                    self.rings = 0;
                    payload = &payload[taken..];
                    if payload.is_empty() {
                        return Ok(());
                    }
                }
                None => {
                    self.ring();
                    let wanted = payload.len().min(self.endpoint.tx.max_payload());
                    if self.endpoint.tx.prepare_wait(wanted) {
                        let waited = self.wait().await;
                        self.endpoint.tx.cancel_wait();
                        waited?;
                    }
                }
            }
        }
    }

    /// The worker's stamps for the request of the last response: when it took the request and when its handler ran.
    /// Claims, not facts.
    pub fn stamps(&self) -> Stamps {
        self.endpoint.stamps.answered()
    }

    /// What the worker has counted of that request. Claims, as above.
    pub fn counters(&self) -> Option<Counters> {
        self.endpoint.stamps.counters()
    }

    /// The stamps for a request without a response so far.
    pub fn stamps_so_far(&self) -> Stamps {
        self.endpoint.stamps.unanswered()
    }

    /// Whether neither ring contains anything of an invocation: the worker has read its request and written nothing but
    /// its response. Reads two shared words. Only then may the instance get a request: leftovers would be taken for its
    /// response.
    pub fn is_quiet(&mut self) -> bool {
        !self.endpoint.rx.is_ready() && self.endpoint.tx.is_drained()
    }

    /// Wakes the worker if it announced that it sleeps.
    pub fn ring(&mut self) {
        if self.endpoint.tx.bell_needed() {
            self.ring_worker();
        }
    }

    fn ring_worker(&self) {
        // It fails if the worker is gone, which the watch on its process reports.
        let _ = self.worker_bell.ring();
    }

    /// The next frame, if it is there, its payload appended to `payload`.
    pub fn try_recv(
        &mut self,
        id: &Uuid,
        payload: &mut Vec<u8>,
    ) -> Result<Option<Received>, ChannelError> {
        let received = match self.endpoint.rx.try_recv()? {
            None => return Ok(None),
            Some(mut frame) => {
                if frame.id() != id.as_bytes() {
                    return Err(ChannelError::WrongInvocation);
                }
                let received = Received {
                    kind: frame.kind(),
                    more: frame.flags().has_more(),
                };
                frame.copy_to(payload)?;
                received
            }
        };
        self.rings = 0;
        if self.endpoint.rx.bell_needed() {
            self.ring_worker();
        }
        Ok(Some(received))
    }

    /// Waits for the next frame of invocation `id` and appends its payload to `payload`. With `busy` it spins for a
    /// while before it sleeps, if that has paid off with this worker: for a server that has nothing else to do on this
    /// processor.
    ///
    /// # Errors
    /// [`ChannelError::Gone`] when the worker died with nothing left to read.
    pub async fn recv(
        &mut self,
        id: &Uuid,
        payload: &mut Vec<u8>,
        busy: bool,
    ) -> Result<Received, ChannelError> {
        if let Some(received) = self.try_recv(id, payload)? {
            return Ok(received);
        }
        if busy && let Some(budget) = self.spin.budget(Instant::now) {
            self.endpoint.tx.warm_up();
            let look = look(budget, || self.endpoint.rx.is_ready());
            turns::begin();
            self.spin.learn(look);
        }
        loop {
            if let Some(received) = self.try_recv(id, payload)? {
                return Ok(received);
            }
            if self.endpoint.rx.prepare_wait() {
                let waited = self.wait().await;
                self.endpoint.rx.cancel_wait();
                if let Err(error) = waited {
                    // The worker's last frames may have arrived before its end was noticed.
                    return match self.try_recv(id, payload)? {
                        Some(received) => Ok(received),
                        None => Err(error),
                    };
                }
            }
        }
    }

    /// Sleeps until the host bell rings or the worker is gone.
    async fn wait(&mut self) -> Result<(), ChannelError> {
        if self.rings > FREE_RINGS {
            tokio::time::sleep(RING_PAUSE).await;
        }
        self.rings = self.rings.saturating_add(1);
        if self.hangup.is_signalled() {
            return Err(ChannelError::Gone);
        }
        tokio::select! {
            biased;
            ready = self.host_bell.readable() => ready?.clear_ready(),
            () = self.hangup.signalled() => {}
        }
        if self.hangup.is_signalled() {
            Err(ChannelError::Gone)
        } else {
            Ok(())
        }
    }
}
