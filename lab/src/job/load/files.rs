//! Files of a load.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::load::{Report, Sample};
use crate::plot::cdf::{self, Line, Panel};
use crate::plot::curve::{self, Axis, Curve};
use crate::plot::{histogram, percentiles};
use crate::statistics::quantile::{linear, sort};

/// Most lines of `samples.csv`: a server keeps files of 32 MiB, and a line has at most a hundred bytes.
const LINES_MAX: u64 = 300_000;

/// Of so many requests each one has a line of `samples.csv`.
pub(super) fn step(sent: u64) -> u64 {
    sent.div_ceil(LINES_MAX).max(1)
}

/// Points of the curves over time.
const SLICES: usize = 60;

/// `samples.csv` and the plots.
pub(super) fn write(
    directory: &Path,
    title: &str,
    report: &Report,
    samples: &[Sample],
) -> io::Result<()> {
    csv(
        BufWriter::new(File::create_new(directory.join("samples.csv"))?),
        samples.iter().step_by(step(report.sent) as usize),
    )?;
    let latencies = latencies(report, samples);
    let lines: Vec<Line<'_>> = latencies
        .iter()
        .map(|(name, sorted_ns)| Line { name, sorted_ns })
        .collect();
    if lines.is_empty() {
        // No request was answered.
        return Ok(());
    }
    let panel = Panel {
        title,
        lines: lines.clone(),
    };
    fs::write(directory.join("cdf.svg"), cdf::draw(title, &[panel]))?;
    fs::write(
        directory.join("histogram.svg"),
        histogram::draw(title, &lines),
    )?;
    fs::write(
        directory.join("percentiles.svg"),
        percentiles::draw(title, &lines),
    )?;
    fs::write(
        directory.join("over_time.svg"),
        over_time(title, report, samples),
    )
}

/// A line for each of them, in the order in which they were over. Times are in ns from the run's begin.
fn csv<'a>(mut out: impl Write, samples: impl Iterator<Item = &'a Sample>) -> io::Result<()> {
    writeln!(
        out,
        "burst,intended_ns,sent_ns,connected_ns,first_byte_ns,last_byte_ns,status,bytes,fault"
    )?;
    for one in samples {
        let fault = one.fault.map_or("", super::render::word);
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{fault}",
            one.burst,
            one.intended,
            one.sent,
            one.connected,
            one.first,
            one.last,
            one.status,
            one.bytes
        )?;
    }
    out.flush()
}

/// What latency means, and those of good answers, ascending. Corrected ones where requests have times.
fn latencies(report: &Report, samples: &[Sample]) -> Vec<(&'static str, Vec<f64>)> {
    let sorted = |of: fn(&Sample) -> u64| {
        let good = samples.iter().filter(|one| one.fault.is_none());
        let mut latencies: Vec<f64> = good.map(|one| of(one) as f64).collect();
        sort(&mut latencies);
        latencies
    };
    let mut all = vec![("first byte", sorted(Sample::to_first))];
    let has_times = report.to_first_byte.corrected_ns.is_some();
    if has_times {
        all.push(("first, corrected", sorted(Sample::to_first_corrected)));
    }
    all.push(("last byte", sorted(Sample::to_last)));
    if has_times {
        all.push(("last, corrected", sorted(Sample::to_last_corrected)));
    }
    all.retain(|(_, latencies)| !latencies.is_empty());
    all
}

/// Median and tail by when requests were intended.
fn over_time(title: &str, report: &Report, samples: &[Sample]) -> String {
    let has_times = report.to_first_byte.corrected_ns.is_some();
    // Those that are sent at last may be answered after the run's own time.
    let whole = report.elapsed_ns.max(1);
    let mut slices: Vec<[Vec<f64>; 2]> = vec![Default::default(); SLICES];
    for one in samples.iter().filter(|one| one.fault.is_none()) {
        let slice = u128::from(one.intended) * SLICES as u128 / u128::from(whole);
        let slice = &mut slices[(slice as usize).min(SLICES - 1)];
        slice[0].push(one.to_first() as f64);
        if has_times {
            slice[1].push(one.to_first_corrected() as f64);
        }
    }
    let kinds = [
        ("p50", 0, 0.5),
        ("p99", 0, 0.99),
        ("p99, corrected", 1, 0.99),
    ];
    let curve = |(name, which, share): (&str, usize, f64)| {
        let point = |(index, slice): (usize, &mut [Vec<f64>; 2])| {
            sort(&mut slice[which]);
            let ns = linear(&slice[which], share)?;
            let from = whole as f64 / 1e9 * index as f64 / SLICES as f64;
            let means = format!("{from:.1} s: {:.3} ms of {}", ns / 1e6, slice[which].len());
            Some((from, ns / 1e6, means))
        };
        Curve {
            name: name.to_owned(),
            points: slices
                .iter_mut()
                .enumerate()
                .filter_map(point)
                .collect::<Vec<_>>(),
        }
    };
    let curves: Vec<Curve> = kinds.into_iter().map(curve).collect();
    let curves: Vec<Curve> = curves
        .into_iter()
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let axes = [
        Axis {
            name: "time from the begin, s",
        },
        Axis {
            name: "to the first byte, ms",
        },
    ];
    curve::draw(title, axes, &curves, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_samples_have_a_line_unless_there_are_too_many() {
        for (sent, expected) in [(0, 1), (300_000, 1), (300_001, 2), (5_000_000, 17)] {
            assert_eq!(step(sent), expected, "{sent}");
        }
        let most = u64::from(u32::MAX) * 20_000;
        let longest = Sample {
            burst: 99_999,
            intended: most,
            sent: most,
            connected: most,
            first: most,
            last: most,
            status: 200,
            bytes: 1 << 33,
            ..Sample::default()
        };
        let mut text = Vec::new();
        csv(&mut text, [longest].iter()).expect("written");
        let line = text.split(|byte| *byte == b'\n').nth(1).expect("a line");
        assert!(line.len() as u64 * LINES_MAX < 32 << 20, "{}", line.len());
    }
}
