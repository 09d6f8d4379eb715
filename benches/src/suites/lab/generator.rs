//! The load generator in a closed loop beside wrk, in turns, against the same trivial server. The server has the last processor, the
//! generators share the first.
//!
//! One connection compares what each adds to a request at equal load: there is one request under way. With more, the loop is as fast
//! as the slower of generator and server, and latency is the connections over the rate.

use std::time::Duration;

use hearth_lab::load::{Report, Sample};

use super::{CPU, P50, P99, RATE, closed, load, wrk};
use crate::peers::Peer;
use crate::results::Document;
use crate::scale::Scale;
use crate::suites::median::{interval_of_median, middle};

/// The category.
pub const CLOSED: &str = "load generator, closed loop";
/// Connections.
pub const CONNECTIONS: [usize; 2] = [1, 16];
/// What the report calls them.
pub const LAB: &str = "hearth lab load";
/// The same.
pub const WRK: &str = "wrk";

/// Turns of each. The p99 of turns with several connections differs two to three times as much as with one.
fn rounds(connections: usize) -> usize {
    if connections == 1 { 120 } else { 300 }
}

/// How long one is. Where another program runs for some milliseconds they are the turn's p99, so that turns have to be short for most of
/// them to be spared.
pub(super) const TURN: Duration = Duration::from_millis(200);

/// The row of a generator.
pub fn row(connections: usize, generator: &str) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("{connections} connection{plural}: {generator}")
}

/// The row of what the lab adds: the median of the rounds' differences, with the ends of its interval beside it.
pub fn difference(connections: usize, end: &str) -> String {
    row(connections, &format!("{LAB} less {WRK}{end}"))
}

/// What a turn has shown; latencies and processor time of a request in µs.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) rate: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) cpu: Option<f64>,
}

impl Turn {
    /// Of the lab. Each program is corrected at its own pace: what a stall adds is then the same share of all samples at any pace.
    fn of(report: &Report, samples: &[Sample], connections: usize) -> Self {
        let interval_us = 1e6 * connections as f64 / report.rate;
        let latencies = samples.iter().map(Sample::to_last);
        let [p50, p99] = wrk::percentiles(latencies, interval_us as u64, [0.5, 0.99]);
        Self {
            rate: report.rate,
            p50,
            p99,
            cpu: Some(report.processor_ns as f64 / 1e3 / report.sent as f64),
        }
    }
}

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let (_server, address) = Peer::Trivial.start()?;
    let url = format!("http://{address}/");
    let has_wrk = wrk::available();
    if let Err(reason) = has_wrk {
        document.skip(WRK, reason);
    }
    for connections in CONNECTIONS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..scale.pick(rounds(connections), 1) {
            for turn in 0..2 {
                // Either is first in every second round.
                if (round + turn) % 2 == 0 {
                    let schedule = closed(TURN);
                    let (report, samples) = load(&url, connections, schedule)?;
                    ours.push(Turn::of(&report, &samples, connections));
                } else if has_wrk.is_ok() {
                    theirs.push(wrk::turn(&url, connections)?);
                }
            }
        }
        conclude(&row(connections, LAB), &ours, document);
        if has_wrk.is_ok() {
            conclude(&row(connections, WRK), &theirs, document);
            compare(connections, &ours, &theirs, document);
        }
    }
    Ok(())
}

/// Medians of the turns.
fn conclude(row: &str, turns: &[Turn], document: &mut Document) {
    let mut add = |unit, of: fn(&Turn) -> Option<f64>| {
        let mut all: Vec<f64> = turns.iter().filter_map(of).collect();
        if !all.is_empty() {
            all.sort_by(f64::total_cmp);
            document.figure(CLOSED, row, middle(&all), unit);
        }
    };
    add(RATE, |turn| Some(turn.rate));
    add(P50, |turn| Some(turn.p50));
    add(P99, |turn| Some(turn.p99));
    add(CPU, |turn| turn.cpu);
}

fn compare(connections: usize, ours: &[Turn], theirs: &[Turn], document: &mut Document) {
    let mut add = |unit, of: fn(&Turn) -> f64| {
        let rounds = ours.iter().zip(theirs);
        let mut all: Vec<f64> = rounds.map(|(ours, theirs)| of(ours) - of(theirs)).collect();
        all.sort_by(f64::total_cmp);
        document.figure(CLOSED, &difference(connections, ""), middle(&all), unit);
        if let Some((low, high)) = interval_of_median(&all) {
            document.figure(CLOSED, &difference(connections, ", from"), low, unit);
            document.figure(CLOSED, &difference(connections, ", to"), high, unit);
        }
    };
    add(P50, |turn| turn.p50);
    add(P99, |turn| turn.p99);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(p50: f64, p99: f64) -> Turn {
        Turn {
            rate: 1e6 / p50,
            p50,
            p99,
            cpu: None,
        }
    }

    #[test]
    fn what_the_lab_adds_is_the_median_of_the_rounds_differences() {
        let mut document = Document::new("lab");
        // The machine gets slower from round to round, for both.
        let ours: Vec<Turn> = (0..7).map(|n| turn(22.0 + f64::from(n), 40.0)).collect();
        let theirs: Vec<Turn> = (0..7).map(|n| turn(20.0 + f64::from(n), 45.0)).collect();
        conclude(&row(1, LAB), &ours, &mut document);
        compare(1, &ours, &theirs, &mut document);
        let value = |row: &str, unit| document.value_in(CLOSED, row, unit);
        assert_eq!(value(&row(1, LAB), P50), Some(25.0));
        assert_eq!(value(&row(1, LAB), CPU), None);
        assert_eq!(value(&difference(1, ""), P50), Some(2.0));
        assert_eq!(value(&difference(1, ", to"), P99), Some(-5.0));
        assert_eq!(row(16, WRK), "16 connections: wrk");
    }
}
