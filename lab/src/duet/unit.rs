//! What counts as one result of a benchmark.

use std::collections::BTreeMap;

use crate::statistics::Trial;
use crate::statistics::quantile::median;

/// What an interval is made of. Results must not depend on each other, or the interval is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each trial: processes of others, or a tool's own.
    Trial,
    /// All trials of a call, because they ran in the same processes, which are faster or slower by where their memory lies.
    Call,
}

impl Unit {
    /// Results of trials, each with the number of its call, in the order of these.
    pub(super) fn of(self, trials: impl Iterator<Item = (usize, Trial)>) -> Vec<Trial> {
        match self {
            Self::Trial => trials.map(|(_, trial)| trial).collect(),
            Self::Call => {
                let mut calls: BTreeMap<usize, Vec<Trial>> = BTreeMap::new();
                for (call, trial) in trials {
                    calls.entry(call).or_default().push(trial);
                }
                calls.into_values().filter_map(together).collect()
            }
        }
    }
}

/// The trial that has the median of the first version's times and the median of the changes. Changes are of trials, because a call's may
/// have different events.
fn together(trials: Vec<Trial>) -> Option<Trial> {
    let mut changes: Vec<f64> = trials.iter().filter_map(Trial::change).collect();
    let mut firsts: Vec<f64> = trials.iter().map(|trial| trial.first).collect();
    let first = median(&mut firsts)?;
    Some(Trial {
        first,
        second: first * (1.0 + median(&mut changes)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_of_a_call_are_one_result_with_their_median_change() {
        let trial = |first: f64, change: f64| Trial {
            first,
            second: first * (1.0 + change),
        };
        // A long event among short ones, and one that is slower by far.
        let trials = [
            (0, trial(100.0, 0.5)),
            (0, trial(1000.0, 0.25)),
            (0, trial(110.0, 9.0)),
            (1, trial(100.0, 0.0)),
            (2, trial(0.0, 0.0)),
        ];
        assert_eq!(Unit::Trial.of(trials.into_iter()).len(), 5);
        let found = Unit::Call.of(trials.into_iter());
        let found: Vec<(f64, f64)> = found
            .iter()
            .map(|one| (one.first, one.change().expect("a time")))
            .collect();
        // No change is to be had of a handler that took no time.
        assert_eq!(found, [(110.0, 0.5), (100.0, 0.0)]);
    }
}
