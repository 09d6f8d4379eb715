//! The median of a few values and its confidence interval, by the sign test on order statistics, which assumes nothing
//! about the distribution (Conover, "Practical Nonparametric Statistics", 3rd ed., 3.2).

/// Median of sorted values.
pub(super) fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Interval that holds the median of what sorted values were drawn from with at least 95 % confidence; none for fewer than
/// six values.
pub(super) fn interval_of_median(sorted: &[f64]) -> Option<(f64, f64)> {
    let count = sorted.len();
    // The chance that at most `skipped` of the values lie below the median, each by the toss of a coin.
    let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut sum, mut skipped) = (0.0, None);
    for below in 0..count {
        sum += chance;
        if sum > 0.025 {
            break;
        }
        skipped = Some(below);
        chance *= (count - below) as f64 / (below + 1) as f64;
    }
    let skipped = skipped?;
    Some((sorted[skipped], sorted[count - 1 - skipped]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conover's table A3 and any textbook: of 10 values the 2nd and the 9th, of 24 the 7th and the 18th.
    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        let values = |count: i32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval_of_median(&values(5)), None);
        assert_eq!(interval_of_median(&values(6)), Some((1.0, 6.0)));
        assert_eq!(interval_of_median(&values(10)), Some((2.0, 9.0)));
        assert_eq!(interval_of_median(&values(24)), Some((7.0, 18.0)));
    }

    #[test]
    fn the_middle_of_an_even_count_is_between_two() {
        assert_eq!(middle(&[1.0, 3.0]), 2.0);
        assert_eq!(middle(&[1.0, 2.0, 30.0]), 2.0);
    }
}
