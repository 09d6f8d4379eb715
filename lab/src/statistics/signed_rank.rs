//! Wilcoxon's signed-rank test (*Individual Comparisons by Ranking Methods*, Biometrics Bulletin 1, 1945).
//!
//! Of two versions that take the same, run in random order, either is as likely to be the slower one by any given factor. So the
//! logarithms of the factors are as likely to be positive as negative, whatever their distribution. The test asks how probable it is, if
//! that is so, that positive or negative ones have so much of the sum of ranks. What interrupts one execution moves its trial by some
//! ranks at most, and trials that differ much count more than those that hardly differ: with normal noise the sign test needs half as
//! many trials again.

use super::duet::Trial;
use super::normal;

/// Up to so many trials the p-value is exact, ties included. Beyond, it is by a normal distribution, whose tails are heavier: there are
/// rather too few changes found than too many.
const EXACT_MAX: usize = 60;

/// The two-sided p-value. Trials without a difference do not count; 1 if none does.
pub fn signed_rank(trials: &[Trial]) -> f64 {
    let with_change = trials.iter().filter(|trial| trial.change().is_some());
    two_sided(with_change.map(|trial| (trial.second / trial.first).ln()))
}

/// That of differences.
fn two_sided(differences: impl Iterator<Item = f64>) -> f64 {
    let mut differences: Vec<f64> = differences.filter(|one| *one != 0.0).collect();
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&differences);
    let sum: usize = ranks.iter().sum();
    let signed = ranks.iter().zip(&differences);
    let positive: usize = signed
        .filter(|(_, one)| one.is_sign_positive())
        .map(|(rank, _)| rank)
        .sum();
    let less = positive.min(sum - positive);
    let below = match ranks.len() <= EXACT_MAX {
        true => exactly(&ranks, less),
        false => nearly(&ranks, less),
    };
    (2.0 * below).min(1.0)
}

/// Twice the rank of each, by their sizes, which are sorted. Those of the same size share the mean of their ranks, which twice is whole.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a.abs().total_cmp(&b.abs()).is_eq()) {
        let before = ranks.len();
        let last = before + tied.len();
        ranks.resize(last, before + 1 + last);
    }
    ranks
}

/// The probability of a sum of at most `less` if each rank counts with probability 1/2.
fn exactly(ranks: &[usize], less: usize) -> f64 {
    // How probable each sum up to `less` is with the ranks so far.
    let mut sums = vec![0.0; less + 1];
    sums[0] = 1.0;
    for &rank in ranks {
        for sum in (0..=less).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |without| sums[without]);
            sums[sum] = f64::midpoint(sums[sum], with);
        }
    }
    sums.iter().sum()
}

/// The same by the normal distribution of that mean and variance, corrected for sums being whole.
fn nearly(ranks: &[usize], less: usize) -> f64 {
    let ranks = || ranks.iter().map(|&doubled| doubled as f64 / 2.0);
    let mean = ranks().sum::<f64>() / 2.0;
    let variance = ranks().map(|rank| rank * rank).sum::<f64>() / 4.0;
    let less = less as f64 / 2.0 + 0.5;
    normal::cdf((less - mean).min(0.0) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Differences, and SciPy's p-value.
    #[derive(Deserialize)]
    struct Case {
        name: String,
        differences: Vec<f64>,
        p: f64,
    }

    #[test]
    fn p_values_are_those_of_scipy() {
        let text = include_str!("../../tests/golden/signed_rank.json");
        let cases: Vec<Case> = serde_json::from_str(text).expect("the golden file");
        assert!(cases.len() >= 6);
        for case in cases {
            let found = two_sided(case.differences.iter().copied());
            assert!(
                (found - case.p).abs() <= case.p * 1e-9,
                "{}: {found}, not {}",
                case.name,
                case.p
            );
        }
    }

    #[test]
    fn both_sides_have_the_same_p_value() {
        let trial = |first: f64, second: f64| Trial { first, second };
        let slower: Vec<Trial> = (0..20).map(|n| trial(5.0, 4.5 + f64::from(n))).collect();
        let faster: Vec<Trial> = slower.iter().map(|t| trial(t.second, t.first)).collect();
        let found = signed_rank(&slower);
        assert!((found - signed_rank(&faster)).abs() < 1e-12 && found < 0.01);
    }

    #[test]
    fn trials_without_a_difference_or_a_time_do_not_count() {
        let trial = |first: f64, second: f64| Trial { first, second };
        let ten: Vec<Trial> = (1..=10).map(|n| trial(1.0, 1.0 + f64::from(n))).collect();
        let mut all = ten.clone();
        all.extend([trial(2.0, 2.0), trial(0.0, 0.0), trial(0.0, 1.0)]);
        assert_eq!(signed_rank(&ten), 2.0 / 1024.0);
        assert_eq!(signed_rank(&all), signed_rank(&ten));
        for none in [&all[10..], &[]] {
            assert_eq!(signed_rank(none), 1.0);
        }
        // Whoever takes no time at all is the faster one by more than all others.
        all.push(trial(1.0, 0.0));
        assert!(signed_rank(&all) > signed_rank(&ten));
    }
}
