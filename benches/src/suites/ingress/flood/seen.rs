//! What was seen of a flood, and what follows from it.

use std::time::Duration;

use super::turn::Turn;
use super::{CATEGORY, PACKETS, REQUESTS, Way, costs, is_known, keeps, row};
use crate::load::Observed;
use crate::results::Document;
use crate::suites::median::middle;

/// What the client has to keep of its requests.
const KEPT: f64 = 0.8;

/// What was seen of one way at one step.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) client: Observed,
    /// The client's requests a second, one for each round.
    pub(super) rates: Vec<f64>,
    pub(super) packets: u64,
    pub(super) flooded: Duration,
    /// Packets that the host received, and what that took: what did not fit into the interface's ring is neither.
    pub(super) received: u64,
    pub(super) spent: Duration,
}

impl Seen {
    /// Adds a turn, but for what the host received of it.
    pub(super) fn add(&mut self, turn: &Turn) {
        self.rates.push(turn.client.rate());
        self.client.extend(&turn.client);
        self.packets += turn.packets;
        self.flooded += turn.flooded;
    }

    fn flood(&self) -> f64 {
        self.packets as f64 / self.flooded.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The share of its requests that the client kept, of what it got in the same round without a flood: the machine's
    /// speed drifts.
    fn kept(&self, quiet: &[Quiet]) -> f64 {
        let rounds = self.rates.iter().zip(quiet);
        let mut kept: Vec<f64> = rounds.map(|(rate, quiet)| rate / quiet.rate()).collect();
        kept.sort_by(f64::total_cmp);
        middle(&kept)
    }
}

/// What the client got without a flood in one round, of all ways: their interface has nothing to do then. One turn is too
/// short to divide everything else by; it varies by a sixth.
#[derive(Default)]
pub(super) struct Quiet(Vec<f64>);

impl Quiet {
    pub(super) fn push(&mut self, rate: f64) {
        self.0.push(rate);
    }

    fn rate(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// Adds the rows of one way, and its results.
pub(super) fn conclude(
    way: Way,
    steps: &[u64],
    seen: &[Seen],
    quiet: &[Quiet],
    document: &mut Document,
) {
    for (step, seen) in steps.iter().zip(seen) {
        let row = row(way, *step);
        // A client that got no answer has no latency.
        if seen.client.samples.len() > 0 {
            document.add(CATEGORY, &row, seen.client.samples.clone());
        }
        document.figure(CATEGORY, &row, seen.client.rate(), REQUESTS);
        document.figure(CATEGORY, &row, seen.flood(), PACKETS);
    }
    let received: u64 = seen.iter().map(|seen| seen.received).sum();
    let spent: Duration = seen.iter().map(|seen| seen.spent).sum();
    if received > 0 {
        let each = spent.as_nanos() as f64 / received as f64;
        document.figure(CATEGORY, &costs(way), each, "ns");
    }
    let points: Vec<[f64; 2]> = seen
        .iter()
        .map(|seen| [seen.flood(), seen.kept(quiet)])
        .collect();
    let (most, known) = most_with(KEPT, &falling(&points));
    document.figure(CATEGORY, &keeps(way), most, "/s");
    document.figure(CATEGORY, &is_known(way), f64::from(u8::from(known)), "");
}

/// The points with the falling shares that are nearest to theirs (isotonic regression, by pooling adjacent violators): a
/// higher rate never leaves the client more, and one turn that was disturbed must not end the curve.
fn falling(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &[_, share] in points {
        let mut pool = (share, 1);
        while let Some(&(before, count)) = pools.last()
            && before < pool.0
        {
            let sum = before * count as f64 + pool.0 * pool.1 as f64;
            pool = (sum / (count + pool.1) as f64, count + pool.1);
            pools.pop();
        }
        pools.push(pool);
    }
    let shares = pools
        .into_iter()
        .flat_map(|(share, count)| std::iter::repeat_n(share, count));
    let rates = points.iter().map(|point| point[0]);
    rates
        .zip(shares)
        .map(|(rate, share)| [rate, share])
        .collect()
}

/// The rate up to which the share that is kept does not fall below this one, between two points by a straight line, and whether
/// it falls at all: else it is the highest rate. Points are of rate and share, from the lowest rate on.
fn most_with(share: f64, points: &[[f64; 2]]) -> (f64, bool) {
    let mut last = [0.0, 1.0];
    for &[rate, kept] in points {
        if kept < share {
            let part = (last[1] - share) / (last[1] - kept);
            return (last[0] + part * (rate - last[0]), true);
        }
        // A generator that is starved gives no more than it gave before.
        last = [rate.max(last[0]), kept];
    }
    (last[0], false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_all_that_was_quiet_in_the_same_round() {
        let seen = Seen {
            rates: vec![50.0, 90.0, 120.0],
            ..Seen::default()
        };
        let quiet = [
            Quiet(vec![80.0, 120.0]),
            Quiet(vec![100.0]),
            Quiet(vec![90.0, 110.0, 100.0]),
        ];
        assert!((seen.kept(&quiet) - 0.9).abs() < 1e-9);
    }

    #[test]
    fn shares_that_rise_are_pooled_with_those_before_them() {
        let shares = |shares: &[f64]| {
            let points: Vec<_> = shares.iter().map(|share| [1.0, *share]).collect();
            falling(&points)
                .into_iter()
                .map(|point| point[1])
                .collect::<Vec<_>>()
        };
        assert_eq!(shares(&[1.0, 0.75, 0.5]), [1.0, 0.75, 0.5]);
        assert_eq!(shares(&[1.0, 0.5, 0.75, 0.25]), [1.0, 0.625, 0.625, 0.25]);
        assert_eq!(shares(&[0.5, 0.75, 1.0]), [0.75; 3]);
        assert!(falling(&[]).is_empty());
    }

    #[test]
    fn the_rate_lies_between_the_last_that_is_good_and_the_first_that_is_not() {
        let points = [[0.0, 1.0], [100.0, 0.9], [200.0, 0.7], [400.0, 0.95]];
        let (rate, known) = most_with(0.8, &points);
        assert!((rate - 150.0).abs() < 1e-6 && known, "{rate}");
        assert_eq!(most_with(0.8, &points[..2]), (100.0, false));
        let (rate, known) = most_with(0.75, &[[0.0, 1.0], [100.0, 0.0]]);
        assert_eq!((rate, known), (25.0, true));
        // It was starved from here on.
        let starved = [[0.0, 1.0], [100.0, 0.9], [90.0, 0.85]];
        assert_eq!(most_with(0.8, &starved), (100.0, false));
    }
}
