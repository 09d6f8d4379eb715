//! What wakes the gateway: a bell for each instance, or its connection, in one epoll set.
//!
//! A bell is an eventfd that the instance writes and that is never read: epoll is edge-triggered and reports every write. Each
//! has its own, so that none can drain or block another's.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use tokio::io::Interest;
use tokio::sync::Notify;

use crate::watched::Watched;

/// Bells taken at once. One that is left rings again.
const TAKEN_AT_ONCE: usize = 64;
/// Rings in vain before the gateway delays its reaction: a member that does nothing but ring must not keep the server busy.
const FREE_RINGS: u32 = 64;
/// The delay.
const RING_PAUSE: Duration = Duration::from_millis(1);

/// See the module.
pub(super) struct Bells {
    all: Watched,
    /// Rung by the gateway itself.
    own: Notify,
}

impl Bells {
    pub(super) fn new() -> std::io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            all: Watched::new(set, Interest::READABLE)?,
            own: Notify::new(),
        })
    }

    /// A bell for an instance: what it rings. It is watched as long as the instance has it open, or this end, which is kept
    /// with the instance's seat.
    pub(super) fn add(&self, number: u16) -> std::io::Result<OwnedFd> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        self.watch(number, &bell)?;
        Ok(bell)
    }

    /// Watches a connection as a bell, as long as it is open.
    pub(super) fn watch(&self, number: u16, connection: impl AsFd) -> std::io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(number.into());
        Ok(epoll::add(&self.all, connection, data, flags)?)
    }

    /// Stops watching a bell.
    pub(super) fn remove(&self, bell: impl AsFd) {
        // It fails if it is not watched, which is as well.
        let _ = epoll::delete(&self.all, bell);
    }

    /// Ends the sleep.
    pub(super) fn wake(&self) {
        self.own.notify_one();
    }

    /// Sleeps until bells have rung; the numbers of their instances. `vain` is how often the last ones have for nothing.
    pub(super) async fn rung(&self, vain: u32) -> std::io::Result<Vec<u16>> {
        if vain > FREE_RINGS {
            tokio::time::sleep(RING_PAUSE).await;
        }
        tokio::select! {
            ready = self.all.readable() => ready?.clear_ready(),
            () = self.own.notified() => {}
        }
        let mut events = Vec::with_capacity(TAKEN_AT_ONCE);
        let mut rung = Vec::new();
        loop {
            events.clear();
            let space = rustix::buffer::spare_capacity(&mut events);
            let waited = epoll::wait(&self.all, space, Some(&Timespec::default()));
            rung.extend(events.iter().map(|event| event.data.u64() as u16));
            match waited {
                Ok(taken) if taken == TAKEN_AT_ONCE => {}
                Ok(_) => return Ok(rung),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
