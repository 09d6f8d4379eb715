//! Answers of quality 1 that a broker has not confirmed: sent again at the next connection (MQTT 5, 4.4).

use std::collections::VecDeque;

use bytes::Bytes;
use mqtt_proto::Pid;
use tokio::time::Instant;

use crate::triggers::mqtt::packets::Version;

/// Most of them, and most of their bytes.
const MOST: usize = 64;
const BYTES_MAX: usize = 1 << 20;
/// The bit of a PUBLISH that says that it may have come before.
const DUPLICATE: u8 = 0x08;

struct Sent {
    id: Pid,
    version: Version,
    /// As it is sent again.
    packet: Bytes,
    at: Instant,
}

/// See the module.
#[derive(Default)]
pub(super) struct Unconfirmed {
    sent: VecDeque<Sent>,
    bytes: usize,
    last: Pid,
}

impl Unconfirmed {
    /// The number of the next packet, which no unconfirmed one has.
    pub(super) fn next_id(&mut self) -> Pid {
        // There are more numbers than may be unconfirmed.
        loop {
            self.last += 1;
            if self.sent.iter().all(|sent| sent.id != self.last) {
                return self.last;
            }
        }
    }

    /// Whether there is room for another, at a broker that takes so many.
    pub(super) fn has_room(&self, receive_max: u16) -> bool {
        self.sent.len() < MOST.min(receive_max.into()) && self.bytes < BYTES_MAX
    }

    /// One was sent.
    pub(super) fn add(&mut self, id: Pid, version: Version, mut packet: Vec<u8>) {
        if let Some(first) = packet.first_mut() {
            *first |= DUPLICATE;
        }
        self.bytes += packet.len();
        self.sent.push_back(Sent {
            id,
            version,
            packet: packet.into(),
            at: Instant::now(),
        });
    }

    /// One was confirmed.
    pub(super) fn confirmed(&mut self, id: Pid) {
        if let Some(at) = self.sent.iter().position(|sent| sent.id == id)
            && let Some(sent) = self.sent.remove(at)
        {
            self.bytes -= sent.packet.len();
        }
    }

    /// What is to be sent at a new connection; what was written in another version is given up.
    pub(super) fn again(&mut self, version: Version) -> Vec<Bytes> {
        self.sent.retain(|sent| sent.version == version);
        self.bytes = self.sent.iter().map(|sent| sent.packet.len()).sum();
        let all = self.sent.iter_mut().map(|sent| {
            sent.at = Instant::now();
            sent.packet.clone()
        });
        all.collect()
    }

    /// Since when the oldest waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.sent.iter().map(|sent| sent.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_confirmed_is_bounded_and_sent_again() {
        let mut all = Unconfirmed::default();
        let mut ids = Vec::new();
        while all.has_room(3) {
            let id = all.next_id();
            all.add(id, Version::Five, vec![0x32, 0]);
            ids.push(id);
        }
        assert_eq!(ids.len(), 3);
        all.confirmed(ids[1]);
        assert!(all.has_room(3) && all.oldest().is_some());
        assert_eq!(all.again(Version::Five), [vec![0x3a, 0], vec![0x3a, 0]]);
        for _ in 0..70_000 {
            assert!(![ids[0], ids[2]].contains(&all.next_id()));
        }
        assert!(all.again(Version::Three).is_empty() && all.oldest().is_none());
        let id = all.next_id();
        all.add(id, Version::Three, vec![0; BYTES_MAX]);
        assert!(!all.has_room(3));
        all.confirmed(id);
        assert!(all.has_room(3));
    }
}
