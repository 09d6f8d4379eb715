//! The table as text and CSV, and its picture.

use std::fmt::Write as _;

use super::layers::{NAMES, TITLES};
use super::report::{Figures, Layer, Report, Row};
use crate::plot::format::time;
use crate::plot::stack::{self, Bar};
use crate::table::render::columns;

/// For a terminal.
pub fn text(report: &Report) -> String {
    let header = [
        "workload",
        "runtime",
        "start",
        "samples",
        "in the function",
        "at the worker",
        "in the server",
        "at the client",
        "total",
        "p99",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(report.rows.iter().map(|row| {
        let [function, worker, server, client] = row.layers.each_ref().map(cell);
        [
            row.workload.to_owned(),
            row.runtime.to_owned(),
            row.start().to_owned(),
            row.samples.to_string(),
            function,
            worker,
            server,
            client,
            time(total(row).mean_ns),
            time(row.total_ns.p99),
        ]
    }));
    let mut text = columns(&lines);
    text += "Means; each layer's own time without the layers inside it, and its share of the total, which is the client's time to the last byte.\n";
    if let Some(left) = &report.left_behind {
        let _ = writeln!(text, "left behind: {left}");
    }
    for reason in &report.left_out {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Left out: {reason}.");
    }
    text
}

fn total(row: &Row) -> Figures {
    let [.., client] = &row.layers;
    client.through
}

/// A layer's mean and its share.
fn cell(layer: &Layer) -> String {
    format!("{} {:>3.0} %", time(layer.own.mean_ns), layer.share * 100.0)
}

/// As CSV: for each layer its own time, that with the layers inside it, and its share.
pub fn csv(report: &Report) -> String {
    let mut text = "workload,runtime,start,samples".to_owned();
    for name in NAMES {
        for of in ["own", "through"] {
            for figure in ["mean", "p50", "p99"] {
                text += &format!(",{name}_{of}_{figure}_ns");
            }
        }
        text += &format!(",{name}_share");
    }
    text += ",first_byte_mean_ns,first_byte_p50_ns,first_byte_p99_ns,cut,failed,without_record,other_start,value\n";
    // Writing to a string does not fail.
    for row in &report.rows {
        let (start, samples) = (row.start(), row.samples);
        let _ = write!(text, "{},{},{start},{samples}", row.workload, row.runtime);
        for layer in &row.layers {
            figures(&mut text, &layer.own);
            figures(&mut text, &layer.through);
            let _ = write!(text, ",{}", layer.share);
        }
        figures(&mut text, &row.first_byte);
        let uncounted = row.uncounted;
        let _ = writeln!(
            text,
            ",{},{},{},{},{}",
            row.cut, uncounted.failed, uncounted.without_record, uncounted.other_start, row.value
        );
    }
    text
}

fn figures(text: &mut String, figures: &Figures) {
    let _ = write!(
        text,
        ",{},{},{}",
        figures.mean_ns, figures.p50_ns, figures.p99_ns
    );
}

/// All samples as CSV, as they were measured.
pub fn samples(report: &Report) -> String {
    let mut text = "workload,runtime,start,first_byte_ns,last_byte_ns,queue_us,start_us,send_us,run_us,recv_us,total_us\n".to_owned();
    for row in &report.rows {
        for one in &row.measured {
            let stages = one.stages_us;
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{}",
                row.workload,
                row.runtime,
                one.start,
                one.first_byte_ns,
                one.last_byte_ns,
                stages.queue,
                stages.start,
                stages.send,
                stages.run,
                stages.recv,
                stages.total,
            );
        }
    }
    text
}

/// A bar for each row, divided by the layers' shares.
pub fn plot(report: &Report) -> String {
    let bars: Vec<Bar> = report
        .rows
        .iter()
        .map(|row| Bar {
            name: row.title(),
            total: time(total(row).mean_ns),
            parts: row
                .layers
                .iter()
                .map(|layer| (layer.share, cell(layer)))
                .collect(),
        })
        .collect();
    stack::draw("Where an invocation's time goes", &TITLES, &bars)
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn a_table_has_every_layer_with_its_share() {
        let report = report();
        let text = text(&report);
        assert!(
            text.starts_with("workload  runtime  start  samples"),
            "{text}"
        );
        assert!(text.contains("19 µs  15 %"), "{text}");
        assert!(text.contains("Left out: image, node, cold"), "{text}");
        for csv in [csv(&report), samples(&report)] {
            let lines: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
            assert!(lines.iter().all(|fields| *fields == lines[0]), "{csv}");
        }
        assert_eq!(csv(&report).lines().count(), 3);
        assert_eq!(samples(&report).lines().count(), 1 + 100 + 10);
        let plot = plot(&report);
        assert!(plot.contains("math, python3, warm") && plot.contains("At the worker"));
    }
}
