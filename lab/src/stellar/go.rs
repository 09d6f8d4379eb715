//! How Go formats numbers, times and CSV fields.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `%v` of a float64: the shortest digits that give the same number, with an exponent below 1e-4 and from 1e6 on.
pub(super) fn float(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return match number {
            n if n.is_nan() => "NaN".to_owned(),
            n if n.is_infinite() => if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
            n => if n.is_sign_negative() { "-0" } else { "0" }.to_owned(),
        };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `%.2f`.
pub(super) fn hundredths(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    format!("{number:.2}")
}

/// `%v` of a `time.Duration` of whole milliseconds.
pub(super) fn duration(milliseconds: u64) -> String {
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    if milliseconds < 1_000 {
        return format!("{milliseconds}ms");
    }
    let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    let seconds = rest as f64 / 1e3;
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// RFC 3339 in whole seconds; `Z` in UTC. The time is in ns since 1970.
pub(super) fn time(nanoseconds: u64, zone: &TimeZone) -> String {
    let timestamp =
        Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(Timestamp::UNIX_EPOCH);
    let text = timestamp
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string();
    match text.strip_suffix("+00:00") {
        Some(utc) => format!("{utc}Z"),
        None => text,
    }
}

/// A line of `encoding/csv`.
pub(super) fn record(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    fields.join(",") + "\n"
}

fn field(text: &str) -> String {
    let needs_quotes = text == r"\."
        || text.contains([',', '"', '\r', '\n'])
        || text.starts_with(char::is_whitespace);
    if !needs_quotes {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go 1.26 prints.
    #[test]
    fn numbers_are_printed_as_go_does() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (600.0, "600"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.234567e+06"),
            (1e20, "1e+20"),
            (-2.5e100, "-2.5e+100"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(float(number), text);
        }
        assert_eq!(
            (hundredths(2.345), hundredths(f64::NAN)),
            ("2.35".to_owned(), "NaN".to_owned())
        );
    }

    #[test]
    fn durations_are_printed_as_go_does() {
        for (milliseconds, text) in [
            (0, "0s"),
            (1, "1ms"),
            (999, "999ms"),
            (3_000, "3s"),
            (4_098, "4.098s"),
            (60_000, "1m0s"),
            (61_500, "1m1.5s"),
            (3_600_000, "1h0m0s"),
            (86_399_001, "23h59m59.001s"),
        ] {
            assert_eq!(duration(milliseconds), text);
        }
    }

    #[test]
    fn times_and_fields_are_written_as_go_does() {
        let utc = TimeZone::UTC;
        assert_eq!(
            time(1_700_000_000_999_999_999, &utc),
            "2023-11-14T22:13:20Z"
        );
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(
            time(1_700_000_000_000_000_000, &east),
            "2023-11-15T00:13:20+02:00"
        );
        assert_eq!(
            record(&["a", "", "b,c", "d\"e", " f", "g h"]),
            "a,,\"b,c\",\"d\"\"e\",\" f\",g h\n"
        );
    }
}
