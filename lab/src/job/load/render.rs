//! What came of a load, for a terminal.

use std::fmt::Write as _;

use crate::load::report::Latency;
use crate::load::{Fault, Report};
use crate::statistics::Tail;

/// What a request may fail by.
pub(super) fn word(fault: Fault) -> &'static str {
    match fault {
        Fault::Connect => "connect",
        Fault::Timeout => "timeout",
        Fault::Closed => "closed",
        Fault::Malformed => "malformed",
        Fault::Status => "status",
    }
}

/// Failed requests by reason: `3 timeout, 2 status (404)`. Nothing if none failed.
pub fn failures(report: &Report) -> String {
    let statuses = report.statuses.keys().filter(|status| **status != 200);
    let statuses: Vec<String> = statuses.map(u16::to_string).collect();
    let one = |(fault, count): (&Fault, &u64)| {
        let which = match fault {
            Fault::Status => format!(" ({})", statuses.join(", ")),
            _ => String::new(),
        };
        format!("{count} {}{which}", word(*fault))
    };
    let all: Vec<String> = report.faults.iter().map(one).collect();
    all.join(", ")
}

/// The latencies that a report has, each with what it is.
pub(super) fn latencies(report: &Report) -> Vec<(String, Tail)> {
    let named = |name: &str, latency: &Latency| {
        [
            (name.to_owned(), latency.uncorrected_ns),
            (format!("{name}, corrected"), latency.corrected_ns),
        ]
    };
    let first = named("to the first byte", &report.to_first_byte);
    let all = first
        .into_iter()
        .chain(named("to the last byte", &report.to_last_byte));
    all.filter_map(|(name, tail)| Some((name, tail?))).collect()
}

/// In lines. Latencies are in microseconds.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{} requests in {:.2} s, {:.1} per second; {} answered with 200, {} unsent",
        report.sent,
        report.elapsed_ns as f64 / 1e9,
        report.rate,
        report.good,
        report.unsent
    );
    let failed = failures(report);
    if !failed.is_empty() {
        let _ = writeln!(text, "failed: {failed}");
    }
    let _ = writeln!(
        text,
        "{:34}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "µs", "p50", "p90", "p99", "p99.9", "max"
    );
    for (name, tail) in latencies(report) {
        row(&mut text, &name, &tail);
    }
    if let Some(tail) = &report.send_delay_ns {
        row(&mut text, "sent later than intended", tail);
    }
    if let Some(error) = report.rate_error {
        let _ = writeln!(text, "rate error: {:+.3} %", error * 100.0);
    }
    let _ = writeln!(
        text,
        "load generator: {:.3} s of processor time, {:.1} % of a processor",
        report.processor_ns as f64 / 1e9,
        report.processor_share * 100.0
    );
    text
}

fn row(text: &mut String, name: &str, tail: &Tail) {
    let figures = [tail.median, tail.p90, tail.p99, tail.p999, tail.max];
    let columns: String = figures
        .iter()
        .map(|ns| format!("{:>11.1}", ns / 1e3))
        .collect();
    let _ = writeln!(text, "{name:34}{columns}");
}
