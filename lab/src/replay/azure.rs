//! Azure's public traces of invocations, read by their published format
//! (<https://github.com/Azure/AzurePublicDataset>, `AzureFunctionsDataset2019.md` and `AzureFunctionsInvocationTrace2021.md`).
//!
//! | | columns | a line is |
//! | --- | --- | --- |
//! | 2019, `invocations_per_function_md.anon.d01.csv` | `HashOwner,HashApp,HashFunction,Trigger,1,…,1440` | a function's invocations in each minute of a day |
//! | 2021, `AzureFunctionsInvocationTraceForTwoWeeksJan2021.txt` | `app,func,end_timestamp,duration` | an invocation, seconds |
//!
//! Where in its minute an invocation of 2019 came is not known: it is drawn evenly, by the seed.

use std::io::BufRead;
use std::ops::Range;
use std::time::Duration;

use super::traffic::{ARRIVALS_MAX, Arrival, Traffic};
use crate::duet::events::Event;

/// Minutes of a day.
const MINUTES: usize = 1440;

/// Longest line: 1,440 numbers and four ids.
const LINE_MAX: usize = 64 << 10;

/// Latest time in a trace, in seconds: a year.
const TIME_MAX: f64 = 366.0 * 86_400.0;

/// The header of either file.
const HEADER_2019: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3";
const HEADER_2021: &str = "app,func,end_timestamp,duration";

/// Which part of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// A function's id; all functions without one.
    pub function: Option<String>,
    /// Seconds from the trace's begin.
    pub seconds: Range<f64>,
    /// Seed of the times within a minute.
    pub seed: u64,
}

/// Why a trace is refused.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not as the format says.
    #[error("line {line}: {rule}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it should be.
        rule: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// Nothing is left.
    #[error("no invocation of that function in that time")]
    Empty,
    /// Too much is left.
    #[error("more than {ARRIVALS_MAX} invocations: choose one function, or a shorter time")]
    TooMany,
}

/// Reads a trace, which tells by its header which one it is.
///
/// # Errors
/// The first line that is not as the format says, with its number; too many invocations, or none.
pub fn read(file: impl BufRead, part: &Part) -> Result<Traffic, TraceError> {
    let mut lines = Lines { file, number: 0 };
    let header = lines.next()?.unwrap_or_default();
    let mut times = Vec::new();
    let year = if header.starts_with(HEADER_2019) && header.split(',').count() == MINUTES + 4 {
        read_2019(&mut lines, part, &mut times)?;
        2019
    } else if header == HEADER_2021 {
        read_2021(&mut lines, part, &mut times)?;
        2021
    } else {
        return Err(TraceError::Line {
            line: 1,
            rule: format!("a header, {HEADER_2019},…,{MINUTES} or {HEADER_2021}"),
        });
    };
    if times.is_empty() {
        return Err(TraceError::Empty);
    }
    let arrival = |at: f64| Arrival {
        at: Duration::from_secs_f64(at),
        event: 0,
        recorded_run_ns: None,
        recorded_total_ns: None,
    };
    let mut traffic = Traffic {
        source: format!("Azure's trace of {year}"),
        arrivals: times.into_iter().map(arrival).collect(),
        events: vec![Event::empty()],
        own_events: 0,
    };
    traffic.settle();
    Ok(traffic)
}

fn read_2019(
    lines: &mut Lines<impl BufRead>,
    part: &Part,
    times: &mut Vec<f64>,
) -> Result<(), TraceError> {
    let mut random = fastrand::Rng::with_seed(part.seed);
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != MINUTES + 4 {
            let rule = format!("{} fields, not {}", MINUTES + 4, fields.len());
            return Err(lines.wrong(rule));
        }
        for (minute, field) in fields[4..].iter().enumerate() {
            let count: u64 = field.parse().map_err(|_| {
                let rule = format!(
                    "minute {}: {} is no number of invocations",
                    minute + 1,
                    shown(field)
                );
                lines.wrong(rule)
            })?;
            let begin = minute as f64 * 60.0;
            if count == 0
                || !is_wanted(part, fields[2])
                || begin + 60.0 <= part.seconds.start
                || begin >= part.seconds.end
            {
                continue;
            }
            // Checked before the loop, which would draw billions otherwise.
            if count > ARRIVALS_MAX as u64 * MINUTES as u64 {
                return Err(TraceError::TooMany);
            }
            for _ in 0..count {
                keep(part, times, begin + random.f64() * 60.0)?;
            }
        }
    }
    Ok(())
}

fn read_2021(
    lines: &mut Lines<impl BufRead>,
    part: &Part,
    times: &mut Vec<f64>,
) -> Result<(), TraceError> {
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').collect();
        let &[_, function, end, duration] = fields.as_slice() else {
            let rule = format!("4 fields, not {}", fields.len());
            return Err(lines.wrong(rule));
        };
        let seconds = |name: &str, text: &str| {
            let value = text.parse::<f64>().ok();
            let value = value.filter(|value| (0.0..=TIME_MAX).contains(value));
            let rule = || format!("{name}: {} is no number of seconds", shown(text));
            value.ok_or_else(|| lines.wrong(rule()))
        };
        // What ended shortly after the trace's begin may have begun before it.
        let at = (seconds("end_timestamp", end)? - seconds("duration", duration)?).max(0.0);
        if is_wanted(part, function) {
            keep(part, times, at)?;
        }
    }
    Ok(())
}

fn is_wanted(part: &Part, function: &str) -> bool {
    part.function
        .as_ref()
        .is_none_or(|wanted| wanted == function)
}

fn keep(part: &Part, times: &mut Vec<f64>, at: f64) -> Result<(), TraceError> {
    if part.seconds.contains(&at) {
        if times.len() >= ARRIVALS_MAX {
            return Err(TraceError::TooMany);
        }
        times.push(at);
    }
    Ok(())
}

/// A field in a message.
fn shown(field: &str) -> String {
    format!("{:?}", field.chars().take(40).collect::<String>())
}

struct Lines<R> {
    file: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    /// The next line without its end; empty ones are left out.
    fn next(&mut self) -> Result<Option<String>, TraceError> {
        loop {
            self.number += 1;
            let mut bytes = Vec::new();
            let mut part = std::io::Read::take(&mut self.file, LINE_MAX as u64 + 1);
            if part.read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            if bytes.len() > LINE_MAX {
                return Err(self.wrong(format!("at most {LINE_MAX} bytes")));
            }
            let text = String::from_utf8(bytes).map_err(|_| self.wrong("UTF-8".to_owned()))?;
            let line = text.trim_end_matches(['\r', '\n']);
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
    }

    fn wrong(&self, rule: String) -> TraceError {
        TraceError::Line {
            line: self.number,
            rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(function: Option<&str>, seconds: Range<f64>) -> Part {
        Part {
            function: function.map(str::to_owned),
            seconds,
            seed: 1,
        }
    }

    fn all() -> Part {
        part(None, 0.0..f64::INFINITY)
    }

    fn seconds(traffic: &Traffic) -> Vec<f64> {
        let times = traffic.arrivals.iter().map(|one| one.at.as_secs_f64());
        times.collect()
    }

    /// Lines of the published sample.
    const SAMPLE_2021: &str = "app,func,end_timestamp,duration\n\
        734272,313c03,5160.142570018768,0.134\n\
        17c37a,c9f8e3,5161.280997037888,0.013\r\n\
        7fa05b,9bc86d,5241.567729949951,42.356\n";

    fn day(counts: &[(&str, usize, u32)]) -> String {
        let minutes: Vec<String> = (1..=MINUTES).map(|minute| minute.to_string()).collect();
        let mut text = format!(
            "HashOwner,HashApp,HashFunction,Trigger,{}\n",
            minutes.join(",")
        );
        for (function, minute, count) in counts {
            let counted = (1..=MINUTES).map(|one| if one == *minute { *count } else { 0 });
            let counted: Vec<String> = counted.map(|count| count.to_string()).collect();
            text += &format!("o,a,{function},http,{}\n", counted.join(","));
        }
        text
    }

    #[test]
    fn invocations_of_2021_come_when_they_began() {
        let traffic = read(SAMPLE_2021.as_bytes(), &all()).expect("a trace");
        let found = seconds(&traffic);
        // 5241.57 − 42.36 is the last.
        let expected = [0.0, 1.259_427, 39.203_160];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found}");
        }
        let one = read(SAMPLE_2021.as_bytes(), &part(Some("9bc86d"), 0.0..1e9));
        assert_eq!(one.expect("a trace").arrivals.len(), 1);
        let none = read(SAMPLE_2021.as_bytes(), &part(None, 0.0..5000.0));
        assert!(matches!(none, Err(TraceError::Empty)));
    }

    #[test]
    fn invocations_of_2019_come_within_their_minutes() {
        let text = day(&[("f", 2, 3), ("g", 1440, 2)]);
        let traffic = read(text.as_bytes(), &part(Some("f"), 0.0..1e9)).expect("a trace");
        let found = seconds(&traffic);
        assert_eq!((found.len(), found[0]), (3, 0.0));
        assert!(found.is_sorted() && found[2] < 60.0, "{found:?}");
        assert_eq!(
            traffic,
            read(text.as_bytes(), &part(Some("f"), 0.0..1e9)).expect("again")
        );
        let late = read(text.as_bytes(), &part(None, 1439.0 * 60.0..86_400.0));
        assert_eq!(late.expect("a trace").arrivals.len(), 2);
        let many = day(&[("f", 1, u32::MAX)]);
        assert!(matches!(
            read(many.as_bytes(), &all()),
            Err(TraceError::TooMany)
        ));
    }

    #[test]
    fn broken_lines_are_named_by_their_numbers() {
        let broken_2019 = day(&[("f", 1, 1)]).replace("http,1,0", "http,-1,0");
        let short_2019 = day(&[]) + "o,a,f,http,1\n";
        for (text, expected) in [
            ("", "line 1: a header"),
            ("a,b\n", "line 1: a header"),
            (
                "app,func,end_timestamp,duration\na,b,1\n",
                "line 2: 4 fields, not 3",
            ),
            (
                "app,func,end_timestamp,duration\na,b,2,1\n\na,b,x,1\n",
                "line 4: end_timestamp: \"x\" is no number of seconds",
            ),
            (
                "app,func,end_timestamp,duration\na,b,2,NaN\n",
                "line 2: duration: \"NaN\" is no number",
            ),
            (
                "app,func,end_timestamp,duration\na,b,2,-1\n",
                "line 2: duration: \"-1\" is no number",
            ),
            (
                &broken_2019,
                "line 2: minute 1: \"-1\" is no number of invocations",
            ),
            (&short_2019, "line 2: 1444 fields, not 5"),
        ] {
            let error = read(text.as_bytes(), &all()).expect_err("it is broken");
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        let long = "x".repeat(LINE_MAX + 1);
        let error = read(long.as_bytes(), &all()).expect_err("it is long");
        assert!(error.to_string().starts_with("line 1: at most"), "{error}");
    }
}
