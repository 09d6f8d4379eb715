//! Which of a member's instances gets the next descriptor. Pure: what is known of them comes from outside.

use crate::id::Instance;

/// What is known of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The instance.
    pub instance: Instance,
    /// How many requests it handles at a time.
    pub capacity: u32,
    /// How many it has in hand or on its rings.
    pub in_flight: u32,
}

/// How to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The instance with the most capacity left, as SPRIGHT does; of several, the one with the least in flight. Of equals it is the
    /// first, which was busy last: its memory is in the processor's caches, and it may still be awake. Where many requests are under
    /// way, equals take turns ([`Chooser::spread`]).
    #[default]
    ResidualCapacity,
    /// Each in turn: the control of the benchmarks.
    RoundRobin,
}

/// Chooses. Each sender has one of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chooser {
    policy: Policy,
    /// How many were chosen in turn.
    turn: usize,
    /// Whether equals take turns.
    spreads: bool,
}

impl Chooser {
    /// Chooses by this policy.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            turn: 0,
            spreads: false,
        }
    }

    /// Whether equals take turns from now on: none of them is idle for long then, and shares are even.
    pub fn spread(&mut self, spreads: bool) {
        self.spreads = spreads;
    }

    /// The next instance; none if there is none. It may have no capacity left: then none has.
    pub fn choose(&mut self, candidates: &[Candidate]) -> Option<Candidate> {
        let count = candidates.len();
        let takes_turns = self.spreads || self.policy == Policy::RoundRobin;
        let first = if takes_turns { self.turn } else { 0 }.checked_rem(count)?;
        self.turn = self.turn.wrapping_add(1);
        let in_turn = || (0..count).map(|step| candidates[(first + step) % count]);
        match self.policy {
            Policy::RoundRobin => in_turn().next(),
            // Of equals the first counts.
            Policy::ResidualCapacity => in_turn().reduce(|best, other| {
                if preference(&other) > preference(&best) {
                    other
                } else {
                    best
                }
            }),
        }
    }
}

/// Greater is better: capacity left, negative if overloaded; then little in flight.
fn preference(candidate: &Candidate) -> (i64, core::cmp::Reverse<u32>) {
    let residual = i64::from(candidate.capacity) - i64::from(candidate.in_flight);
    (residual, core::cmp::Reverse(candidate.in_flight))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidates(of: &[(u32, u32)]) -> Vec<Candidate> {
        of.iter()
            .zip(1..)
            .map(|(&(capacity, in_flight), id)| Candidate {
                instance: Instance(id),
                capacity,
                in_flight,
            })
            .collect()
    }

    fn chosen(mut chooser: Chooser, of: &[(u32, u32)], times: usize) -> Vec<u16> {
        let all = candidates(of);
        (0..times)
            .map(|_| chooser.choose(&all).expect("one").instance.0)
            .collect()
    }

    #[test]
    fn the_most_capacity_left_wins_and_of_equals_the_first() {
        let residual = |of, times| chosen(Chooser::default(), of, times);
        assert_eq!(residual(&[(8, 7), (4, 1), (2, 0)], 3), [2, 2, 2]);
        assert_eq!(
            residual(&[(8, 4), (4, 0), (8, 4)], 3),
            [2, 2, 2],
            "the least in flight"
        );
        assert_eq!(residual(&[(4, 2), (4, 1), (4, 1)], 3), [2, 2, 2]);
        assert_eq!(
            residual(&[(1, 9), (1, 5)], 2),
            [2, 2],
            "the least overloaded"
        );
    }

    #[test]
    fn equals_take_turns_where_many_requests_are_under_way() {
        let mut chooser = Chooser::default();
        chooser.spread(true);
        let of = [(4, 1), (4, 1), (4, 2)];
        assert_eq!(chosen(chooser, &of, 4), [1, 2, 1, 1]);
        chooser.spread(false);
        assert_eq!(chosen(chooser, &of, 3), [1, 1, 1]);
    }

    #[test]
    fn round_robin_looks_at_nothing() {
        let all = [(1, 99), (0, 0), (8, 0)];
        assert_eq!(
            chosen(Chooser::new(Policy::RoundRobin), &all, 4),
            [1, 2, 3, 1]
        );
        assert_eq!(Chooser::default().choose(&[]), None);
    }

    proptest! {
        #[test]
        fn nobody_is_better_than_the_chosen(
            of in prop::collection::vec((0..9_u32, 0..9_u32), 1..7),
            turn: usize,
            spreads: bool,
        ) {
            let all = candidates(&of);
            let mut chooser = Chooser { policy: Policy::ResidualCapacity, turn, spreads };
            let best = chooser.choose(&all).expect("one");
            prop_assert!(all.iter().all(|other| preference(other) <= preference(&best)));
        }
    }
}
