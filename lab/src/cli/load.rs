//! `hearth lab load`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use crate::load::drive::Ended;
use crate::load::plan::{CONNECTIONS_MAX, REQUESTS_MAX};
use crate::load::report::Latency;
use crate::load::{Arrivals, Burst, Plan, Report, Request, Round, Schedule, Trust, run};
use crate::statistics::Tail;

/// Failed requests after which a run is given up unless told otherwise: a server that refuses each one at once would keep a processor
/// busy for nothing.
const FAULTS_MAX: u64 = 1_000;

/// Closed loop by default: each connection sends its next request after the answer to its last.
#[derive(Args)]
pub(super) struct Load {
    /// Address, beginning with http:// or https://
    url: String,
    /// GET, POST or PUT
    #[arg(long, default_value = "GET")]
    method: String,
    /// Header as "name: value"; may be repeated
    #[arg(long, value_parser = header)]
    header: Vec<(String, String)>,
    /// Body of each request
    #[arg(long, default_value = "")]
    body: String,
    /// Most connections at a time [default: 1, or as many as a burst has requests, or 100 with --rate]
    #[arg(long)]
    connections: Option<usize>,
    /// Seconds to send for [default: 10, unless there is a count]
    #[arg(long, conflicts_with = "burst")]
    duration: Option<f64>,
    /// Requests to send
    #[arg(long)]
    count: Option<u64>,
    /// Open loop: requests per second, sent at their times whether or not those before are answered
    #[arg(long, conflicts_with = "burst")]
    rate: Option<f64>,
    /// Time between the requests of an open loop
    #[arg(long, value_enum, default_value_t = Spacing::Fixed, requires = "rate")]
    arrivals: Spacing,
    /// With --arrivals step: the highest rate, reached in ten steps during the run
    #[arg(long, requires = "rate")]
    to_rate: Option<f64>,
    /// Send so many requests at once, again and again
    #[arg(long)]
    burst: Option<usize>,
    /// Milliseconds before each burst
    #[arg(long, default_value_t = 1_000, requires = "burst")]
    pause_ms: u64,
    /// Time limit of a request in milliseconds
    #[arg(long, default_value_t = 30_000)]
    timeout_ms: u64,
    /// Open a connection for each request
    #[arg(long)]
    no_keep_alive: bool,
    /// Failed requests after which the run is given up
    #[arg(long, default_value_t = FAULTS_MAX)]
    faults_max: u64,
    /// Processor to run on
    #[arg(long)]
    processor: Option<usize>,
    /// Seed of the exponential times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    trust: Certificates,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Whose certificates `https` addresses may have.
#[derive(Args, Default)]
pub(super) struct Certificates {
    /// With https: believe the certificates in this file (PEM), too
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// With https: believe any certificate
    #[arg(long)]
    insecure: bool,
}

impl Certificates {
    pub(super) fn read(&self) -> anyhow::Result<Trust> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).with_context(|| format!("--ca {}", path.display()))
        };
        Ok(Trust {
            insecure: self.insecure,
            ca_pem: self.ca.as_ref().map(read).transpose()?,
        })
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Spacing {
    Fixed,
    Exponential,
    Step,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Load {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let plan = self.plan()?;
        plan.check()?;
        let outcome = run(&plan, None, &mut |_| {})?;
        let report = Report::of(&plan, &outcome);
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print(&report);
        }
        if report.ended == Ended::TooManyFaults {
            bail!("given up after {} failed requests", self.faults_max);
        }
        Ok(())
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let seconds = match (self.duration, self.count) {
            (None, None) => Some(10.0),
            (seconds, _) => seconds,
        };
        if seconds.is_some_and(|seconds| seconds.is_nan() || seconds <= 0.0) {
            bail!("duration: more than 0");
        }
        let duration_ms = seconds.map(|seconds| (seconds * 1e3).ceil() as u64);
        let count = self.count;
        let schedule = match (self.rate, self.burst) {
            (Some(rate), _) => {
                let arrivals = self.arrivals(rate, seconds)?;
                Schedule::Open {
                    arrivals,
                    duration_ms,
                    count,
                }
            }
            (None, Some(size)) => {
                let Some(count) = count else {
                    bail!("count: how many requests in all, with --burst");
                };
                Schedule::Bursts {
                    rounds: self.rounds(size, count)?,
                }
            }
            (None, None) => Schedule::Closed { duration_ms, count },
        };
        let by_default = match (self.burst, self.rate) {
            (Some(size), _) => size.min(CONNECTIONS_MAX),
            (None, Some(_)) => 100,
            (None, None) => 1,
        };
        let connections = self.connections.unwrap_or(by_default);
        Ok(Plan {
            requests: vec![Request {
                method: self.method.clone(),
                url: self.url.clone(),
                headers: self.header.clone(),
                body: self.body.clone(),
            }],
            schedule,
            connections,
            keep_alive: if self.no_keep_alive { 0 } else { connections },
            timeout_ms: self.timeout_ms,
            capture_bytes: 0,
            faults_max: Some(self.faults_max),
            processor: self.processor,
            trust: self.trust.read()?,
        })
    }

    /// Bursts of this size, the last one of what is left.
    fn rounds(&self, size: usize, count: u64) -> anyhow::Result<Vec<Round>> {
        if !(1..=CONNECTIONS_MAX).contains(&size) {
            bail!("burst: 1 to {CONNECTIONS_MAX}");
        }
        if !(1..=REQUESTS_MAX).contains(&count) {
            bail!("count: 1 to {REQUESTS_MAX}");
        }
        let round = |from: u64| Round {
            pause_ms: self.pause_ms,
            bursts: vec![Burst {
                request: 0,
                size: (count - from).min(size as u64) as usize,
            }],
        };
        Ok((0..count).step_by(size).map(round).collect())
    }

    fn arrivals(&self, rate: f64, seconds: Option<f64>) -> anyhow::Result<Arrivals> {
        Ok(match self.arrivals {
            Spacing::Fixed => Arrivals::Fixed { rate },
            Spacing::Exponential => Arrivals::Exponential {
                rate,
                seed: self.seed,
            },
            Spacing::Step => {
                let (Some(to), Some(seconds)) = (self.to_rate, seconds) else {
                    bail!("arrivals: step needs --to-rate and --duration");
                };
                if to.is_nan() || to <= rate {
                    bail!("to-rate: more than --rate");
                }
                Arrivals::Step {
                    from: rate,
                    by: (to - rate) / 9.0,
                    to,
                    every_ms: (seconds * 100.0).ceil() as u64,
                }
            }
        })
    }
}

/// For people. Latencies are in microseconds.
fn print(report: &Report) {
    println!(
        "{} requests in {:.2} s, {:.1} per second; {} answered with 200, {} unsent",
        report.sent,
        report.elapsed_ns as f64 / 1e9,
        report.rate,
        report.good,
        report.unsent
    );
    for (fault, count) in &report.faults {
        println!("failed ({}): {count}", format!("{fault:?}").to_lowercase());
    }
    println!(
        "{:34}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "µs", "p50", "p90", "p99", "p99.9", "max"
    );
    latency("to the first byte", &report.to_first_byte);
    latency("to the last byte", &report.to_last_byte);
    if let Some(tail) = &report.send_delay_ns {
        row("sent later than intended", tail);
    }
    if let Some(error) = report.rate_error {
        println!("rate error: {:+.3} %", error * 100.0);
    }
    println!(
        "load generator: {:.3} s of processor time, {:.1} % of a processor",
        report.processor_ns as f64 / 1e9,
        report.processor_share * 100.0
    );
}

fn latency(name: &str, latency: &Latency) {
    if let Some(tail) = &latency.uncorrected_ns {
        row(&format!("{name}, uncorrected"), tail);
    }
    if let Some(tail) = &latency.corrected_ns {
        row(&format!("{name}, corrected"), tail);
    }
}

fn row(name: &str, tail: &Tail) {
    let figures = [tail.median, tail.p90, tail.p99, tail.p999, tail.max];
    let columns: String = figures
        .iter()
        .map(|ns| format!("{:>11.1}", ns / 1e3))
        .collect();
    println!("{name:34}{columns}");
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        load: Load,
    }

    fn plan(arguments: &str) -> Result<Plan, String> {
        let words = ["load", "http://127.0.0.1:1/"].into_iter();
        let command = Command::try_parse_from(words.chain(arguments.split_whitespace()));
        let command = command.map_err(|error| error.to_string())?;
        command.load.plan().map_err(|error| error.to_string())
    }

    #[test]
    fn bursts_send_as_many_requests_as_asked() {
        let Ok(Schedule::Bursts { rounds }) =
            plan("--burst 100 --count 250").map(|plan| plan.schedule)
        else {
            panic!("bursts");
        };
        let sizes: Vec<usize> = rounds.iter().map(|round| round.bursts[0].size).collect();
        assert_eq!(sizes, [100, 100, 50]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_the_flag() {
        for (arguments, expected) in [
            ("--burst 0 --count 1", "burst: 1 to 1000"),
            ("--burst 2000 --count 1", "burst: 1 to 1000"),
            ("--burst 1", "count: how many requests in all"),
            ("--burst 1 --count 0", "count: 1 to 5000000"),
            (
                "--burst 1 --count 18446744073709551615",
                "count: 1 to 5000000",
            ),
            ("--burst 1 --count 1 --duration 1", "--duration"),
            (
                "--rate 9 --arrivals step --duration 1 --to-rate 9",
                "to-rate: more than --rate",
            ),
            (
                "--rate 9 --arrivals step --duration 1 --to-rate NaN",
                "to-rate: more than --rate",
            ),
            ("--duration 0", "duration: more than 0"),
        ] {
            let refused = plan(arguments).expect_err(arguments);
            assert!(refused.contains(expected), "{arguments}: {refused}");
        }
    }
}
