//! A report as text, CSV and SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::benchmark::Benchmark;
use super::report::Report;
use crate::plot::forest::{self, percent};
use crate::plot::format::{number, time};
use crate::run::noise::{Noise, fdatasync};
use crate::run::{RunError, result};
use crate::statistics::duet::DOUBTFUL_BELOW;
use crate::statistics::{Interval, Verdict};
use crate::stellar::files::create_directory;
use crate::table::render::columns;

fn interval(interval: Interval) -> String {
    format!("{} to {}", percent(interval.low), percent(interval.high))
}

/// What is said of a benchmark.
fn verdict(one: &Benchmark) -> String {
    if one.from_history {
        return "not judged".to_owned();
    }
    if one.comparison.is_none() {
        return "left out".to_owned();
    }
    let word = match one.verdict {
        // The first version differs from itself.
        None => "–",
        Some(Verdict::NoChange) => "no change",
        Some(Verdict::Possible) => "possible change",
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
    };
    if one.is_doubtful() {
        format!("{word}, perhaps noise")
    } else {
        word.to_owned()
    }
}

/// For a terminal.
pub fn text(report: &Report) -> String {
    let what = match report.suite {
        Some(_) => "benchmark",
        None => "event",
    };
    let header = [
        what, "trials", "first", "second", "change", "interval", "BCa", "verdict",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(report.benchmarks.iter().map(|one| {
        let missing = || "–".to_owned();
        let change = one.comparison.map(|comparison| comparison.change);
        [
            one.name.clone(),
            one.trials.repeats.len().to_string(),
            one.first_ns.map_or_else(missing, time),
            one.second_ns.map_or_else(missing, time),
            change.map_or_else(missing, |change| percent(change.estimate)),
            change.map_or_else(missing, |change| interval(change.percentile)),
            change
                .and_then(|change| change.bca)
                .map_or_else(missing, interval),
            verdict(one),
        ]
    }));
    let mut text = columns(&lines);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{}: {} beside {}; {} of {} compared{}; intervals at {} %",
        if report.is_aa() { "A/A" } else { "duet" },
        report.second,
        report.first,
        report.compared(),
        report.duets().count(),
        match report.control_changes() {
            0 => format!(", {} changed", report.changes().count()),
            _ => String::new(),
        },
        report.bootstrap.confidence * 100.0,
    );
    for one in &report.benchmarks {
        let trials = &one.trials;
        if trials.interrupted + trials.failed > 0 {
            let _ = writeln!(
                text,
                "{}: {} interrupted, {} failed{}",
                one.name,
                trials.interrupted,
                trials.failed,
                trials
                    .error
                    .as_ref()
                    .map_or_else(String::new, |error| format!(": {error}")),
            );
        }
        if let Some(needed) = one.trials_needed {
            let _ = writeln!(
                text,
                "{}: as narrow as asked after {needed} trials",
                one.name
            );
        }
    }
    let wide = report.benchmarks.iter().filter(|one| one.is_wide).count();
    if wide > 0 {
        let _ = writeln!(
            text,
            "{wide} of {}: wider than {} % after all trials",
            report.compared(),
            number(report.width * 100.0)
        );
    }
    for one in report.benchmarks.iter().filter(|one| one.from_history) {
        let _ = writeln!(
            text,
            "{}: not judged, because the first version's times are from the history",
            one.name
        );
    }
    if report.changes().any(Benchmark::is_doubtful) {
        let below = DOUBTFUL_BELOW * 100.0;
        let _ = writeln!(
            text,
            "perhaps noise: below {below} %, experiments do not agree consistently"
        );
    }
    if report.control_changes() > 0 {
        let _ = writeln!(
            text,
            "no verdict: {} beside itself differs, too, so that this host is too noisy now",
            report.first
        );
    }
    if let Some(noise) = &report.noise {
        let _ = writeln!(text, "{}", certificate(noise));
    }
    if let Some(suite) = &report.suite {
        for line in suite.lines() {
            let _ = writeln!(text, "{line}");
        }
    }
    if let Some(replayed) = &report.replayed {
        let _ = writeln!(
            text,
            "{}: {} arrivals within {:.0} s at {} x, in {} parts with copies of their own, {} with their own event, {} left out, sent late by {} (p99)",
            replayed.source,
            replayed.arrivals,
            replayed.span_s,
            replayed.speed,
            replayed.parts,
            replayed.own_events,
            replayed.left_out,
            time(replayed.late_p99_ns),
        );
        let allowed = replayed.network.allowed();
        if !allowed.is_empty() {
            let _ = writeln!(text, "the copies could reach {}", allowed.join(", "));
        }
        if !replayed.lacks.is_empty() {
            let _ = writeln!(text, "the copies lack {}", replayed.lacks.join(", "));
        }
    }
    if let Some(left) = &report.left_behind {
        let _ = writeln!(text, "left behind: {left}");
    }
    if let Some(against) = &report.against {
        let _ = writeln!(text, "{against}");
    }
    text
}

/// How noisy the machine was, in a line: of a comparison.
pub fn certificate(noise: &Noise) -> String {
    let control = match noise.control {
        Some(control) => format!("A/A {} of {} changed", control.changes, control.compared),
        None => "no A/A beside it".to_owned(),
    };
    line(Some(control), noise)
}

/// The same of anything else.
pub fn machine(noise: &Noise) -> String {
    line(None, noise)
}

fn line(control: Option<String>, noise: &Noise) -> String {
    let mut parts = Vec::from_iter(control);
    let [before, after] = noise.yardstick_ns;
    parts.push(format!(
        "yardstick {} before, {} after",
        time(before),
        time(after)
    ));
    let source = noise.clock_source.as_deref().unwrap_or("unknown");
    let step = time(noise.clock_step_ns as f64);
    parts.push(format!("clock {source}, {step} a reading"));
    if let Some(steal) = noise.steal_share {
        parts.push(format!("steal {:.1} %", steal * 100.0));
    }
    if let Some(device) = noise.fdatasync {
        let (median, max) = (time(device.median_ns), time(device.max_ns));
        parts.push(format!("fdatasync {median} (p50), {max} (max)"));
    }
    format!("noise: {}", parts.join("; "))
}

/// All trials as CSV.
pub fn csv(report: &Report) -> String {
    let mut text = "event,call,repeat,order,first_ns,second_ns,control_ns\n".to_owned();
    for one in &report.benchmarks {
        for repeat in &one.trials.repeats {
            let order: Vec<String> = repeat
                .order
                .iter()
                .map(|role| format!("{role:?}").to_lowercase())
                .collect();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                quoted(&one.name),
                repeat.call,
                repeat.repeat,
                order.join(" "),
                repeat.first_ns,
                repeat.second_ns,
                repeat
                    .control_ns
                    .map_or_else(String::new, |ns| ns.to_string()),
            );
        }
    }
    text
}

/// A field of a CSV file (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A line for each benchmark that is not left out.
pub fn svg(report: &Report) -> String {
    let names: Vec<String> = report
        .benchmarks
        .iter()
        .map(|one| match one.from_history {
            true => format!("{} (not judged)", one.name),
            false => one.name.clone(),
        })
        .collect();
    let rows = report.benchmarks.iter().zip(&names);
    let rows = rows.filter_map(|(one, name)| {
        let comparison = one.comparison?;
        Some(forest::Row {
            name,
            estimate: comparison.change.estimate,
            interval: comparison.change.percentile,
            // No colour where there is no verdict.
            verdict: one.verdict.unwrap_or(Verdict::NoChange),
        })
    });
    let rows: Vec<forest::Row<'_>> = rows.collect();
    forest::draw(&format!("{} beside {}", report.second, report.first), &rows)
}

impl Report {
    /// Creates a directory below `out`, named by the time of the begin, and writes the files.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(&mut self, out: &Path) -> Result<PathBuf, RunError> {
        let failed = |path: &Path, error| RunError::File(path.to_owned(), error);
        fs::create_dir_all(out).map_err(|error| failed(out, error))?;
        let name = self.began_at.as_second().to_string();
        let directory = create_directory(out, &name).map_err(|error| failed(out, error))?;
        if let Some(noise) = &mut self.noise {
            // A device that cannot be measured says nothing.
            noise.fdatasync = fdatasync(&directory).ok();
        }
        for (name, text) in [("trials.csv", csv(self)), ("forest.svg", svg(self))] {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        let path = directory.join("result.json");
        result::write(&path, self).map_err(|error| failed(&path, error))?;
        Ok(directory)
    }
}

#[cfg(test)]
pub(crate) mod tests;
