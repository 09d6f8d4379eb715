//! The decision of a duet: two versions run side by side in the same instance, and each trial has a duration of both
//! (Schirmer, Pfandzelter, Bermbach, *ElastiBench*).

use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, Interval, Intervals};
use super::quantile::median;

/// A benchmark with fewer trials is left out, as in the paper.
pub const TRIALS_MIN: usize = 10;

/// A change below this share of the first version's duration may not be real: the paper finds its experiments to agree
/// consistently only above it.
pub const DOUBTFUL_BELOW: f64 = 0.07;

/// Durations of one trial, both in the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The first version's.
    pub first: f64,
    /// The second version's.
    pub second: f64,
}

impl Trial {
    /// The change relative to the first version: 0.05 is 5 % slower. None where that is no number, as after a duration of 0.
    pub fn change(&self) -> Option<f64> {
        let change = (self.second - self.first) / self.first;
        change.is_finite().then_some(change)
    }
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The interval includes 0.
    NoChange,
    /// The second version takes less time.
    Faster,
    /// The second version takes more time.
    Slower,
}

/// The second version beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of trials that count.
    pub trials: usize,
    /// The median relative change and its intervals. The percentile interval decides.
    pub change: Intervals,
}

/// Compares by the paired relative changes of all trials. None with fewer than [`TRIALS_MIN`] that count.
pub fn compare(trials: &[Trial], bootstrap: &Bootstrap) -> Option<Comparison> {
    let changes: Vec<f64> = trials.iter().filter_map(Trial::change).collect();
    if changes.len() < TRIALS_MIN {
        return None;
    }
    let change = bootstrap.median(&changes)?;
    Some(Comparison {
        trials: changes.len(),
        change,
    })
}

/// How two experiments on the same benchmark relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Both found a change in the same direction, or both none.
    pub agree: bool,
    /// Only one found a change: a possible one.
    pub possible_change: bool,
    /// The first's median lies in the second's interval.
    pub covered: bool,
    /// The second's median lies in the first's interval.
    pub covers: bool,
}

/// What a relative change with its intervals says of one experiment. A report has it among its verdicts only, which it keeps to itself
/// where a version differs from itself.
impl Intervals {
    /// Whether the percentile interval excludes 0, and on which side.
    pub fn decision(&self) -> Decision {
        if self.percentile.contains(0.0) {
            Decision::NoChange
        } else if self.percentile.low > 0.0 {
            Decision::Slower
        } else {
            Decision::Faster
        }
    }

    /// Whether a change was found that is small enough to be noise: below [`DOUBTFUL_BELOW`].
    pub fn is_doubtful(&self) -> bool {
        self.decision() != Decision::NoChange && self.estimate.abs() < DOUBTFUL_BELOW
    }

    /// Beside another experiment on the same benchmark.
    pub fn agreement(&self, other: &Self) -> Agreement {
        let covers = |by: &Interval, one: &Self| by.contains(one.estimate);
        let (one, two) = (self.decision(), other.decision());
        Agreement {
            agree: one == two,
            possible_change: (one == Decision::NoChange) != (two == Decision::NoChange),
            covered: covers(&other.percentile, self),
            covers: covers(&self.percentile, other),
        }
    }
}

/// The fewest of the first trials, in steps of `step` and at least [`TRIALS_MIN`], after which the interval of the median
/// change is no wider than `width`. None if it never is.
pub fn trials_until(
    trials: &[Trial],
    width: f64,
    step: usize,
    bootstrap: &Bootstrap,
) -> Option<usize> {
    (TRIALS_MIN..=trials.len())
        .step_by(step.max(1))
        .find(|&count| {
            compare(&trials[..count], bootstrap)
                .is_some_and(|found| found.change.percentile.width() <= width)
        })
}

/// The median relative change of trials, without an interval. None if none counts.
pub fn median_change(trials: &[Trial]) -> Option<f64> {
    let mut changes: Vec<f64> = trials.iter().filter_map(Trial::change).collect();
    median(&mut changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials of one benchmark whose second version takes `factor` times as long, with noise common to both versions, as two
    /// runs next to each other have it, and noise of 2 % of each one's own.
    fn trials(seed: u64, count: usize, factor: f64) -> Vec<Trial> {
        let mut random = fastrand::Rng::with_seed(seed);
        let trial = |_| {
            let common = 1.0 + 0.5 * random.f64();
            let mut own = || 1.0 + 0.02 * (random.f64() + random.f64() + random.f64() - 1.5);
            Trial {
                first: 100.0 * common * own(),
                second: 100.0 * common * own() * factor,
            }
        };
        (0..count).map(trial).collect()
    }

    /// Few resamples, because these tests make hundreds of intervals.
    fn bootstrap() -> Bootstrap {
        Bootstrap {
            resamples: 1_000,
            ..Bootstrap::default()
        }
    }

    fn found(seed: u64, factor: f64) -> Comparison {
        compare(&trials(seed, 45, factor), &bootstrap()).expect("enough trials")
    }

    /// The interval is at 99 %: of 100 benchmarks of equal versions about one is found to have changed by chance.
    #[test]
    fn of_equal_versions_hardly_any_is_found_to_differ() {
        let changed = (0..100)
            .filter(|&seed| found(seed, 1.0).change.decision() != Decision::NoChange)
            .count();
        assert!(changed <= 4, "{changed}");
    }

    #[test]
    fn a_slower_and_a_faster_version_are_found() {
        let decisions =
            |factor: f64| (0..20).map(move |seed| found(seed, factor).change.decision());
        assert!(decisions(1.05).all(|decision| decision == Decision::Slower));
        assert!(decisions(0.90).all(|decision| decision == Decision::Faster));
        let slower = found(3, 1.05);
        assert!((0.03..0.07).contains(&slower.change.estimate), "{slower:?}");
        assert!(
            slower.change.is_doubtful()
                && !found(3, 1.5).change.is_doubtful()
                && !found(3, 1.0).change.is_doubtful()
        );
    }

    #[test]
    fn too_few_trials_decide_nothing() {
        let few = trials(1, TRIALS_MIN - 1, 2.0);
        assert_eq!(compare(&few, &Bootstrap::default()), None);
        // Those without a relative change do not count.
        let mut none = trials(1, TRIALS_MIN, 2.0);
        none[4].first = 0.0;
        assert_eq!(compare(&none, &Bootstrap::default()), None);
        assert_eq!(median_change(&[]), None);
    }

    #[test]
    fn agreement_and_coverage_are_the_papers() {
        let (one, again, slower) = (found(1, 1.0), found(2, 1.0), found(3, 1.3));
        let agreement = one.change.agreement(&again.change);
        assert!(agreement.agree && !agreement.possible_change);
        assert!(agreement.covered && agreement.covers);
        let disagreement = one.change.agreement(&slower.change);
        assert!(!disagreement.agree && disagreement.possible_change);
        assert!(!disagreement.covered && !disagreement.covers);
    }

    #[test]
    fn more_trials_make_the_interval_as_narrow_as_asked() {
        let trials = trials(5, 200, 1.0);
        let bootstrap = bootstrap();
        let all = compare(&trials, &bootstrap).expect("enough trials");
        let wide = compare(&trials[..TRIALS_MIN], &bootstrap).expect("enough trials");
        let (narrow, wide) = (
            all.change.percentile.width(),
            wide.change.percentile.width(),
        );
        assert!(narrow < wide);
        let needed = trials_until(&trials, wide / 2.0, 3, &bootstrap).expect("reached");
        assert!(TRIALS_MIN < needed && needed <= trials.len(), "{needed}");
        assert_eq!(trials_until(&trials, wide, 3, &bootstrap), Some(TRIALS_MIN));
        assert_eq!(trials_until(&trials, 0.0, 50, &bootstrap), None);
    }
}
