//! Human-readable numbers.

/// A duration in the unit that suits it, to three digits.
pub fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e10 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", number(value))
}

/// A percentile, or a dash where there were too few samples for it.
pub fn percentile(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| "–".to_owned(), time)
}

/// A number to three digits, or all of them before the point, with commas.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let rest = rest.trim_end_matches('0').trim_end_matches('.');
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        assert_eq!(time(39.9), "39.9 ns");
        assert_eq!(time(1_281_000.0), "1.28 ms");
        assert_eq!(time(55_000.0), "55 µs");
        assert_eq!(time(1_001_234_567.0), "1,001 ms");
        assert_eq!(time(12_000_000_000.0), "12 s");
    }

    #[test]
    fn numbers_have_three_digits_or_commas() {
        assert_eq!(number(25_123.4), "25,123");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(0.904), "0.9");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(-1234.0), "-1,234");
    }
}
