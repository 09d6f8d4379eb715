//! The table as text and as CSV.

use std::fmt::Write as _;

use super::rows::{Row, Table};
use crate::plot::format::time;

/// A number that may be missing, to two decimals.
fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Ratios in the paper: `Google 1.54 Azure 2.07`.
fn paper(row: &Row) -> String {
    let clouds = row.paper_tmr.iter();
    let clouds: Vec<String> = clouds
        .map(|(cloud, tmr)| format!("{cloud} {tmr}"))
        .collect();
    clouds.join(" ")
}

/// The same, and whether this server's is less than the least of them.
fn beside_paper(row: &Row) -> String {
    match row.is_below_paper() {
        Some(true) => format!("{}, here less", paper(row)),
        Some(false) => format!("{}, here more", paper(row)),
        None => String::new(),
    }
}

/// For a terminal.
pub fn text(table: &Table) -> String {
    let header = [
        "factor", "samples", "median", "p99", "TMR", "MR", "TR", "cold", "paper",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(table.rows.iter().map(|row| {
        [
            row.factor.to_owned(),
            row.latency_ns.count.to_string(),
            time(row.latency_ns.median),
            time(row.latency_ns.p99),
            ratio(Some(row.latency_ns.tmr)),
            ratio(row.ratios.map(|ratios| ratios.mr)),
            ratio(row.ratios.map(|ratios| ratios.tr)),
            share(row.cold_share),
            beside_paper(row),
        ]
    }));
    let mut text = columns(&lines);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "TMR: p99 / median. MR, TR: median and p99 / the warm median. Paper: TMR of its clouds, with {} samples a point; here {}.",
        table.paper_samples, table.samples
    );
    if let Some(left_out) = &table.left_out {
        let _ = writeln!(text, "Left out: {left_out}");
    }
    text
}

/// Lines of as many columns, the first to the left and the others to the right.
pub(crate) fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let fill = " ".repeat(width(column) - cell.chars().count());
            text += &if column == 0 {
                format!("{cell}{fill}")
            } else {
                format!("  {fill}{cell}")
            };
        }
        text = text.trim_end().to_owned() + "\n";
    }
    text
}

/// As CSV. Missing figures are empty.
pub fn csv(table: &Table) -> String {
    let mut text = "factor,samples,median_ms,p99_ms,p999_ms,max_ms,tmr,mr,tr,cold_share,failed,steal_share,paper_tmr\n".to_owned();
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in &table.rows {
        let ms = |ns: f64| ns / 1e6;
        let tail = &row.latency_ns;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            row.factor,
            tail.count,
            ms(tail.median),
            ms(tail.p99),
            ms(tail.p999),
            ms(tail.max),
            tail.tmr,
            optional(row.ratios.map(|ratios| ratios.mr)),
            optional(row.ratios.map(|ratios| ratios.tr)),
            optional(row.cold_share),
            row.failed,
            optional(row.steal_share),
            paper(row),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::{Outcome, Plan, Report, Schedule, Trust};
    use crate::run::Entry;

    fn entry(title: &str, latencies_ns: Vec<(u32, f64)>, starts: &[(&str, u64)]) -> Entry {
        let plan = Plan {
            requests: Vec::new(),
            schedule: Schedule::Bursts { rounds: Vec::new() },
            connections: 1,
            keep_alive: 1,
            timeout_ms: 1,
            capture_bytes: 0,
            faults_max: None,
            processor: None,
            trust: Trust::default(),
        };
        let outcome = Outcome {
            ended: crate::load::Ended::Complete,
            samples: Vec::new(),
            unsent: 0,
            began_at: 0,
            elapsed: 1,
            planned: 0,
            processor: 0,
        };
        let starts: BTreeMap<String, u64> = starts
            .iter()
            .map(|(start, count)| ((*start).to_owned(), *count))
            .collect();
        Entry {
            number: 0,
            title: title.to_owned(),
            directory: String::new(),
            report: Report::of(&plan, &outcome),
            starts: Some(starts),
            steal_share: None,
            latencies_ns,
        }
    }

    #[test]
    fn a_table_has_ratios_to_the_warm_median_and_leaves_the_first_round_out() {
        // Ten replicas: bursts 0 to 9 found nothing.
        let warm = (0..110).map(|burst| (burst, if burst < 10 { 9e9 } else { 2e5 }));
        let cold = (0..100).map(|burst| (burst, if burst == 0 { 4e6 } else { 1e6 }));
        let measured = [
            entry("cold", cold.collect(), &[("fork", 95), ("warm", 5)]),
            entry("unknown", vec![(0, 1.0)], &[]),
            entry("warm", warm.collect(), &[("fork", 10), ("warm", 100)]),
            entry("node-warm", Vec::new(), &[]),
        ];
        let table = Table::of(&measured, 100);
        let [warm, cold] = table.rows.as_slice() else {
            panic!("two rows: {table:?}");
        };
        assert_eq!(
            (warm.factor, warm.latency_ns.count, warm.latency_ns.max),
            ("warm", 100, 2e5)
        );
        assert_eq!(
            warm.ratios.map(|ratios| (ratios.mr, ratios.tr)),
            Some((1.0, 1.0))
        );
        assert_eq!(cold.ratios.map(|ratios| ratios.mr), Some(5.0));
        assert_eq!(
            (cold.cold_share, paper(cold).as_str()),
            (Some(0.95), "AWS 1.5")
        );

        // Each of a hundred takes as long.
        assert_eq!(beside_paper(warm), "AWS 1.7, here less");
        let mut slow = warm.clone();
        slow.latency_ns.tmr = 1.7;
        assert_eq!(slow.is_below_paper(), Some(false));
        slow.paper_tmr.clear();
        assert_eq!(beside_paper(&slow), "");

        let text = text(&table);
        assert!(text.starts_with("factor  samples  median"), "{text}");
        assert!(text.contains("200 µs") && text.contains("95 %"), "{text}");
        let csv = csv(&table);
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{csv}"
        );
        let plot = table.plot();
        assert!(plot.contains("warm: 200 µs") && plot.contains("one request at a time"));
        assert!(Table::of(&[], 100).rows.is_empty());
    }
}
