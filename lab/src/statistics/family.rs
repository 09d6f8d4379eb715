//! Many comparisons in one experiment.
//!
//! An interval at 99 % excludes 0 by chance for one in a hundred benchmarks that have not changed, so that a suite of a hundred reports a
//! change nearly always. ElastiBench decides each benchmark by its interval alone. Here a change must also stand among the others: by
//! the [signed-rank test](super::signed_rank) of its trials, with Holm's correction (*A Simple Sequentially Rejective Multiple Test
//! Procedure*, 1979), all changes of an experiment together are there by chance with at most the probability that one interval is wrong
//! with.

use serde::{Deserialize, Serialize};

use super::duet::{Comparison, Decision};

/// What is said of a benchmark among the others of its experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its interval includes 0.
    NoChange,
    /// Its interval excludes 0, as that of one among so many benchmarks may by chance.
    Possible,
    /// The second version takes less time.
    Faster,
    /// The second version takes more time.
    Slower,
}

impl Verdict {
    /// Whether a change was found.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

/// The verdicts on the benchmarks of one experiment, each a comparison and its p-value. `confidence` is that of the intervals.
pub fn verdicts(found: &[(Comparison, f64)], confidence: f64) -> Vec<Verdict> {
    let alpha = 1.0 - confidence;
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|a, b| found[*a].1.total_cmp(&found[*b].1));
    let mut verdicts = vec![Verdict::NoChange; found.len()];
    let mut stands = true;
    for (rank, &index) in order.iter().enumerate() {
        let (comparison, p) = &found[index];
        stands &= *p <= alpha / (found.len() - rank) as f64;
        verdicts[index] = match comparison.change.decision() {
            Decision::NoChange => Verdict::NoChange,
            // A single benchmark is decided by its interval, as in the paper.
            _ if !stands && found.len() > 1 => Verdict::Possible,
            Decision::Faster => Verdict::Faster,
            Decision::Slower => Verdict::Slower,
        };
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::Bootstrap;
    use super::super::duet::{Trial, compare};
    use super::super::signed_rank::signed_rank;
    use super::*;

    /// 45 trials of each of a hundred benchmarks, as one experiment of 3 repeats in 15 calls has them. The second version takes `factor`
    /// times as long. Noise of a call is common to both, each has its own of 3 % (standard deviation) beside it, and one in twenty
    /// executions is interrupted by something else that takes up to half of its time again.
    fn experiment(seed: u64, factor: f64) -> Vec<Verdict> {
        let mut random = fastrand::Rng::with_seed(seed);
        let bootstrap = Bootstrap {
            resamples: 2_000,
            ..Bootstrap::default()
        };
        let mut benchmark = |_| {
            let trials: Vec<Trial> = (0..45)
                .map(|_| {
                    let common = 1.0 + 0.3 * random.f64();
                    let mut own = || {
                        // Irwin and Hall's: twelve uniform numbers less 6 are normal to the eye.
                        let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                        let outlier = if random.u8(..20) == 0 {
                            0.5 * random.f64()
                        } else {
                            0.0
                        };
                        1.0 + 0.03 * normal + outlier
                    };
                    let (first, second) = (own(), own());
                    Trial {
                        first: 1e6 * common * first,
                        second: 1e6 * common * second * factor,
                    }
                })
                .collect();
            let comparison = compare(&trials, &bootstrap).expect("enough trials");
            (comparison, signed_rank(&trials))
        };
        let found: Vec<_> = (0..100).map(&mut benchmark).collect();
        verdicts(&found, bootstrap.confidence)
    }

    fn count(verdicts: &[Verdict], one: Verdict) -> usize {
        verdicts.iter().filter(|verdict| **verdict == one).count()
    }

    #[test]
    fn of_a_hundred_equal_benchmarks_none_is_found_to_have_changed() {
        for seed in 1..=3 {
            let found = experiment(seed, 1.0);
            assert!(found.iter().all(|verdict| !verdict.is_change()), "{seed}");
            assert!(count(&found, Verdict::Possible) <= 5, "{seed}");
        }
    }

    #[test]
    fn a_slowdown_of_5_percent_is_found_in_95_of_a_hundred_and_of_10_percent_in_all() {
        let found = experiment(4, 1.05);
        assert!(count(&found, Verdict::Slower) >= 95, "{found:?}");
        assert_eq!(count(&found, Verdict::Faster), 0);
        assert_eq!(count(&experiment(5, 1.10), Verdict::Slower), 100);
        assert_eq!(count(&experiment(6, 0.90), Verdict::Faster), 100);
    }

    #[test]
    fn a_single_benchmark_is_decided_by_its_interval() {
        let trials: Vec<Trial> = (0..TRIALS)
            .map(|n| Trial {
                first: 100.0,
                second: 110.0 + f64::from(n),
            })
            .collect();
        let comparison = compare(&trials, &Bootstrap::default()).expect("enough trials");
        assert_eq!(verdicts(&[(comparison, 1.0)], 0.99), [Verdict::Slower]);
        let two = [(comparison, 1.0), (comparison, 0.0)];
        assert_eq!(verdicts(&two, 0.99), [Verdict::Possible, Verdict::Slower]);
    }

    const TRIALS: i32 = 12;
}
