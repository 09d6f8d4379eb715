//! The benchmarks of the server: `make bench`.
//!
//! Each suite compares within one run, this against that, interleaved. Every percentile is *observed*: each request's own
//! latency, not corrected for coordinated omission. Results go to `target/bench/hearth.json`, a table to stdout.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

mod http;
mod memory;
mod processes;
mod report;
mod restore;
mod samples;
mod starts;
mod warm;

use std::process::ExitCode;

use report::Report;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Starts of an instance.
    pub starts: usize,
    /// Restores of a template from its image.
    pub restores: usize,
    /// Plain boots of the interpreter.
    pub boots: usize,
    /// First requests to a function without an instance.
    pub first_requests: usize,
    /// Requests at one connection, for each side.
    pub requests: usize,
    /// Requests at 16 connections.
    pub load: usize,
    /// Idle instances to measure memory and CPU with.
    pub instances: u32,
    /// Seconds over which idle CPU time is observed.
    pub idle_s: u64,
}

const FULL: Scale = Scale {
    starts: 1000,
    restores: 111,
    boots: 100,
    first_requests: 300,
    requests: 20_000,
    load: 200_000,
    instances: 100,
    idle_s: 20,
};
const QUICK: Scale = Scale {
    starts: 10,
    restores: 4,
    boots: 3,
    first_requests: 3,
    requests: 50,
    load: 320,
    instances: 4,
    idle_s: 1,
};

/// Measures one thing and adds it to the report.
type Suite = fn(Scale, &mut Report) -> anyhow::Result<()>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments
        .iter()
        .any(|argument| argument == http::BARE_SERVER)
    {
        return http::bare_server();
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments
        .iter()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .cloned();
    let scale = if quick { QUICK } else { FULL };
    let mut report = Report::new("hearth", quick);
    let suites: [(&str, Suite); 5] = [
        ("starts", starts::run),
        ("restore", restore::run),
        ("first-request", warm::first_requests),
        ("warm", warm::run),
        ("memory", memory::run),
    ];
    for (name, suite) in suites {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        if let Err(error) = suite(scale, &mut report) {
            eprintln!("hearth bench: {name}: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hearth bench: cannot write the report: {error}");
            ExitCode::FAILURE
        }
    }
}
