//! The page: the machine, the goals, then each suite with its plots and tables.

use std::fmt::Write as _;

use super::format::{number, percentile, time};
use super::introductions::INTRODUCTIONS;
use super::{Documents, audit, curve, goals, lab, lengths};
use crate::results::Document;
use crate::suites::ingress::datagrams;
use crate::suites::ingress::flood::{self, PACKETS};
use crate::suites::warm::CPU;

/// Unit of the figures that stand in the table of latencies.
const RATE: &str = "requests/s";
/// The columns of figures that a category may have beside its latencies: unit, and what stands above.
const COLUMNS: [(&str, &str); 5] = [
    (RATE, RATE),
    (CPU, "CPU per request, µs"),
    ("datagrams/s", "datagrams/s"),
    (datagrams::CPU, "CPU per datagram, µs"),
    (PACKETS, "flood, packets/s"),
];

/// The categories of what was timed, in their order.
pub fn categories(document: &Document) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for result in &document.results {
        if !found.contains(&result.category.as_str()) {
            found.push(&result.category);
        }
    }
    found
}

/// Name of a category's plot.
pub fn plot_file(document: &Document, category: &str) -> String {
    let mut name = document.benchmark_suite.clone();
    for word in category
        .split(" (means")
        .next()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
    }
    name + ".svg"
}

/// The page of Markdown.
pub fn write(documents: &Documents) -> String {
    let mut page = String::from("# Benchmarks\n\n");
    if let Some(first) = documents.0.first() {
        let machine = &first.system_info;
        let _ = writeln!(
            page,
            "Written by `make bench` from the JSON files beside this page; change none of it by hand. {} processors ({}), {} \
             GiB of memory, {}, Linux {}. Hearth {}, {}.\n",
            machine.cpu_cores,
            machine.cpu_model,
            number((machine.memory_bytes as f64 / f64::from(1 << 30)).round()),
            machine.os,
            machine.kernel_version,
            first.version,
            first.timestamp.split('T').next().unwrap_or_default(),
        );
    }
    page.push_str(
        "Every percentile is *observed*: each request's own latency, by nearest rank. None is corrected for coordinated \
         omission, as wrk's are, so do not compare them with such. A dash stands for a percentile with too few samples, \
         where it would be the maximum. The first tenth of all samples is warm-up and not counted. Comparisons were \
         measured in the same run, interleaved.\n\n",
    );
    page.push_str(&goals::table(documents));
    for document in &documents.0 {
        suite(document, &mut page);
    }
    page
}

fn suite(document: &Document, page: &mut String) {
    let name = &document.benchmark_suite;
    let _ = writeln!(page, "\n## {name}\n");
    if let Some((_, text)) = INTRODUCTIONS.iter().find(|(suite, _)| suite == name) {
        let _ = writeln!(page, "{text}\n");
    }
    for skipped in &document.skipped {
        let _ = writeln!(page, "- Left out: {}: {}", skipped.name, skipped.reason);
    }
    if !document.skipped.is_empty() {
        page.push('\n');
    }
    for category in categories(document) {
        latencies(document, category, page);
    }
    audit::write(document, page);
    lab::write(document, page);
    figures(document, page);
}

fn latencies(document: &Document, category: &str, page: &mut String) {
    let columns: Vec<_> = COLUMNS
        .into_iter()
        .filter(|(unit, _)| {
            let mut figures = document.figures.iter();
            figures.any(|figure| figure.category == category && figure.unit == *unit)
        })
        .collect();
    let head: String = columns
        .iter()
        .map(|(_, title)| format!(" {title} |"))
        .collect();
    let line = " ---: |".repeat(columns.len());
    let _ = writeln!(page, "### {}\n", capitalised(category));
    if category == flood::CATEGORY && curve::draw(document).is_some() {
        let _ = writeln!(
            page,
            "![Requests/s and p99 by the flood's rate]({})\n",
            curve::FILE
        );
    }
    if let Some(file) = lengths::file_of(category) {
        let _ = writeln!(page, "![Requests/s, p50 and p99 by length]({file})\n");
    }
    let _ = writeln!(
        page,
        "![{title}: median, p95, p99]({})\n\n\
         | observed latency | n | p50 | p95 | p99 | max |{head}\n| --- | ---: | ---: | ---: | ---: | ---: |{line}",
        plot_file(document, category),
        title = capitalised(category),
    );
    for row in document
        .results
        .iter()
        .filter(|row| row.category == category)
    {
        let m = &row.metrics;
        let _ = write!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            row.name,
            number(row.iterations as f64),
            time(m.median_ns),
            percentile(m.p95_ns),
            percentile(m.p99_ns),
            time(m.max_ns),
        );
        for (unit, _) in &columns {
            let value = document.value_in(category, &row.name, unit);
            let _ = write!(page, " {} |", value.map_or_else(String::new, number));
        }
        page.push('\n');
    }
    page.push('\n');
}

fn figures(document: &Document, page: &mut String) {
    let mut rows = document
        .figures
        .iter()
        .filter(|figure| !audit::is_audit(&figure.category) && !lab::has_table(&figure.category))
        // What was not timed has no row in a table of latencies.
        .filter(|figure| {
            COLUMNS.iter().all(|(unit, _)| figure.unit != *unit)
                || document.timed(&figure.category, &figure.name).is_none()
        })
        .peekable();
    if rows.peek().is_none() {
        return;
    }
    page.push_str("### Other figures\n\n| of | what | value |\n| --- | --- | ---: |\n");
    for figure in rows {
        let value = format!("{} {}", number(figure.value), figure.unit);
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            figure.category,
            figure.name,
            value.trim_end()
        );
    }
}

/// With a capital letter at its beginning.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
