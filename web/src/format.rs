//! Numbers and times as a person reads them. The exact value stands beside or in the tooltip.

use jiff::{Timestamp, Unit};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A duration in µs with three significant digits: `742 µs`, `1.23 ms`, `45.6 ms`, `1.23 s`, `2 min 5 s`.
pub fn duration_us(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..999_500 => format!("{} ms", three_digits(us as f64 / 1e3)),
        999_500..59_995_000 => format!("{} s", three_digits(us as f64 / 1e6)),
        _ => {
            let seconds = us.saturating_add(500_000) / 1_000_000;
            match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
                (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
                (hours, minutes, _) => format!("{hours} h {minutes} min"),
            }
        }
    }
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A size in bytes: `0 B`, `1023 B`, `1.5 KiB`, `12 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be shown as "1024": the next unit says it better.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = UNITS[unit];
    if value < 99.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A count with its thousands set apart by commas: `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How long before `now` something happened: `just now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`.
///
/// What lies in the future (another clock's time) is `just now` as well.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    match seconds {
        ..3 => "just now".to_owned(),
        3..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// How long after `now` something will happen: `in 12 s`, `in 3 min`, `in 5 h`, `in 2 d`, `in 3 years`; `now` when it is
/// past.
pub fn until(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.as_second() - now.as_second();
    match seconds {
        ..1 => "now".to_owned(),
        1..60 => format!("in {seconds} s"),
        60..3_600 => format!("in {} min", seconds / 60),
        3_600..86_400 => format!("in {} h", seconds / 3_600),
        86_400..63_072_000 => format!("in {} d", seconds / 86_400),
        _ => format!("in {} years", seconds / 31_557_600),
    }
}

/// Date and time in UTC to the millisecond: `2025-01-31 10:11:12.345 UTC`.
pub fn absolute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

/// Time of day in UTC to the millisecond: `10:11:12.345`.
pub fn time_of_day(at: Timestamp) -> String {
    at.strftime("%H:%M:%S%.3f").to_string()
}

/// The day in UTC: `2025-01-31`.
pub fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// RFC 3339 in UTC to the millisecond, for `<time datetime>`.
pub fn machine(at: Timestamp) -> String {
    at.round(Unit::Millisecond).unwrap_or(at).to_string()
}

/// `1 error`, `2 errors`: the word with an s unless there is exactly one.
pub fn plural(count: u64, word: &str) -> String {
    let number = self::count(count);
    if count == 1 {
        format!("{number} {word}")
    } else {
        format!("{number} {word}s")
    }
}

/// All but the unreserved characters of a URL (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes all but unreserved characters.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A path with the fields of a query that are not empty. The names need no encoding.
pub(crate) fn address<'a>(
    path: String,
    fields: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut address = path;
    let mut separator = '?';
    for (name, value) in fields {
        if !value.is_empty() {
            address.push(separator);
            address.push_str(name);
            address.push('=');
            address.push_str(&encode(value));
            separator = '&';
        }
    }
    address
}

/// A rate: `0`, `0.4`, `12.3`, `1,234`, so that it says little where little is known.
pub fn rate(per_second: f64) -> String {
    if per_second < 0.05 {
        "0".to_owned()
    } else if per_second < 99.95 {
        format!("{per_second:.1}")
    } else {
        count(per_second.round() as u64)
    }
}

/// A share of something as a percentage: `0%`, `0.4%`, `12%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// A long duration in its two largest units: `42 s`, `5 min`, `3 h 12 min`, `8 d 4 h`.
pub fn uptime(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn the_future_is_told_like_the_past() {
        let now = at("2025-01-31T10:00:00Z");
        for (then, text) in [
            ("2025-01-31T09:00:00Z", "now"),
            ("2025-01-31T10:00:00Z", "now"),
            ("2025-01-31T10:00:59Z", "in 59 s"),
            ("2025-01-31T10:59:59Z", "in 59 min"),
            ("2025-02-01T09:59:59Z", "in 23 h"),
            ("2025-03-02T10:00:00Z", "in 30 d"),
            ("2028-02-01T10:00:00Z", "in 3 years"),
        ] {
            assert_eq!(until(at(then), now), text, "{then}");
        }
    }

    #[test]
    fn durations_keep_three_digits_across_units() {
        for (us, text) in [
            (0, "0 µs"),
            (742, "742 µs"),
            (999, "999 µs"),
            (1_000, "1.00 ms"),
            (1_234, "1.23 ms"),
            (9_994, "9.99 ms"),
            (9_999, "10.0 ms"),
            (45_678, "45.7 ms"),
            (99_999, "100 ms"),
            (999_499, "999 ms"),
            (999_500, "1.00 s"),
            (59_994_999, "60.0 s"),
            (59_995_000, "1 min 0 s"),
            (125_400_000, "2 min 5 s"),
            (125_500_000, "2 min 6 s"),
            (7_260_000_000, "2 h 1 min"),
        ] {
            assert_eq!(duration_us(us), text, "{us}");
        }
        assert!(duration_us(u64::MAX).ends_with("min"));
    }

    #[test]
    fn bytes_change_unit_before_they_read_1024() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (6 * 1024 * 1024, "6.0 MiB"),
            (300 * 1024 * 1024, "300 MiB"),
        ] {
            assert_eq!(bytes(value), text, "{value}");
        }
        assert!(bytes(u64::MAX).ends_with("TiB"));
    }

    #[test]
    fn rates_shares_and_long_times_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.04, "0"),
            (0.4, "0.4"),
            (12.34, "12.3"),
            (1_234.5, "1,235"),
        ] {
            assert_eq!(rate(value), text);
        }
        for (value, text) in [(0.0, "0%"), (0.004, "0.4%"), (0.12, "12%"), (1.0, "100%")] {
            assert_eq!(percent(value), text);
        }
        for (value, text) in [
            (42, "42 s"),
            (300, "5 min"),
            (11_520, "3 h 12 min"),
            (705_600, "8 d 4 h"),
        ] {
            assert_eq!(uptime(value), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(value), text);
        }
        assert_eq!(plural(1, "error"), "1 error");
        assert_eq!(plural(0, "error"), "0 errors");
    }

    #[test]
    fn relative_times_never_lie_in_the_future() {
        let now = at("2025-03-01T12:00:00Z");
        for (then, text) in [
            ("2025-03-01T12:00:30Z", "just now"),
            ("2025-03-01T11:59:58Z", "just now"),
            ("2025-03-01T11:59:18Z", "42 s ago"),
            ("2025-03-01T11:00:01Z", "59 min ago"),
            ("2025-03-01T02:00:00Z", "10 h ago"),
            ("2025-02-01T12:00:00Z", "28 d ago"),
        ] {
            assert_eq!(relative(at(then), now), text);
        }
    }

    #[test]
    fn absolute_times_are_in_utc_to_the_millisecond() {
        let moment = at("2025-01-31T10:11:12.345678Z");
        assert_eq!(absolute(moment), "2025-01-31 10:11:12.345 UTC");
        assert_eq!(time_of_day(moment), "10:11:12.345");
        assert_eq!(machine(moment), "2025-01-31T10:11:12.346Z");
    }
}
