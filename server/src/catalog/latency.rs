//! How long members had the requests of the last minutes.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::chains::Hop;
use crate::model::{Percentiles, samples_needed};

/// After this long, what was counted before is forgotten step by step.
const SPAN: Duration = Duration::from_mins(5);
/// Longest duration that is told apart, µs: a request's longest.
const HIGHEST: u64 = crate::model::chain::MAX_TIMEOUT_MS as u64 * 1000;
/// Two significant digits: a percentile is at most 1 % above what was observed.
const DIGITS: u8 = 2;

/// Durations by member, of the running span and the one before.
pub(super) struct HopLatency(Mutex<Spans>);

struct Spans {
    began: Instant,
    now: Vec<Histogram<u64>>,
    before: Vec<Histogram<u64>>,
}

impl HopLatency {
    pub(super) fn new(members: usize) -> Self {
        Self(Mutex::new(Spans {
            began: Instant::now(),
            now: vec![empty(); members],
            before: vec![empty(); members],
        }))
    }

    /// Counts the hops of a request.
    pub(super) fn record(&self, hops: &[Hop]) {
        let mut spans = self.0.lock();
        spans.turn(Instant::now());
        for hop in hops {
            let member = usize::from(hop.member).checked_sub(1);
            let histogram = member.and_then(|member| spans.now.get_mut(member));
            if let (Some(histogram), Some(left)) = (histogram, hop.left_ns) {
                histogram.saturating_record(left.saturating_sub(hop.entered_ns) / 1000);
            }
        }
    }

    /// Of the member with this number.
    pub(super) fn of(&self, member: u8) -> Percentiles {
        let mut spans = self.0.lock();
        spans.turn(Instant::now());
        let Some(at) = usize::from(member).checked_sub(1) else {
            return Percentiles::default();
        };
        let (Some(now), Some(before)) = (spans.now.get(at), spans.before.get(at)) else {
            return Percentiles::default();
        };
        let mut sum = now.clone();
        // Both have the same bounds.
        let _ = sum.add(before);
        percentiles(&sum)
    }
}

impl Spans {
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < SPAN {
            return;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.iter_mut().for_each(Histogram::reset);
        if age >= 2 * SPAN {
            self.before.iter_mut().for_each(Histogram::reset);
        }
        self.began = now;
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("bounds that fit each other")
}

fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let at = |per_mille: u64| {
        let enough = histogram.len() >= samples_needed(per_mille);
        enough.then(|| histogram.value_at_quantile(per_mille as f64 / 1000.0))
    };
    Percentiles {
        p50: at(500),
        p90: at(900),
        p99: at(990),
        p999: at(999),
        max: (!histogram.is_empty()).then(|| histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(member: u8, us: Option<u64>) -> Hop {
        Hop {
            member,
            instance: 1,
            is_call: false,
            entered_ns: 1_000_000,
            left_ns: us.map(|us| 1_000_000 + us * 1000),
        }
    }

    #[test]
    fn each_member_has_its_own_and_what_never_left_is_not_counted() {
        let latency = HopLatency::new(2);
        latency.record(&[hop(1, Some(10)), hop(2, Some(30)), hop(1, None)]);
        latency.record(&[hop(1, Some(20)), hop(0, Some(5)), hop(9, Some(5))]);
        let first = latency.of(1);
        assert_eq!(
            (first.p50, first.max, first.p90),
            (Some(10), Some(20), None)
        );
        assert_eq!(latency.of(2).max, Some(30));
        assert_eq!(latency.of(3), Percentiles::default());
        assert_eq!(latency.of(0), Percentiles::default());
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let latency = HopLatency::new(1);
        latency.record(&[hop(1, Some(10))]);
        let began = latency.0.lock().began;
        latency.0.lock().turn(began + SPAN);
        assert_eq!(latency.of(1).max, Some(10));
        latency.0.lock().turn(began + 2 * SPAN);
        assert_eq!(latency.of(1).max, None);
        latency.record(&[hop(1, Some(10))]);
        latency.0.lock().turn(began + 5 * SPAN);
        assert_eq!(latency.of(1).max, None);
    }
}
