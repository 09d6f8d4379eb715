//! Open loops: how far the rate is from the planned one, and how much later than planned requests are sent.

use std::time::Duration;

use hearth_lab::load::Arrivals;
use hearth_lab::statistics::Tail;

use super::{CPU, P50, P99, load, open_loop};
use crate::peers::Peer;
use crate::results::Document;
use crate::scale::Scale;
use crate::suites::median::middle;

/// The category. Its times are by how much later than planned requests were sent.
pub const OPEN: &str = "load generator, open loop";
/// Unit of the rate's error.
pub const RATE_ERROR: &str = "% off the rate";
/// Requests per second.
pub const RATES: [f64; 4] = [100.0, 1_000.0, 5_000.0, 10_000.0];

/// Connections, as `hearth lab load --rate` has them by default.
const CONNECTIONS: usize = 100;
/// Runs of each rate, and how long one is.
const RUNS: u64 = 6;
const RUN: Duration = Duration::from_secs(2);
const QUICK_RUN: Duration = Duration::from_millis(200);

/// Between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// The same time.
    Fixed,
    /// Exponentially distributed times.
    Exponential,
}

impl Spacing {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Fixed, Self::Exponential];

    fn arrivals(self, rate: f64, seed: u64) -> Arrivals {
        match self {
            Self::Fixed => Arrivals::Fixed { rate },
            Self::Exponential => Arrivals::Exponential { rate, seed },
        }
    }

    /// Its row.
    pub fn row(self, rate: f64) -> String {
        let name = match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
        };
        format!("{name}, {rate}/s")
    }
}

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let (_server, address) = Peer::Trivial.start()?;
    let url = format!("http://{address}/");
    for rate in RATES {
        for spacing in Spacing::ALL {
            let (mut worst, mut medians, mut tails) = (0.0_f64, Vec::new(), Vec::new());
            let (mut processor_ns, mut sent) = (0, 0);
            for run in 0..scale.pick(RUNS, 1) {
                let ms = scale.pick(RUN, QUICK_RUN).as_millis() as u64;
                let schedule = open_loop(spacing.arrivals(rate, run + 1), ms);
                let (report, samples) = load(&url, CONNECTIONS, schedule)?;
                worst = worst.max(report.rate_error.map_or(0.0, f64::abs));
                let late = samples.iter().map(|sample| {
                    // A request is never sent before its time.
                    sample.sent.saturating_sub(sample.intended) as f64
                });
                if let Some(late) = Tail::of(&mut late.collect::<Vec<_>>()) {
                    medians.push(late.median / 1e3);
                    tails.push(late.p99 / 1e3);
                }
                processor_ns += report.processor_ns;
                sent += report.sent;
            }
            let row = spacing.row(rate);
            document.figure(OPEN, &row, worst * 100.0, RATE_ERROR);
            for (mut of_runs, unit) in [(medians, P50), (tails, P99)] {
                if !of_runs.is_empty() {
                    of_runs.sort_by(f64::total_cmp);
                    document.figure(OPEN, &row, middle(&of_runs), unit);
                }
            }
            let cpu = processor_ns as f64 / 1e3 / sent as f64;
            document.figure(OPEN, &row, cpu, CPU);
        }
    }
    Ok(())
}
