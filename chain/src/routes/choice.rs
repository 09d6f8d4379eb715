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
    /// The instance with the most capacity left, as SPRIGHT does; of several, the one with the least in flight.
    #[default]
    ResidualCapacity,
    /// Each in turn: the control of the benchmarks.
    RoundRobin,
}

/// Chooses. Each sender has one of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chooser {
    policy: Policy,
    /// How many were chosen: equals take turns.
    turn: usize,
}

impl Chooser {
    /// Chooses by this policy.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self { policy, turn: 0 }
    }

    /// The next instance; none if there is none. It may have no capacity left: then none has.
    pub fn choose(&mut self, candidates: &[Candidate]) -> Option<Candidate> {
        let count = candidates.len();
        let first = self.turn.checked_rem(count)?;
        self.turn = self.turn.wrapping_add(1);
        let in_turn = || (0..count).map(|step| candidates[(first + step) % count]);
        match self.policy {
            Policy::RoundRobin => in_turn().next(),
            // Of equals the first counts, as their turn has it.
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

    fn chosen(policy: Policy, of: &[(u32, u32)], times: usize) -> Vec<u16> {
        let mut chooser = Chooser::new(policy);
        let all = candidates(of);
        (0..times)
            .map(|_| chooser.choose(&all).expect("one").instance.0)
            .collect()
    }

    #[test]
    fn the_most_capacity_left_wins_and_equals_take_turns() {
        let residual = |of, times| chosen(Policy::ResidualCapacity, of, times);
        assert_eq!(residual(&[(8, 7), (4, 1), (2, 0)], 3), [2, 2, 2]);
        assert_eq!(
            residual(&[(8, 4), (4, 0), (8, 4)], 3),
            [2, 2, 2],
            "the least in flight"
        );
        assert_eq!(residual(&[(4, 1), (4, 1), (4, 2)], 4), [1, 2, 1, 1]);
        assert_eq!(
            residual(&[(1, 9), (1, 5)], 2),
            [2, 2],
            "the least overloaded"
        );
    }

    #[test]
    fn round_robin_looks_at_nothing() {
        let all = [(1, 99), (0, 0), (8, 0)];
        assert_eq!(chosen(Policy::RoundRobin, &all, 4), [1, 2, 3, 1]);
        assert_eq!(Chooser::default().choose(&[]), None);
    }

    proptest! {
        #[test]
        fn nobody_is_better_than_the_chosen(
            of in prop::collection::vec((0..9_u32, 0..9_u32), 1..7),
            turn: usize,
        ) {
            let all = candidates(&of);
            let mut chooser = Chooser { policy: Policy::ResidualCapacity, turn };
            let best = chooser.choose(&all).expect("one");
            prop_assert!(all.iter().all(|other| preference(other) <= preference(&best)));
        }
    }
}
