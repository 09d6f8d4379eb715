//! Durations as Go writes them: `0ms`, `1.5s`, `1m30s`.

use std::time::Duration;

const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
];

/// Parses one that is not negative. None if it is no duration.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let length = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        for (text, ms) in [
            ("0", 0),
            ("0ms", 0),
            ("100ms", 100),
            ("1.5s", 1_500),
            ("1m30s", 90_000),
            ("+2h", 7_200_000),
            (".5s", 500),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("250us"), Some(Duration::from_micros(250)));
        for bad in [
            "",
            "1",
            "s",
            "1 s",
            "-1s",
            "1x",
            "1.2.3s",
            "ms1",
            "+",
            "1e3s",
            "99999999999999999999h",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
