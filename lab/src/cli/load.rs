//! `hearth lab load`.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;

use super::job::tell;
use crate::job::load::{self, FAULTS_MAX, PAUSE_MS, Spacing, TIMEOUT_MS, render};
use crate::load::drive::Ended;
use crate::load::{Plan, Report, Trust, run};

/// Closed loop by default: each connection sends its next request after the answer to its last.
#[derive(Args)]
pub(super) struct Load {
    /// Address, beginning with http:// or https://
    url: String,
    /// GET, POST or PUT [default: POST with a body, otherwise GET]
    #[arg(long)]
    method: Option<String>,
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
    #[arg(long, value_enum, default_value_t = Spacing::default(), requires = "rate")]
    arrivals: Spacing,
    /// With --arrivals step: the highest rate, reached in ten steps during the run
    #[arg(long, requires = "rate")]
    to_rate: Option<f64>,
    /// Send so many requests at once, again and again
    #[arg(long)]
    burst: Option<usize>,
    /// Milliseconds before each burst
    #[arg(long, default_value_t = PAUSE_MS, requires = "burst")]
    pause_ms: u64,
    /// Time limit of a request in milliseconds
    #[arg(long, default_value_t = TIMEOUT_MS)]
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
#[derive(Args, Default, PartialEq, Eq)]
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

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Load {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let plan = self.plan()?;
        // Nothing of a run that is shorter than that.
        let last = Mutex::new(Some(Instant::now()));
        let mut watch = |progress| tell(&last, &load::told(&plan, progress));
        let outcome = run(&plan, None, &mut watch)?;
        let report = Report::of(&plan, &outcome);
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", render::text(&report));
        }
        if report.ended == Ended::TooManyFaults {
            bail!("given up after {} failed requests", self.faults_max);
        }
        Ok(())
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let trust = self.trust.read()?;
        let load = load::Load {
            method: self.method.clone(),
            headers: self.header.clone(),
            body: self.body.clone(),
            connections: self.connections,
            keep_alive: !self.no_keep_alive,
            duration_s: self.duration,
            count: self.count,
            rate: self.rate,
            arrivals: self.arrivals,
            to_rate: self.to_rate,
            seed: self.seed,
            burst: self.burst,
            pause_ms: self.pause_ms,
            timeout_ms: self.timeout_ms,
            faults_max: self.faults_max,
            insecure: trust.insecure,
            ca_pem: trust.ca_pem,
            ..load::Load::default()
        };
        let plan = load.plan(self.url.clone())?;
        Ok(Plan {
            processor: self.processor,
            ..plan
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::load::Schedule;

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
    fn flags_mean_what_the_fields_of_an_experiment_mean() {
        let plan = plan("--burst 100 --count 250 --no-keep-alive --processor 1").expect("a plan");
        let Schedule::Bursts { rounds } = plan.schedule else {
            panic!("bursts");
        };
        assert_eq!(
            (rounds.len(), plan.keep_alive, plan.processor),
            (3, 0, Some(1))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (arguments, expected) in [
            ("--burst 2000 --count 1", "burst: 1 to 1000"),
            ("--burst 1", "count: how many requests in all"),
            ("--burst 1 --count 1 --duration 1", "--duration"),
            (
                "--rate 9 --arrivals step --duration 1 --to-rate NaN",
                "to_rate: more than the rate",
            ),
            ("--duration NaN", "duration_s: more than 0"),
            ("--arrivals step", "--rate"),
        ] {
            let refused = plan(arguments).expect_err(arguments);
            assert!(refused.contains(expected), "{arguments}: {refused}");
        }
    }
}
