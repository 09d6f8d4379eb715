//! The benchmarks: `make bench`.
//!
//! ```text
//! hearth-bench [--quick] [--out DIR] [SUITE…]   measures, a result file for each suite
//! hearth-bench check FILE…                      whether these are result files
//! hearth-bench report FROM TO                   writes the report on the result files in FROM
//! ```
//! Each suite compares alternatives within one run, interleaved. Every percentile is *observed*: each request's own
//! latency, not corrected for coordinated omission.
//!
//! The modules are listed so that each uses only those below it. Read them in this order: [`suites`] (what is
//! measured), [`peers`] and [`process`] (compared with what), [`results`] (what is kept), [`report`] (how it is
//! presented).
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

mod report;

mod suites;

mod floor;

mod server;

mod runtime;

mod baselines;
mod peers;
mod process;
mod processes;

mod burst;
mod load;

mod crowd;

mod client;
mod results;
mod scale;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use results::Document;
use scale::Scale;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(process::FLAG) => process::execute(&arguments[1..]),
        Some(peers::FLAG) => peers::run(arguments.get(1).map_or("", String::as_str)),
        Some("check") => arguments[1..]
            .iter()
            .try_for_each(|file| Document::read(Path::new(file)).map(|_| println!("{file}: good"))),
        Some("report") => match &arguments[1..] {
            [from, to] => report::write(Path::new(from), Path::new(to)),
            _ => Err(anyhow::anyhow!("report FROM TO")),
        },
        _ => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hearth bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Names of suites and of their parts.
fn known() -> impl Iterator<Item = &'static str> {
    let (all, parts) = (suites::ALL.iter(), suites::PARTS.iter());
    all.chain(parts).map(|(name, _)| *name)
}

fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let mut scale = Scale { quick: false };
    let mut out = PathBuf::from("target/bench");
    let mut wanted: Vec<&str> = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => scale.quick = true,
            "--out" => out = arguments.next().context("--out needs a directory")?.into(),
            name if known().any(|known| known == name) => wanted.push(name),
            other => {
                let known: Vec<&str> = known().collect();
                bail!(
                    "there is no suite {other:?}; there are: {}",
                    known.join(", ")
                );
            }
        }
    }
    let all = suites::ALL.into_iter().map(|suite| (suite, true));
    let parts = suites::PARTS.into_iter().map(|part| (part, false));
    for ((name, suite), by_default) in all.chain(parts) {
        let run = if wanted.is_empty() {
            by_default
        } else {
            wanted.contains(&name)
        };
        if !run {
            continue;
        }
        let mut document = Document::new(name);
        let begun = std::time::Instant::now();
        suite(scale, &mut document).with_context(|| name.to_owned())?;
        let file = document.write(&out)?;
        println!(
            "{name}: {} s, written to {}",
            begun.elapsed().as_secs(),
            file.display()
        );
    }
    Ok(())
}
