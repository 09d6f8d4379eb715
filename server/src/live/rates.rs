//! Requests per second, from monotonic counters.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// A rate is over this many seconds: long enough that one request is not a jump, short enough to be "now".
const OVER: usize = 5;

/// Requests a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rate {
    /// Finished invocations a second.
    pub requests: f64,
    /// Failed ones among them.
    pub errors: f64,
}

/// Counters as they were at one time.
type Counts = HashMap<i64, (u64, u64)>;

/// The readings of the last seconds. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(super) struct Rates(VecDeque<(Duration, Counts)>);

impl Rates {
    /// Adds a reading: the time on any steady clock, and by key what was counted so far (requests, errors). Returns the
    /// rates by key; those that are 0 are left out.
    pub(super) fn advance(&mut self, now: Duration, counts: Counts) -> HashMap<i64, Rate> {
        while self.0.len() > OVER {
            self.0.pop_front();
        }
        let rates = match self.0.front() {
            Some((then, before)) => between(*then, before, now, &counts),
            None => HashMap::new(),
        };
        self.0.push_back((now, counts));
        rates
    }
}

fn between(then: Duration, before: &Counts, now: Duration, counts: &Counts) -> HashMap<i64, Rate> {
    let seconds = now.saturating_sub(then).as_secs_f64();
    if seconds <= 0.0 {
        return HashMap::new();
    }
    counts
        .iter()
        .filter_map(|(key, (requests, errors))| {
            let (requests_before, errors_before) = before.get(key).copied().unwrap_or_default();
            let requests = requests.saturating_sub(requests_before);
            let errors = errors.saturating_sub(errors_before);
            (requests > 0).then(|| {
                let rate = Rate {
                    requests: requests as f64 / seconds,
                    errors: errors as f64 / seconds,
                };
                (*key, rate)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(i64, u64, u64)]) -> Counts {
        list.iter().map(|(key, a, b)| (*key, (*a, *b))).collect()
    }

    #[test]
    fn rates_are_over_the_last_seconds() {
        let mut rates = Rates::default();
        let at = Duration::from_secs;
        assert!(rates.advance(at(0), counts(&[(1, 1_000, 0)])).is_empty());
        let now = rates.advance(at(1), counts(&[(1, 1_100, 10)]));
        assert_eq!(
            now[&1],
            Rate {
                requests: 100.0,
                errors: 10.0
            }
        );
        let mut last = HashMap::new();
        for second in 2..=10 {
            last = rates.advance(at(second), counts(&[(1, 1_100, 10), (2, second * 2, 0)]));
        }
        // The burst is forgotten; a function that was not there before counts from 0.
        assert!(!last.contains_key(&1));
        assert!((last[&2].requests - 2.0).abs() < 0.5, "{last:?}");
    }

    #[test]
    fn no_time_and_counters_that_fell_are_no_rate() {
        let mut rates = Rates::default();
        rates.advance(Duration::ZERO, counts(&[(1, 9, 0)]));
        assert!(
            rates
                .advance(Duration::ZERO, counts(&[(1, 10, 0)]))
                .is_empty()
        );
        assert!(
            rates
                .advance(Duration::from_secs(1), counts(&[(1, 2, 0)]))
                .is_empty()
        );
    }
}
