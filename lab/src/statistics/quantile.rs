//! Order statistics of sorted samples.

/// Sorts samples ascending. NaN has no rank: callers keep it out, and it would sort last.
pub fn sort(samples: &mut [f64]) {
    samples.sort_unstable_by(f64::total_cmp);
}

/// The smallest sample that at least `p` of all samples do not exceed: the inverse of the empirical distribution function
/// (type 1 of Hyndman and Fan, gonum's `Empirical`). None without samples. `p` is held within 0 and 1.
///
/// Every value it returns was observed. It is what STeLLAR's `statistics.csv` has.
pub fn observed(sorted: &[f64], p: f64) -> Option<f64> {
    let count = sorted.len();
    // Ranks begin at 1; a rank that is a whole number names that sample.
    let rank = (p.clamp(0.0, 1.0) * count as f64).ceil() as usize;
    sorted.get(rank.clamp(1, count.max(1)) - 1).copied()
}

/// The quantile with linear interpolation between neighbours (type 7 of Hyndman and Fan, NumPy's default). None without
/// samples. `p` is held within 0 and 1.
pub fn linear(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = p.clamp(0.0, 1.0) * last as f64;
    let below = (at.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = at - below as f64;
    let (low, high) = (sorted[below], sorted[above]);
    // NumPy's way round, which keeps the result between its neighbours.
    Some(if share >= 0.5 {
        high - (high - low) * (1.0 - share)
    } else {
        low + (high - low) * share
    })
}

/// The median, which is the mean of the middle two where their number is even. Reorders the samples. None without samples.
pub fn median(samples: &mut [f64]) -> Option<f64> {
    let middle = samples.len() / 2;
    if samples.is_empty() {
        return None;
    }
    let is_even = samples.len().is_multiple_of(2);
    let (below, &mut high, _) = samples.select_nth_unstable_by(middle, f64::total_cmp);
    if !is_even {
        return Some(high);
    }
    let low = below.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(low, high))
}

/// The arithmetic mean; NaN without samples.
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The standard deviation with Bessel's correction; NaN with fewer than two samples.
pub fn standard_deviation(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return f64::NAN;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_observed_quantile_is_the_sample_of_that_rank() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        for (p, expected) in [
            (0.0, 1.0),
            (0.04, 1.0),
            (0.05, 1.0),
            (0.051, 2.0),
            (0.5, 10.0),
            (0.95, 19.0),
            (0.951, 20.0),
            (1.0, 20.0),
            (7.0, 20.0),
        ] {
            assert_eq!(observed(&sorted, p), Some(expected), "{p}");
        }
        assert_eq!(observed(&[], 0.5), None);
    }

    #[test]
    fn without_samples_there_is_nothing() {
        assert_eq!(linear(&[], 0.5), None);
        assert_eq!(median(&mut []), None);
        assert!(mean(&[]).is_nan());
        assert!(standard_deviation(&[1.0]).is_nan());
    }

    proptest! {
        #[test]
        fn quantiles_lie_between_their_neighbours(
            mut samples in prop::collection::vec(-1e9_f64..1e9, 1..60),
            p in 0.0_f64..=1.0,
        ) {
            sort(&mut samples);
            let found = observed(&samples, p).expect("samples");
            let at_most = samples.iter().filter(|sample| **sample <= found).count();
            prop_assert!(at_most as f64 >= p * samples.len() as f64);
            prop_assert!(samples.contains(&found));
            let between = linear(&samples, p).expect("samples");
            prop_assert!(samples[0] <= between && between <= samples[samples.len() - 1]);
        }

        #[test]
        fn the_median_is_the_middle_quantile(mut samples in prop::collection::vec(-1e9_f64..1e9, 1..60)) {
            let found = median(&mut samples).expect("samples");
            sort(&mut samples);
            let expected = linear(&samples, 0.5).expect("samples");
            prop_assert!((found - expected).abs() <= expected.abs() * 1e-12 + 1e-12);
        }
    }
}
