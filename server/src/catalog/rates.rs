//! How fast descriptors are sent, from two looks at the counters.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::chains::EdgeStatus;

/// Least time between the two looks: a shorter one makes rates of chance.
const SPAN: Duration = Duration::from_secs(1);

/// The looks of one version in service.
#[derive(Debug, Default)]
pub(super) struct EdgeRates(Mutex<Looks>);

/// A number of each edge, by its ends.
type ByEdge = HashMap<(u8, u8), u64>;

#[derive(Debug, Default)]
struct Looks {
    last: Option<(Instant, ByEdge)>,
    rates: ByEdge,
}

impl EdgeRates {
    /// Descriptors a second on each of these edges, in their order; 0 at the first look.
    pub(super) fn of(&self, edges: &[EdgeStatus], now: Instant) -> Vec<u64> {
        let mut looks = self.0.lock();
        let age = looks
            .last
            .as_ref()
            .map(|(then, _)| now.saturating_duration_since(*then));
        if age.is_none_or(|age| age >= SPAN) {
            let counts: HashMap<_, _> = edges
                .iter()
                .map(|edge| ((edge.from, edge.to), edge.sent))
                .collect();
            if let (Some(age), Some((_, before))) = (age, &looks.last) {
                let rate = |(edge, sent): (&(u8, u8), &u64)| {
                    let more = sent.saturating_sub(before.get(edge).copied().unwrap_or(*sent));
                    (*edge, (more as f64 / age.as_secs_f64()).round() as u64)
                };
                looks.rates = counts.iter().map(rate).collect();
            }
            looks.last = Some((now, counts));
        }
        edges
            .iter()
            .map(|edge| looks.rates.get(&(edge.from, edge.to)).copied().unwrap_or(0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_span() {
        let rates = EdgeRates::default();
        let began = Instant::now();
        let look = |sent: [u64; 2], ms: u64| {
            let edge = |(to, sent)| EdgeStatus {
                from: 0,
                to,
                sent,
                refused: 0,
            };
            let edges = [(1, sent[0]), (2, sent[1])].map(edge);
            rates.of(&edges, began + Duration::from_millis(ms))
        };
        assert_eq!(look([100, 0], 0), [0, 0]);
        assert_eq!(look([150, 9], 500), [0, 0], "too soon");
        assert_eq!(look([300, 10], 2000), [100, 5]);
        assert_eq!(look([900, 90], 2100), [100, 5], "of the last span still");
        // The counters of another version begin anew.
        assert_eq!(look([0, 10], 4000), [0, 0]);
    }
}
