//! The lab by itself, as its users run it: what its load generator adds beside wrk, how well open loops keep their rate, whether duets
//! find what is there and nothing else, the tail table of this host, and what a suite of Go benchmarks takes beside its benchmarks.
//!
//! Parts are minutes long. [`ROWS`] selects some by their names, as `ROWS="duets"`.

mod duets;
mod generator;
mod go;
mod open;
mod tail;
mod wrk;

use std::time::{Duration, Instant};

use anyhow::Context;
use hearth_lab::load::process::Generator;
use hearth_lab::load::{Arrivals, Plan, Report, Request, Sample, Schedule, Trust};
use hearth_lab::platform::client::Client;

use super::Suite;
use super::compare::ROWS;
use crate::client::TOKEN;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Server, executable};

pub use self::open::{OPEN, RATE_ERROR, RATES, Spacing};
pub use duets::{
    BENCHMARKS, COLUMNS as DUET_COLUMNS, DUETS, Duet, FOUND, PERCENTILES, changes, percentile,
};
pub use generator::{CLOSED, CONNECTIONS, LAB, WRK, difference, row};
pub use go::{GO, RATIO};
pub use tail::{COLUMNS as TAIL_COLUMNS, PAPER_TMR, TAIL, TMR, TRIVIAL};

/// Units, which are the columns of the report's tables, too.
pub const RATE: &str = "requests/s";
/// Median.
pub const P50: &str = "µs, p50";
/// 99th percentile.
pub const P99: &str = "µs, p99";
/// Processor time of the load generator.
pub const CPU: &str = "µs of CPU/request";

/// The parts by name, in their order.
const PARTS: [(&str, Suite); 5] = [
    ("generator", generator::run),
    ("open", open::run),
    ("duets", duets::run),
    ("tail", tail::run),
    ("go", go::run),
];

/// The part that a quick run leaves out unless it is asked for.
const SLOWEST: &str = "go";

/// Measures all parts, or those that are asked for.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let wanted = std::env::var(ROWS).unwrap_or_default();
    for (name, part) in PARTS {
        if scale.quick && wanted.is_empty() && name == SLOWEST {
            let reason = format!(
                "packing a tool chain takes a minute in a quick run's build; ROWS={name} measures it"
            );
            document.skip(GO, reason);
        } else if is_wanted(name, &wanted) {
            let begun = Instant::now();
            part(scale, document).context(name)?;
            println!("lab, {name}: {} s", begun.elapsed().as_secs());
        }
    }
    Ok(())
}

/// Whether a part is asked for: all are without a word, else those in whose names one of the words is.
fn is_wanted(part: &str, words: &str) -> bool {
    words.trim().is_empty() || words.split_whitespace().any(|word| part.contains(word))
}

/// What the lab's asynchronous functions run on.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// The lab's client of a server.
fn client(server: &Server) -> anyhow::Result<Client> {
    Ok(Client::new(&format!("http://{}", server.address), TOKEN)?)
}

/// The lab's load generator, a process of its own, as `hearth lab` starts it.
fn load_generator() -> anyhow::Result<Generator> {
    Ok(Generator {
        program: executable()?,
        arguments: ["lab", "generator"].map(Into::into).to_vec(),
    })
}

/// Runs the load generator on the first processor. A request that fails ends it.
fn load(
    url: &str,
    connections: usize,
    schedule: Schedule,
) -> anyhow::Result<(Report, Vec<Sample>)> {
    let plan = Plan {
        requests: vec![Request {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }],
        schedule,
        connections,
        keep_alive: connections,
        timeout_ms: 10_000,
        capture_bytes: 0,
        faults_max: Some(0),
        processor: Some(0),
        trust: Trust::default(),
    };
    plan.check()?;
    let generator = load_generator()?;
    let (report, samples) = runtime()?.block_on(generator.run(&plan, |_| {}))?;
    anyhow::ensure!(
        report.good == report.sent && report.good > 0,
        "{} of {} requests were answered",
        report.good,
        report.sent
    );
    Ok((report, samples))
}

/// For so long.
fn closed(lasts: Duration) -> Schedule {
    Schedule::Closed {
        duration_ms: Some(lasts.as_millis() as u64),
        count: None,
    }
}

/// For so long, at these times.
fn open_loop(arrivals: Arrivals, ms: u64) -> Schedule {
    Schedule::Open {
        arrivals,
        duration_ms: Some(ms),
        count: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_by_words() {
        let chosen = |words: &str| -> Vec<&str> {
            let names = PARTS.iter().map(|(name, _)| *name);
            names.filter(|name| is_wanted(name, words)).collect()
        };
        assert_eq!(chosen(" "), ["generator", "open", "duets", "tail", "go"]);
        assert_eq!(chosen("duet tail"), ["duets", "tail"]);
        assert!(chosen("nothing").is_empty());
    }
}
