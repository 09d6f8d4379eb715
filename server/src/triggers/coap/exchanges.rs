//! Which requests were seen: each is answered once, and a duplicate gets the answer that there was (RFC 7252, 4.2 and 4.5).

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::limits::network;

/// How long a message may be repeated: EXCHANGE_LIFETIME (RFC 7252, 4.8.2). Repeating it does not prolong this.
const LIFETIME: Duration = Duration::from_secs(247);
/// Most requests that are remembered for a port. Beyond that the oldest that are answered are forgotten, and their
/// duplicates would run again.
const MOST: usize = 16_384;
/// Most bytes of answers that are kept for duplicates, for a port.
const BYTES: usize = 8 << 20;
/// Most requests of one network that run at a time, for a port.
const RUNNING_OF_ONE: usize = 128;

/// A message of a client.
type Key = (SocketAddr, u16);

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It is a new one, which runs from now on.
    New,
    /// It runs. True if the client has got a receipt.
    Running(bool),
    /// This was the answer; nothing if there is none to be repeated.
    Answered(Bytes),
    /// Its network has too many that run.
    TooMany,
}

/// See the module.
#[derive(Default)]
pub(super) struct Exchanges {
    all: HashMap<Key, Seen>,
    /// The oldest first.
    order: VecDeque<(Key, Instant)>,
    running: HashMap<IpAddr, usize>,
    bytes: usize,
}

impl Exchanges {
    /// Whether a request is new; it is no more after this.
    pub(super) fn begin(&mut self, peer: SocketAddr, id: u16, now: Instant) -> Seen {
        self.expire(now);
        let key = (peer, id);
        if let Some(seen) = self.all.get(&key) {
            return seen.clone();
        }
        let running = self.running.entry(network(peer.ip())).or_default();
        if *running >= RUNNING_OF_ONE {
            return Seen::TooMany;
        }
        *running += 1;
        self.all.insert(key, Seen::Running(false));
        self.order.push_back((key, now));
        Seen::New
    }

    /// The client has got a receipt without an answer.
    pub(super) fn acknowledged(&mut self, peer: SocketAddr, id: u16) {
        if let Some(Seen::Running(acknowledged)) = self.all.get_mut(&(peer, id)) {
            *acknowledged = true;
        }
    }

    /// It has run; `answer` is for its duplicates.
    pub(super) fn end(&mut self, peer: SocketAddr, id: u16, answer: Bytes) {
        let network = network(peer.ip());
        if let Some(running) = self.running.get_mut(&network) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&network);
            }
        }
        self.bytes += answer.len();
        self.all.insert((peer, id), Seen::Answered(answer));
    }

    /// Forgets what is too old, and the oldest of too many. What still runs stays.
    fn expire(&mut self, now: Instant) {
        for _ in 0..self.order.len() {
            let Some((key, since)) = self.order.front().copied() else {
                return;
            };
            let is_old = now.saturating_duration_since(since) >= LIFETIME;
            if !is_old && self.order.len() < MOST && self.bytes <= BYTES {
                return;
            }
            self.order.pop_front();
            match self.all.get(&key) {
                Some(Seen::Answered(answer)) => {
                    self.bytes -= answer.len();
                    self.all.remove(&key);
                }
                Some(_) => self.order.push_back((key, since)),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], number))
    }

    #[test]
    fn a_duplicate_gets_what_there_was() {
        let (mut all, now) = (Exchanges::default(), Instant::now());
        assert_eq!(all.begin(peer(1), 7, now), Seen::New);
        assert_eq!(all.begin(peer(1), 7, now), Seen::Running(false));
        all.acknowledged(peer(1), 7);
        assert_eq!(all.begin(peer(1), 7, now), Seen::Running(true));
        assert_eq!(all.begin(peer(2), 7, now), Seen::New, "another client");
        all.end(peer(1), 7, Bytes::from_static(b"a"));
        let last = now + LIFETIME - Duration::from_millis(1);
        let answered = Seen::Answered(Bytes::from_static(b"a"));
        assert_eq!(all.begin(peer(1), 7, last), answered);
        // Counted from the first one, whatever came since.
        assert_eq!(all.begin(peer(1), 7, now + LIFETIME), Seen::New);
        // The other one still runs.
        assert_eq!(all.begin(peer(2), 7, now + LIFETIME), Seen::Running(false));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut all, now) = (Exchanges::default(), Instant::now());
        for id in 0..u16::try_from(RUNNING_OF_ONE).expect("few") {
            assert_eq!(all.begin(peer(1), id, now), Seen::New);
        }
        assert_eq!(all.begin(peer(9), 999, now), Seen::TooMany);
        let elsewhere = SocketAddr::from(([192, 0, 2, 2], 1));
        for id in 0..u16::MAX {
            assert_eq!(all.begin(elsewhere, id, now), Seen::New, "{id}");
            all.end(elsewhere, id, Bytes::from_static(&[0; 1000]));
        }
        assert!(all.order.len() <= MOST && all.all.len() == all.order.len());
        assert!(all.bytes <= BYTES + 1000);
        // What runs was not forgotten.
        assert_eq!(all.begin(peer(1), 0, now), Seen::Running(false));
        assert_eq!(all.running.len(), 1);
    }
}
