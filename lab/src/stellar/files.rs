//! The files of a run, in STeLLAR's layout:
//!
//! ```text
//! OUT/UNIX-SECONDS/run_logs.txt
//! OUT/UNIX-SECONDS/TITLE-memory128MB-img0MB-IAT3s-burst1-st0ms-payload0KB/latencies.csv
//!                                                                        /statistics.csv
//!                                                                        /data-transfers.csv
//!                                                                        /histograms/burst0_delta3s.svg
//! ```
//! STeLLAR's client writes the same bytes for the same answers and times. Its log has other lines; their form is the same.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde::Deserialize;

use super::experiment::SubExperiment;
use super::go;
use crate::load::Sample;
use crate::statistics::quantile::{mean, observed, sort, standard_deviation};

/// The directory of bursts' histograms, in that of their sub-experiment.
pub const HISTOGRAMS: &str = "histograms";

/// The directory of a sub-experiment, as STeLLAR calls it.
pub fn directory_name(experiment: &SubExperiment) -> String {
    format!(
        "{}-memory{}MB-img{}MB-IAT{}s-burst{}-st{}-payload{}KB",
        experiment.title,
        experiment.function_memory_mb,
        experiment.function_image_size_mb as i64,
        go::float(experiment.iat_seconds),
        experiment.burst_sizes.first().copied().unwrap_or(0),
        experiment
            .desired_service_times
            .first()
            .map_or("", String::as_str),
        experiment.payload_length_bytes / 1024,
    )
}

/// The file of a burst's histogram, by its number and the pause before it in ms. STeLLAR draws PNGs.
pub fn histogram_name(burst: usize, pause_ms: u64) -> String {
    format!(
        "{HISTOGRAMS}/burst{burst}_delta{}.svg",
        go::duration(pause_ms)
    )
}

/// Creates a directory of this name, with a number behind it if there is one of that name already: STeLLAR would overwrite the files of
/// another sub-experiment with the same title and settings.
///
/// # Errors
/// What the file system says.
pub fn create_directory(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let name = if number == 1 {
            name.to_owned()
        } else {
            format!("{name}-{number}")
        };
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            done => return done.map(|()| path),
        }
    }
}

/// What STeLLAR reads of a function's answer.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    #[serde(rename = "RequestID")]
    request_id: String,
    timestamp_chain: Vec<String>,
}

fn answer(body: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(body).replace("&#34;", "\"");
    serde_json::from_str(&text).unwrap_or_default()
}

/// The text of `latencies.csv`: a row for each good answer, in the order in which they were complete. `began_at` is when the samples'
/// clock began, in ns since 1970; `host` gives the host of a request's address.
pub fn latencies<'a>(
    samples: &[Sample],
    began_at: u64,
    zone: &TimeZone,
    host: impl Fn(u32) -> &'a str,
) -> String {
    let mut text = go::record(&[
        "Request ID",
        "Host",
        "Sent At",
        "Received At",
        "Client Latency (ms)",
        "Burst ID",
    ]);
    for sample in good(samples) {
        let answer = answer(sample.body.as_deref().unwrap_or_default());
        text += &go::record(&[
            &answer.request_id,
            host(sample.request),
            &go::time(began_at + sample.sent, zone),
            &go::time(began_at + sample.first, zone),
            &milliseconds(sample).to_string(),
            &sample.burst.to_string(),
        ]);
    }
    text
}

/// The text of `data-transfers.csv`, which chains of so many functions have: a row for each good answer, with the time at which each
/// function had it, in ms since 1970.
pub fn data_transfers<'a>(
    samples: &[Sample],
    functions: usize,
    host: impl Fn(u32) -> &'a str,
) -> String {
    let titles: Vec<String> = (0..functions)
        .map(|number| format!("Function {number} Timestamp"))
        .collect();
    let mut head = vec!["Request ID", "Host", "Burst ID"];
    head.extend(titles.iter().map(String::as_str));
    let mut text = go::record(&head);
    for sample in good(samples) {
        let answer = answer(sample.body.as_deref().unwrap_or_default());
        let burst = sample.burst.to_string();
        let mut fields = vec![answer.request_id.as_str(), host(sample.request), &burst];
        fields.extend(answer.timestamp_chain.iter().map(String::as_str));
        text += &go::record(&fields);
    }
    text
}

/// The text of `statistics.csv`, of the whole milliseconds in `latencies.csv`.
pub fn statistics(samples: &[Sample]) -> String {
    let mut latencies: Vec<f64> = good(samples)
        .map(|sample| milliseconds(sample) as f64)
        .collect();
    sort(&mut latencies);
    let mut text = go::record(&[
        "Count",
        "Mean",
        "Standard Deviation",
        "Min",
        "25%ile",
        "50%ile",
        "75%ile",
        "95%ile",
        "Max",
    ]);
    let mut fields = vec![
        latencies.len().to_string(),
        go::hundredths(mean(&latencies)),
        go::hundredths(standard_deviation(&latencies)),
    ];
    for p in [0.0, 0.25, 0.5, 0.75, 0.95, 1.0] {
        fields.push(go::hundredths(observed(&latencies, p).unwrap_or(f64::NAN)));
    }
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    text += &go::record(&fields);
    text
}

fn good(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    samples.iter().filter(|sample| sample.fault.is_none())
}

/// To the first byte, cut to whole milliseconds.
fn milliseconds(sample: &Sample) -> u64 {
    sample.to_first() / 1_000_000
}

/// `run_logs.txt`, in the form that STeLLAR's logger writes to a file.
#[derive(Debug)]
pub struct Log {
    file: File,
    zone: TimeZone,
}

impl Log {
    /// Creates the file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(directory: &Path, zone: TimeZone) -> io::Result<Self> {
        let file = File::create_new(directory.join("run_logs.txt"))?;
        Ok(Self { file, zone })
    }

    /// Adds a line; the time is in ns since 1970. A log that cannot be written does not end an experiment.
    pub fn line(&mut self, now: u64, level: &str, text: &str) {
        let time = go::time(now, &self.zone);
        let _ = writeln!(self.file, "time=\"{time}\" level={level} msg={text:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Fault;

    fn sample(burst: u32, sent_ms: u64, latency_us: u64, body: &str) -> Sample {
        Sample {
            request: burst % 2,
            burst,
            intended: sent_ms * 1_000_000,
            sent: sent_ms * 1_000_000,
            first: sent_ms * 1_000_000 + latency_us * 1_000,
            last: sent_ms * 1_000_000 + latency_us * 1_000 + 5,
            status: 200,
            body: Some(body.as_bytes().into()),
            ..Sample::default()
        }
    }

    /// The golden files are what STeLLAR's own writers give for these answers: `tests/golden/stellar.go`.
    #[test]
    fn files_are_those_of_stellar() {
        let samples = [
            sample(
                0,
                1_500,
                12_999,
                r#"{"RequestID": "a-1", "TimestampChain": ["1"]}"#,
            ),
            sample(0, 1_500, 999, "{&#34;RequestID&#34;: &#34;a-2&#34;}"),
            sample(
                1,
                3_999,
                1_001_000,
                r#"{"RequestID": "with, comma and \"quotes\""}"#,
            ),
            Sample {
                fault: Some(Fault::Status),
                status: 500,
                ..sample(1, 4_000, 1, "no")
            },
            sample(2, 9_000, 7_400, "no JSON"),
            sample(
                3,
                12_000,
                7_600,
                r#"{"RequestID": "a-5", "TimestampChain": ["1700000012253", "1700000012254", "1700000012256"]}"#,
            ),
        ];
        let hosts = ["127.0.0.1", "example.org"];
        let began_at = 1_700_000_000_250_000_000;
        let text = latencies(&samples, began_at, &TimeZone::UTC, |request| {
            hosts[request as usize]
        });
        assert_eq!(text, include_str!("../../tests/golden/latencies.csv"));
        assert_eq!(
            statistics(&samples),
            include_str!("../../tests/golden/statistics.csv")
        );
        let text = data_transfers(&samples, 3, |request| hosts[request as usize]);
        assert_eq!(text, include_str!("../../tests/golden/data-transfers.csv"));
    }

    #[test]
    fn one_sample_and_none_have_figures_as_go_prints_them() {
        let figures = |samples: &[Sample]| {
            let text = statistics(samples);
            text.lines().nth(1).map(str::to_owned)
        };
        let one = [sample(0, 0, 5_000, "")];
        assert_eq!(
            figures(&one).as_deref(),
            Some("1,5.00,NaN,5.00,5.00,5.00,5.00,5.00,5.00")
        );
        assert_eq!(
            figures(&[]).as_deref(),
            Some("0,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN")
        );
    }

    #[test]
    fn directories_are_named_as_stellar_names_them_and_never_shared() {
        let experiment = SubExperiment {
            title: "warm".to_owned(),
            function_image_size_mb: 10.9,
            iat_seconds: 0.5,
            burst_sizes: vec![100, 1],
            desired_service_times: vec!["100ms".to_owned()],
            payload_length_bytes: 2_047,
            ..SubExperiment::default()
        };
        let name = directory_name(&experiment);
        assert_eq!(
            name,
            "warm-memory128MB-img10MB-IAT0.5s-burst100-st100ms-payload1KB"
        );
        let parent = tempfile::tempdir().expect("a directory");
        let first = create_directory(parent.path(), &name).expect("made");
        let second = create_directory(parent.path(), &name).expect("made");
        assert_eq!(first, parent.path().join(&name));
        assert_eq!(second, parent.path().join(name + "-2"));
    }
}
