//! The open connections: how many in total and per address, and which to close when the limit is reached.

mod held;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::limits::{Limits, network};

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No request yet.
    New,
    /// Between two requests.
    Idle,
    /// A request's head has begun.
    Head,
    /// A request is answered.
    Busy,
}

impl Phase {
    fn of(code: u8) -> Self {
        match code {
            0 => Self::New,
            1 => Self::Idle,
            2 => Self::Head,
            _ => Self::Busy,
        }
    }
}

/// All connections of the server. Cheap to clone.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    /// What `since` counts from.
    epoch: Instant,
    most: usize,
    most_of_one: usize,
    table: Mutex<Table>,
    draining: AtomicBool,
    /// Notified whenever a connection ends.
    left: Notify,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Connection>>,
    /// Those that are not closing, by network.
    by_network: HashMap<IpAddr, usize>,
    /// Those asked to close.
    closing: usize,
    next: u64,
}

/// One connection, shared between its task, its stream and the table.
pub struct Connection {
    id: u64,
    /// Where it comes from.
    pub peer: SocketAddr,
    network: IpAddr,
    phase: AtomicU8,
    /// When the phase began, µs after the epoch.
    since: AtomicU64,
    /// Asked to close once it has no request.
    closing: AtomicBool,
    /// Wakes its task while it waits for the client.
    pub(super) waker: AtomicWaker,
    task: Mutex<Option<AbortHandle>>,
    /// What is left of the request: its response, and its body while it may still be read.
    parts: AtomicU8,
    all: Arc<Inner>,
}

impl Connections {
    /// None yet, with the limits in force.
    pub fn new(limits: &Limits) -> Self {
        Self(Arc::new(Inner {
            epoch: Instant::now(),
            most: limits.connections,
            most_of_one: limits.connections_of_one,
            table: Mutex::default(),
            draining: AtomicBool::new(false),
            left: Notify::new(),
        }))
    }

    /// Takes a connection in. Where there is no room, the one that has waited longest without a request makes some:
    /// of the same network, when that has more than its share. None when all are busy.
    pub(super) fn admit(&self, peer: SocketAddr) -> Option<Seat> {
        let network = network(peer.ip());
        let mut table = self.0.table.lock();
        let of_one = table.by_network.get(&network).copied().unwrap_or(0);
        let room = if of_one >= self.0.most_of_one {
            table.let_go(|connection| connection.network == network)
        } else if table.open.len() - table.closing >= self.0.most {
            table.let_go(|_| true)
        } else {
            true
        };
        if !room {
            return None;
        }
        table.next += 1;
        let connection = Arc::new(Connection {
            id: table.next,
            peer,
            network,
            phase: AtomicU8::new(Phase::New as u8),
            since: AtomicU64::new(self.0.now()),
            closing: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            task: Mutex::default(),
            parts: AtomicU8::new(0),
            all: self.0.clone(),
        });
        table.open.insert(connection.id, connection.clone());
        *table.by_network.entry(network).or_default() += 1;
        Some(Seat(connection))
    }

    /// Lets go of the one that has waited longest without a request, for a descriptor.
    pub(super) fn make_room(&self) -> bool {
        self.0.table.lock().let_go(|_| true)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.table.lock().open.len()
    }

    /// Ends those without a request now, the others after their answer.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
        for connection in self.0.table.lock().open.values() {
            connection.waker.wake();
        }
    }

    /// Waits until there is no connection, or until `deadline`. Returns whether there is none.
    pub async fn gone(&self, deadline: Instant) -> bool {
        let all_left = async {
            loop {
                let left = self.0.left.notified();
                tokio::pin!(left);
                // Registered before the look, so that an end in between is not missed.
                left.as_mut().enable();
                if self.count() == 0 {
                    return;
                }
                left.await;
            }
        };
        tokio::time::timeout_at(deadline.into(), all_left)
            .await
            .is_ok()
    }

    /// Ends all that are left, whatever they do.
    pub fn cut(&self) {
        for connection in self.0.table.lock().open.values() {
            if let Some(task) = &*connection.task.lock() {
                task.abort();
            }
        }
    }
}

impl Table {
    /// Asks the oldest one without a request to close.
    fn let_go(&mut self, of: impl Fn(&Connection) -> bool) -> bool {
        let oldest = self
            .open
            .values()
            .filter(|connection| {
                connection.phase() != Phase::Busy
                    && !connection.closing.load(Ordering::Acquire)
                    && of(connection)
            })
            .min_by_key(|connection| connection.since.load(Ordering::Relaxed));
        let Some(oldest) = oldest.cloned() else {
            return false;
        };
        oldest.closing.store(true, Ordering::Release);
        oldest.waker.wake();
        self.closing += 1;
        self.leave(oldest.network);
        true
    }

    fn leave(&mut self, network: IpAddr) {
        if let Some(count) = self.by_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.by_network.remove(&network);
            }
        }
    }
}

impl Inner {
    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Connection {
    /// Its task, which is aborted when the server cuts connections.
    pub fn runs_in(&self, task: AbortHandle) {
        *self.task.lock() = Some(task);
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::Acquire))
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.since.store(self.all.now(), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// When the phase began.
    pub(super) fn since(&self) -> Instant {
        self.all.epoch + Duration::from_micros(self.since.load(Ordering::Relaxed))
    }

    /// Whether it shall end as soon as it has no request.
    pub(super) fn should_end(&self) -> bool {
        self.closing.load(Ordering::Acquire) || self.all.draining.load(Ordering::Acquire)
    }

    /// Takes it off the table, at its end.
    fn leave(&self) {
        let mut table = self.all.table.lock();
        if table.open.remove(&self.id).is_none() {
            return;
        }
        if self.closing.load(Ordering::Acquire) {
            table.closing -= 1;
        } else {
            table.leave(self.network);
        }
        drop(table);
        self.all.left.notify_waiters();
    }
}

/// A part of a request, its body or its answer: the connection is busy as long as there is one.
pub struct Part(Arc<Connection>);

impl Part {
    pub(super) fn of(connection: &Arc<Connection>) -> Self {
        if connection.parts.fetch_add(1, Ordering::AcqRel) == 0 {
            connection.enter(Phase::Busy);
        }
        Self(connection.clone())
    }

    /// Whether the connection shall end after this answer.
    pub(super) fn is_last(&self) -> bool {
        self.0.should_end()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.0.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.enter(Phase::Idle);
            if self.0.should_end() {
                self.0.waker.wake();
            }
        }
    }
}

/// A place in the table. Held by a connection's stream, so that it is free again when the descriptor is.
pub(super) struct Seat(pub(super) Arc<Connection>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, most_of_one: usize) -> Connections {
        Connections::new(&Limits {
            connections: most,
            connections_of_one: most_of_one,
            ..Limits::default()
        })
    }

    fn from(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().expect("an address"), 1)
    }

    #[test]
    fn the_oldest_without_a_request_makes_room() {
        let all = connections(3, 3);
        let seats: Vec<_> = (1..=3)
            .map(|n| {
                let seat = all.admit(from(&format!("192.0.2.{n}"))).expect("room");
                std::thread::sleep(Duration::from_millis(1));
                seat
            })
            .collect();
        seats[0].0.enter(Phase::Busy);
        let fourth = all.admit(from("192.0.2.4")).expect("room");
        let ends: Vec<_> = seats.iter().map(|seat| seat.0.should_end()).collect();
        assert_eq!(ends, [false, true, false]);
        seats[2].0.enter(Phase::Busy);
        fourth.0.enter(Phase::Busy);
        assert!(all.admit(from("192.0.2.5")).is_none(), "all are busy");
        drop(seats);
        assert!(all.admit(from("192.0.2.5")).is_some());
    }

    #[test]
    fn one_network_has_a_share_and_makes_room_for_itself() {
        let all = connections(8, 2);
        let other = all.admit(from("192.0.2.1")).expect("room");
        std::thread::sleep(Duration::from_millis(1));
        let first = all.admit(from("2001:db8::1")).expect("room");
        let second = all.admit(from("2001:db8::2")).expect("room");
        second.0.enter(Phase::Busy);
        let third = all.admit(from("2001:db8::3")).expect("the first goes");
        assert!(first.0.should_end() && !other.0.should_end());
        third.0.enter(Phase::Busy);
        assert!(all.admit(from("2001:db8::4")).is_none());
        assert!(all.admit(from("2001:db8:0:1::4")).is_some());
        drop((first, second, third, other));
        assert!(all.0.table.lock().by_network.is_empty());
        assert_eq!(all.0.table.lock().closing, 0);
    }
}
