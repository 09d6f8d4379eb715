//! How much is sent to whom: sources of datagrams are easily forged, so a port must not send much more to an address than came
//! from there (RFC 7252, 11.3).

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::limits::network;

/// How many bytes may be sent for each one that came: what QUIC allows before it knows an address (RFC 9000, 8).
const FACTOR: usize = 3;
/// Bytes that may be sent to a network beyond that, at once and each second. An attack gains no more than these.
const BURST: usize = 64 << 10;
const PER_SECOND: usize = 16 << 10;
/// Most networks that are known; all others share one allowance.
const NETWORKS: usize = 4096;
/// How often it is looked for networks to forget: a flood of forged sources must not pay for a look each.
const SWEEP: Duration = Duration::from_millis(100);

/// What may be sent to a network.
#[derive(Debug, Clone, Copy)]
struct Credit {
    bytes: usize,
    at: Instant,
}

/// See the module.
#[derive(Default)]
pub(super) struct Allowance {
    known: HashMap<IpAddr, Credit>,
    others: Option<Credit>,
    swept: Option<Instant>,
}

impl Allowance {
    /// Something came from there.
    pub(super) fn received(&mut self, from: IpAddr, bytes: usize, now: Instant) {
        let credit = self.credit(from, now);
        credit.bytes = (credit.bytes + FACTOR * bytes).min(BURST);
    }

    /// How many bytes may be sent there.
    pub(super) fn left(&mut self, to: IpAddr, now: Instant) -> usize {
        self.credit(to, now).bytes
    }

    /// So many bytes are sent there.
    pub(super) fn spend(&mut self, to: IpAddr, bytes: usize, now: Instant) {
        let credit = self.credit(to, now);
        credit.bytes = credit.bytes.saturating_sub(bytes);
    }

    fn credit(&mut self, of: IpAddr, now: Instant) -> &mut Credit {
        let of = network(of);
        let full = Credit {
            bytes: BURST,
            at: now,
        };
        let is_due = |swept| now.saturating_duration_since(swept) >= SWEEP;
        if self.known.len() >= NETWORKS
            && !self.known.contains_key(&of)
            && self.swept.is_none_or(is_due)
        {
            self.swept = Some(now);
            // Who has all of it again is as unknown as before.
            self.known.retain(|_, credit| {
                credit.refill(now);
                credit.bytes < BURST
            });
        }
        let credit = match self.known.len() < NETWORKS || self.known.contains_key(&of) {
            true => self.known.entry(of).or_insert(full),
            false => self.others.get_or_insert(full),
        };
        credit.refill(now);
        credit
    }
}

impl Credit {
    fn refill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at);
        let more = since.min(Duration::from_secs(60)).as_millis() as usize * PER_SECOND / 1000;
        // Below a byte, time goes on counting.
        if more > 0 {
            self.bytes = (self.bytes + more).min(BURST);
            self.at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_gets_no_more_than_the_allowance() {
        let (mut all, mut now) = (Allowance::default(), Instant::now());
        let victim = IpAddr::from([192, 0, 2, 1]);
        let (mut received, mut sent) = (0, 0);
        for _ in 0..10_000 {
            now += Duration::from_millis(1);
            all.received(victim, 20, now);
            received += 20;
            let answer = 1100.min(all.left(victim, now));
            all.spend(victim, answer, now);
            sent += answer;
        }
        let most = FACTOR * received + BURST + 10 * PER_SECOND;
        assert!(sent <= most && sent > most / 2, "{sent} of {most}");
        assert!(all.left(IpAddr::from([192, 0, 2, 2]), now) == BURST);
    }

    #[test]
    fn networks_beyond_the_table_share_one_allowance() {
        let (mut all, now) = (Allowance::default(), Instant::now());
        for host in 0..10_000_u32 {
            all.spend(IpAddr::from((0xc600_0000 + host).to_be_bytes()), 100, now);
        }
        assert_eq!(all.known.len(), NETWORKS);
        assert_eq!(all.left(IpAddr::from([192, 0, 2, 1]), now), 0);
        // Later they are full again, and make room.
        let later = now + Duration::from_secs(10);
        assert_eq!(all.left(IpAddr::from([192, 0, 2, 1]), later), BURST);
        assert_eq!(all.known.len(), 1);
    }
}
