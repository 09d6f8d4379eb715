//! Files of a load.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::load::{Report, Sample};
use crate::plot::cdf::{self, Line, Panel};
use crate::plot::curve::{self, Axis, Curve};
use crate::plot::{histogram, percentiles};
use crate::statistics::quantile::{linear, sort};

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
        samples,
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

/// A line for each request, in the order in which they were over. Times are in ns from the run's begin.
fn csv(mut out: impl Write, samples: &[Sample]) -> io::Result<()> {
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
    let good = samples.iter().filter(|one| one.fault.is_none());
    let has_times = report.to_first_byte.corrected_ns.is_some();
    let kinds: [(&str, fn(&Sample) -> u64, bool); 4] = [
        ("first byte", Sample::to_first, true),
        ("first, corrected", Sample::to_first_corrected, has_times),
        ("last byte", Sample::to_last, true),
        ("last, corrected", Sample::to_last_corrected, has_times),
    ];
    let wanted = kinds.into_iter().filter(|(_, _, is_wanted)| *is_wanted);
    let all = wanted.map(|(name, of, _)| {
        let mut latencies: Vec<f64> = good.clone().map(|one| of(one) as f64).collect();
        sort(&mut latencies);
        (name, latencies)
    });
    all.filter(|(_, latencies)| !latencies.is_empty()).collect()
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
