//! The order of trials. Of a suite, all calls of all benchmarks are shuffled; of a duet, the benchmarks of each round; and of both, the
//! versions of each trial.

use serde::{Deserialize, Serialize};

/// Who runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The first version.
    First,
    /// The second version.
    Second,
    /// The first version again, to see what difference there is without one.
    Control,
}

/// One call: repeats of one benchmark, each with its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Number of the benchmark.
    pub benchmark: usize,
    /// Number of this call among those of the benchmark.
    pub number: usize,
    /// For each repeat, who runs when.
    pub repeats: Vec<Vec<Role>>,
}

/// One round: a trial of each benchmark, each with its order of versions.
pub type Round = Vec<(usize, Vec<Role>)>;

/// All rounds, in their order. The same seed gives the same one.
pub fn rounds(benchmarks: usize, rounds: usize, with_control: bool, seed: u64) -> Vec<Round> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut roles = roles(with_control);
    let mut order: Vec<usize> = (0..benchmarks).collect();
    (0..rounds)
        .map(|_| {
            random.shuffle(&mut order);
            let trial = |benchmark: &usize| {
                random.shuffle(&mut roles);
                (*benchmark, roles.clone())
            };
            order.iter().map(trial).collect()
        })
        .collect()
}

fn roles(with_control: bool) -> Vec<Role> {
    let mut roles = vec![Role::First, Role::Second];
    if with_control {
        roles.push(Role::Control);
    }
    roles
}

/// All calls, in their order. The same seed gives the same one.
pub fn order(
    benchmarks: usize,
    calls: usize,
    repeats: usize,
    with_control: bool,
    seed: u64,
) -> Vec<Call> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut roles = roles(with_control);
    let mut all: Vec<Call> = (0..benchmarks)
        .flat_map(|benchmark| (0..calls).map(move |number| (benchmark, number)))
        .map(|(benchmark, number)| Call {
            benchmark,
            number,
            repeats: Vec::new(),
        })
        .collect();
    random.shuffle(&mut all);
    for call in &mut all {
        for _ in 0..repeats {
            random.shuffle(&mut roles);
            call.repeats.push(roles.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_each_benchmark_once_in_another_order() {
        let all = rounds(4, 45, true, 1);
        assert_eq!(all.len(), 45);
        let mut orders = Vec::new();
        for round in &all {
            let mut order: Vec<usize> = round.iter().map(|(benchmark, _)| *benchmark).collect();
            orders.push(order.clone());
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
            assert!(round.iter().all(|(_, roles)| roles.len() == 3));
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 10, "{orders:?}");
        let trials = all.iter().flatten();
        let first = trials.filter(|(_, roles)| roles[0] == Role::First).count();
        // Of 180, a third within four standard deviations.
        assert!((35..=85).contains(&first), "{first}");
        assert_eq!(rounds(4, 45, true, 1), all);
        assert_ne!(rounds(4, 45, true, 2), all);
    }

    #[test]
    fn every_call_is_there_once_and_either_version_is_first_about_as_often() {
        let all = order(4, 15, 3, false, 1);
        assert_eq!(all.len(), 60);
        let mut pairs: Vec<_> = all
            .iter()
            .map(|call| (call.benchmark, call.number))
            .collect();
        assert!(!pairs.is_sorted(), "shuffled");
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 60);
        let repeats: Vec<_> = all.iter().flat_map(|call| &call.repeats).collect();
        assert_eq!(repeats.len(), 180);
        let first = repeats
            .iter()
            .filter(|roles| roles[0] == Role::First)
            .count();
        // Within four standard deviations.
        assert!((63..=117).contains(&first), "{first}");
        assert!(
            repeats
                .iter()
                .all(|roles| roles.len() == 2 && roles[0] != roles[1])
        );
        assert_eq!(order(4, 15, 3, false, 1), all);
        assert_ne!(order(4, 15, 3, false, 2), all);
        assert_eq!(order(1, 1, 1, true, 1)[0].repeats[0].len(), 3);
    }
}
