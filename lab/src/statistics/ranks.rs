//! Medians of long samples with an interval that needs no resampling, and how two of them differ.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::quantile::sort;

/// 99.5 % of a normal distribution lie within this many standard deviations, so that two such intervals hold together in 99 %.
const Z: f64 = 2.807;
/// Fewest samples: with fewer, the interval of the median reaches beyond them.
pub const SAMPLES_MIN: usize = 20;

/// A median and its interval at 99.5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// By order statistics: how many samples lie below the true median is binomial (Conover, *Practical Nonparametric Statistics*, 3.2).
    pub interval: Interval,
}

impl Middle {
    /// That of samples, which are sorted. None with fewer than [`SAMPLES_MIN`].
    pub fn of(samples: &mut [f64]) -> Option<Self> {
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        sort(samples);
        let count = samples.len() as f64;
        let reach = Z * count.sqrt() / 2.0;
        let low = (count / 2.0 - reach).floor().max(0.0) as usize;
        let high = (count / 2.0 + reach).ceil() as usize;
        let high = high.min(samples.len() - 1);
        let half = samples.len() / 2;
        let median = match samples.len().is_multiple_of(2) {
            true => f64::midpoint(samples[half - 1], samples[half]),
            false => samples[half],
        };
        Some(Self {
            median,
            interval: Interval {
                low: samples[low],
                high: samples[high],
            },
        })
    }

    /// How much longer this takes than `before`, as a share, with an interval at 99 % at least. None where `before` is 0.
    pub fn change_from(&self, before: &Self) -> Option<(f64, Interval)> {
        if before.interval.low <= 0.0 {
            return None;
        }
        let change = |now: f64, then: f64| now / then - 1.0;
        let interval = Interval {
            low: change(self.interval.low, before.interval.high),
            high: change(self.interval.high, before.interval.low),
        };
        Some((change(self.median, before.median), interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(seed: u64, count: usize, factor: f64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let sample = |_| 100.0 * factor * (1.0 + 0.2 * (random.f64() + random.f64() - 1.0));
        (0..count).map(sample).collect()
    }

    #[test]
    fn the_interval_is_that_of_the_binomial_distribution() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let middle = Middle::of(&mut samples).expect("enough");
        assert!((middle.median - 50.5).abs() < 1e-9);
        // qbinom(c(0.0025, 0.9975), 100, 0.5) of R is 36 and 64; rounded outwards.
        assert_eq!((middle.interval.low, middle.interval.high), (36.0, 66.0));
        assert_eq!(Middle::of(&mut [1.0; SAMPLES_MIN - 1]), None);
        assert_eq!(Middle::of(&mut [3.0; 21]).map(|one| one.median), Some(3.0));
    }

    #[test]
    fn a_change_is_found_and_the_same_is_not() {
        let middle = |seed, factor| Middle::of(&mut samples(seed, 2_000, factor)).expect("enough");
        let mut wrong = 0;
        for seed in 0..200 {
            let (before, same) = (middle(seed, 1.0), middle(seed + 1_000, 1.0));
            let (_, interval) = same.change_from(&before).expect("a change");
            wrong += usize::from(!interval.contains(0.0));
            let (change, interval) = middle(seed, 1.05).change_from(&before).expect("a change");
            assert!(
                (change - 0.05).abs() < 0.02 && interval.low > 0.0,
                "{change} {interval:?}"
            );
        }
        assert!(wrong <= 2, "{wrong} of 200 at 99 %");
        let none = Middle::of(&mut [0.0; 30]).expect("enough");
        assert_eq!(middle(1, 1.0).change_from(&none), None);
    }
}
