//! How fast descriptors are sent, from two looks at the counters.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Least time between the two looks: a shorter one makes rates of chance.
const SPAN: Duration = Duration::from_secs(1);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Counted {
    /// What one member sent to another.
    Edge(u8, u8),
    /// What was sent to a member's instances.
    Member(u8),
    /// What was sent to an instance.
    Instance(u16),
}

/// The looks of one version in service.
#[derive(Debug, Default)]
pub(super) struct EdgeRates(Mutex<Looks>);

type Numbers = HashMap<Counted, u64>;

#[derive(Debug, Default)]
struct Looks {
    last: Option<(Instant, Numbers)>,
    rates: Numbers,
}

impl EdgeRates {
    /// How much each of these grows in a second; nothing at the first look.
    pub(super) fn of(&self, counts: &[(Counted, u64)], now: Instant) -> HashMap<Counted, u64> {
        let mut looks = self.0.lock();
        let age = looks
            .last
            .as_ref()
            .map(|(then, _)| now.saturating_duration_since(*then));
        if age.is_none_or(|age| age >= SPAN) {
            let counts: Numbers = counts.iter().copied().collect();
            if let (Some(age), Some((_, before))) = (age, &looks.last) {
                let rate = |(counted, count): (&Counted, &u64)| {
                    let more = count.saturating_sub(before.get(counted).copied().unwrap_or(*count));
                    (*counted, (more as f64 / age.as_secs_f64()).round() as u64)
                };
                looks.rates = counts.iter().map(rate).collect();
            }
            looks.last = Some((now, counts));
        }
        looks.rates.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_span() {
        let rates = EdgeRates::default();
        let began = Instant::now();
        let all = [Counted::Edge(0, 1), Counted::Member(1)];
        let look = |counts: [u64; 2], ms: u64| {
            let counted = [(all[0], counts[0]), (all[1], counts[1])];
            let rates = rates.of(&counted, began + Duration::from_millis(ms));
            all.map(|one| rates.get(&one).copied().unwrap_or(0))
        };
        assert_eq!(look([100, 0], 0), [0, 0]);
        assert_eq!(look([150, 9], 500), [0, 0], "too soon");
        assert_eq!(look([300, 10], 2000), [100, 5]);
        assert_eq!(look([900, 90], 2100), [100, 5], "of the last span still");
        // The counters of another version begin anew.
        assert_eq!(look([0, 10], 4000), [0, 0]);
    }
}
