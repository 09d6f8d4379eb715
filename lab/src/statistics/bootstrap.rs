//! Bootstrap confidence intervals of medians (Efron and Tibshirani, *An Introduction to the Bootstrap*, chapters 13 and 14).
//!
//! Both intervals are what `scipy.stats.bootstrap` gives for the same resamples; `tests/golden/make.py` has SciPy compute the
//! values that the tests compare with.

use serde::{Deserialize, Serialize};

use super::normal;
use super::quantile::{linear, median, sort};

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Upper less lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// An estimate with its intervals, in the samples' unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// What the samples themselves give.
    pub estimate: f64,
    /// Percentile interval: quantiles of the resamples' estimates.
    pub percentile: Interval,
    /// Bias-corrected and accelerated interval. None where it is not defined: all estimates lie on one side of the samples' own,
    /// or leaving out one sample never changes it.
    pub bca: Option<Interval>,
}

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Number of resamples.
    pub resamples: usize,
    /// Share of intervals that hold the true value, between 0 and 1.
    pub confidence: f64,
    /// Seed of the resampling: the same samples and seed give the same interval.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// ElastiBench's 99 %; it does not say how many resamples, 10,000 is usual.
    fn default() -> Self {
        Self {
            resamples: 10_000,
            confidence: 0.99,
            seed: 1,
        }
    }
}

impl Bootstrap {
    /// Of the median of samples. None without samples.
    pub fn median(&self, samples: &[f64]) -> Option<Intervals> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        self.median_by(samples, &mut |count| random.usize(..count))
    }

    /// Of the second samples' median less the first's, which are independent of each other. None if either is empty.
    pub fn difference(&self, first: &[f64], second: &[f64]) -> Option<Intervals> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        self.difference_by(first, second, &mut |count| random.usize(..count))
    }

    /// [`Self::median`] with these indices, each below the argument it is asked with.
    fn median_by(
        &self,
        samples: &[f64],
        index: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Intervals> {
        let estimate = median(&mut samples.to_vec())?;
        let estimates = self.estimates(samples, index);
        self.intervals(estimate, estimates, &[left_out(samples)])
    }

    /// [`Self::difference`] with these indices: first those of all resamples of the first samples, then the second's.
    fn difference_by(
        &self,
        first: &[f64],
        second: &[f64],
        index: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Intervals> {
        let of_first = median(&mut first.to_vec())?;
        let of_second = median(&mut second.to_vec())?;
        let firsts = self.estimates(first, index);
        let mut estimates = self.estimates(second, index);
        for (estimate, first) in estimates.iter_mut().zip(firsts) {
            *estimate -= first;
        }
        // Leaving out one of the first samples shifts the estimate the other way.
        let without_first = left_out(first).into_iter().map(|m| of_second - m).collect();
        let without_second = left_out(second).into_iter().map(|m| m - of_first).collect();
        self.intervals(
            of_second - of_first,
            estimates,
            &[without_first, without_second],
        )
    }

    /// The median of each resample.
    fn estimates(&self, samples: &[f64], index: &mut dyn FnMut(usize) -> usize) -> Vec<f64> {
        let mut resample = vec![0.0; samples.len()];
        let one = |_| {
            for place in &mut resample {
                *place = samples[index(samples.len())];
            }
            median(&mut resample).unwrap_or(f64::NAN)
        };
        (0..self.resamples).map(one).collect()
    }

    /// From the estimates of resamples and, for each set of samples, those with one sample left out.
    fn intervals(
        &self,
        estimate: f64,
        mut estimates: Vec<f64>,
        without: &[Vec<f64>],
    ) -> Option<Intervals> {
        sort(&mut estimates);
        let alpha = (1.0 - self.confidence) / 2.0;
        let between = |low: f64, high: f64| {
            let (low, high) = (linear(&estimates, low)?, linear(&estimates, high)?);
            Some(Interval { low, high })
        };
        let bca =
            bca(alpha, estimate, &estimates, without).and_then(|(low, high)| between(low, high));
        Some(Intervals {
            estimate,
            percentile: between(alpha, 1.0 - alpha)?,
            bca,
        })
    }
}

/// Which quantiles of the estimates are the ends of the interval.
fn bca(alpha: f64, estimate: f64, sorted: &[f64], without: &[Vec<f64>]) -> Option<(f64, f64)> {
    let below = sorted.partition_point(|&one| one < estimate);
    let at_most = sorted.partition_point(|&one| one <= estimate);
    let bias = normal::quantile((below + at_most) as f64 / (2 * sorted.len()) as f64);
    let (mut cubes, mut squares) = (0.0, 0.0);
    for estimates in without {
        let count = estimates.len() as f64;
        let mean = estimates.iter().sum::<f64>() / count;
        let influence = estimates.iter().map(|one| (count - 1.0) * (mean - one));
        cubes += influence.clone().map(|u| u.powi(3)).sum::<f64>() / count.powi(3);
        squares += influence.map(|u| u.powi(2)).sum::<f64>() / count.powi(2);
    }
    let acceleration = cubes / squares.powf(1.5) / 6.0;
    let end = |z: f64| normal::cdf(bias + (bias + z) / (1.0 - acceleration * (bias + z)));
    let z = normal::quantile(alpha);
    let (low, high) = (end(z), end(-z));
    (low.is_finite() && high.is_finite() && bias.is_finite()).then_some((low, high))
}

/// The medians with each sample left out in turn.
fn left_out(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sort(&mut sorted);
    let count = sorted.len();
    if count < 2 {
        return vec![f64::NAN; count];
    }
    let without = |gone: usize| {
        // The rank among those that are left, as an index into all.
        let at = |rank: usize| sorted[rank + usize::from(rank >= gone)];
        let left = count - 1;
        f64::midpoint(at((left - 1) / 2), at(left / 2))
    };
    (0..count).map(without).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Deserialize)]
    struct Golden {
        scipy: String,
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        seed: u64,
        resamples: usize,
        confidence: f64,
        first: Vec<f64>,
        /// None: the median of the first.
        second: Option<Vec<f64>>,
        estimate: f64,
        percentile: [f64; 2],
        bca: Option<[f64; 2]>,
    }

    /// The indices that `tests/golden/make.py` gives to SciPy.
    fn indices(mut state: u64) -> impl FnMut(usize) -> usize {
        move |count| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % count
        }
    }

    fn assert_close(name: &str, found: f64, expected: f64) {
        let tolerance = expected.abs() * 1e-9 + 1e-12;
        assert!(
            (found - expected).abs() <= tolerance,
            "{name}: {found}, not {expected}"
        );
    }

    #[test]
    fn intervals_are_those_of_scipy() {
        let text = include_str!("../../tests/golden/bootstrap.json");
        let golden: Golden = serde_json::from_str(text).expect("the golden file");
        assert_eq!(golden.scipy, "1.17.1");
        assert!(golden.cases.len() >= 6);
        for case in golden.cases {
            let bootstrap = Bootstrap {
                resamples: case.resamples,
                confidence: case.confidence,
                seed: 0,
            };
            let mut index = indices(case.seed);
            let found = match &case.second {
                None => bootstrap.median_by(&case.first, &mut index),
                Some(second) => bootstrap.difference_by(&case.first, second, &mut index),
            };
            let found = found.expect("samples");
            assert_close(&case.name, found.estimate, case.estimate);
            assert_close(&case.name, found.percentile.low, case.percentile[0]);
            assert_close(&case.name, found.percentile.high, case.percentile[1]);
            assert_eq!(found.bca.is_some(), case.bca.is_some(), "{}", case.name);
            if let (Some(found), Some([low, high])) = (found.bca, case.bca) {
                assert_close(&case.name, found.low, low);
                assert_close(&case.name, found.high, high);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let samples: Vec<f64> = (0..45).map(|n| f64::from(n * n % 17)).collect();
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.median(&samples), bootstrap.median(&samples));
        assert_eq!(bootstrap.median(&[]), None);
        assert_eq!(bootstrap.difference(&samples, &[]), None);
    }

    /// The promise of a confidence level, kept by simulation with fixed seeds: of 200 intervals at 90 % around 180 hold the
    /// true median. A binomial of that size is within ± 17 in all but one of 10,000 runs.
    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut percentile, mut bca) = (0, 0);
        for seed in 0..200 {
            // Exponential, which is skewed; its median is ln 2.
            let samples: Vec<f64> = (0..60).map(|_| -(1.0 - random.f64()).ln()).collect();
            let bootstrap = Bootstrap {
                resamples: 300,
                confidence: 0.9,
                seed,
            };
            let found = bootstrap.median(&samples).expect("samples");
            let truth = std::f64::consts::LN_2;
            percentile += u32::from(found.percentile.contains(truth));
            bca += u32::from(found.bca.expect("spread").contains(truth));
        }
        assert!(
            (163..=197).contains(&percentile),
            "percentile: {percentile}"
        );
        assert!((163..=197).contains(&bca), "BCa: {bca}");
    }

    proptest! {
        #[test]
        fn leaving_one_out_is_the_median_of_the_rest(samples in prop::collection::vec(-1e6_f64..1e6, 2..40)) {
            let mut sorted = samples.clone();
            sort(&mut sorted);
            for (gone, found) in left_out(&samples).into_iter().enumerate() {
                let mut rest = sorted.clone();
                rest.remove(gone);
                prop_assert_eq!(Some(found), median(&mut rest));
            }
        }
    }
}
