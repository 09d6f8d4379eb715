//! Bursts one by one: from the fastest request of each to the slowest, with its median; and below, as STeLLAR characterises them, how many
//! of its requests took as long as a cold start does.

use std::fmt::Write as _;

use super::format::time;
use super::{escape, open};
use crate::statistics::quantile::{linear, sort};

const WIDTH: f64 = 820.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 34.0;
const HEIGHT: f64 = 220.0;
/// Of the counts, and between them and the latencies.
const COUNTS: f64 = 60.0;
const GAP: f64 = 14.0;
const BOTTOM: f64 = 62.0;

/// Most columns: of more bursts, as many neighbours as it takes share one.
const COLUMNS_MAX: usize = 200;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}.range{stroke:#0969da;stroke-opacity:.45}.half{stroke:#0969da}.median{stroke:#24292f;stroke-width:2}\
.cold{fill:#0969da}.warm{fill:#bc4c00}.threshold{stroke:#0969da;stroke-dasharray:4 3}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}.range,.half,.threshold{stroke:#58a6ff}.median{stroke:#e6edf3}\
.cold{fill:#58a6ff}.warm{fill:#f0883e}}";

/// The SVG, of latencies in ns with the number of their burst; from `cold_ns` on, one counts as cold. The scales are linear and begin at 0.
pub fn draw(title: &str, latencies: &[(u32, f64)], cold_ns: f64) -> String {
    let (columns, each) = columns(latencies);
    let most = latencies.iter().map(|(_, ns)| *ns).fold(1.0, f64::max);
    let bottom = TOP + HEIGHT;
    let floor = bottom + GAP + COUNTS;
    let fullest = columns.iter().map(|(_, samples)| samples.len()).max();
    let per_request = COUNTS / fullest.unwrap_or(0).max(1) as f64;
    let y = |ns: f64| bottom - HEIGHT * ns / most;
    let pitch = (RIGHT - LEFT) / columns.len().max(1) as f64;
    let mut svg = open(title, STYLE, WIDTH, floor + BOTTOM);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    );
    for quarter in 0..=4 {
        let ns = most * f64::from(quarter) / 4.0;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/><text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y(ns) + 4.0,
            time(ns),
            y = y(ns),
        );
    }
    if cold_ns <= most {
        let y = y(cold_ns);
        let _ = writeln!(
            svg,
            "<line class=\"threshold\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>"
        );
    }
    let _ = writeln!(
        svg,
        "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{floor}\" x2=\"{RIGHT}\" y2=\"{floor}\"/>\
         <text class=\"y\" x=\"{}\" y=\"{}\">requests</text>",
        LEFT - 8.0,
        floor - COUNTS / 2.0 + 4.0,
    );
    for (index, (burst, sorted_ns)) in columns.iter().enumerate() {
        let x = LEFT + pitch * (index as f64 + 0.5);
        let at = |share| linear(sorted_ns, share).map_or(bottom, y);
        let (range, half) = (
            (pitch * 0.5).clamp(1.0, 12.0),
            (pitch * 0.3).clamp(1.0, 7.0),
        );
        let left = x - range / 2.0;
        let warm = sorted_ns.partition_point(|ns| *ns < cold_ns);
        let cold = sorted_ns.len() - warm;
        let _ = writeln!(
            svg,
            "<g><title>burst{}: {}, {} to {}, median {}; {cold} cold</title>\
             <line class=\"range\" stroke-width=\"{range:.1}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <line class=\"half\" stroke-width=\"{half:.1}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <line class=\"median\" x1=\"{:.1}\" y1=\"{m:.1}\" x2=\"{:.1}\" y2=\"{m:.1}\"/>\
             <rect class=\"warm\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{range:.1}\" height=\"{:.1}\"/>\
             <rect class=\"cold\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{range:.1}\" height=\"{:.1}\"/></g>",
            match each {
                1 => format!(" {burst}"),
                _ => format!("s from {burst} on"),
            },
            requests(sorted_ns.len()),
            time(sorted_ns[0]),
            time(sorted_ns[sorted_ns.len() - 1]),
            time(linear(sorted_ns, 0.5).unwrap_or_default()),
            at(0.0),
            at(1.0),
            at(0.25),
            at(0.75),
            left,
            x + range / 2.0,
            floor - per_request * warm as f64,
            per_request * warm as f64,
            floor - per_request * sorted_ns.len() as f64,
            per_request * cold as f64,
            m = at(0.5),
        );
        // As many names as there is room for.
        if index % columns.len().div_ceil(20) == 0 {
            let _ = writeln!(
                svg,
                "<text class=\"x\" x=\"{x:.1}\" y=\"{}\">{burst}</text>",
                floor + 18.0
            );
        }
    }
    let cold = latencies.iter().filter(|(_, ns)| *ns >= cold_ns).count();
    let middle = f64::midpoint(LEFT, RIGHT);
    let _ = writeln!(
        svg,
        "<text class=\"x\" x=\"{middle}\" y=\"{}\">{}: all requests, the middle half, the median</text>\
         <text class=\"x\" x=\"{middle}\" y=\"{}\">{} of {} cold (blue): {} or longer</text>",
        floor + 36.0,
        match each {
            1 => "burst".to_owned(),
            _ => format!("first of {each} bursts"),
        },
        floor + 54.0,
        cold,
        requests(latencies.len()),
        time(cold_ns),
    );
    svg.push_str("</svg>\n");
    svg
}

/// The latencies of each column, ascending, with the number of its first burst; and how many bursts share one.
fn columns(latencies: &[(u32, f64)]) -> (Vec<(u32, Vec<f64>)>, usize) {
    let mut bursts = std::collections::BTreeMap::<u32, Vec<f64>>::new();
    for (burst, ns) in latencies {
        bursts.entry(*burst).or_default().push(*ns);
    }
    let each = bursts.len().div_ceil(COLUMNS_MAX).max(1);
    let mut columns: Vec<(u32, Vec<f64>)> = Vec::new();
    for (index, (burst, samples)) in bursts.into_iter().enumerate() {
        match columns.last_mut().filter(|_| index % each > 0) {
            Some((_, column)) => column.extend(samples),
            None => columns.push((burst, samples)),
        }
    }
    for (_, samples) in &mut columns {
        sort(samples);
    }
    (columns, each)
}

fn requests(count: usize) -> String {
    match count {
        1 => "1 request".to_owned(),
        _ => format!("{count} requests"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_burst_has_its_range_and_median() {
        let latencies = [(0, 3e6), (0, 1e6), (0, 2e6), (1, 4e6)];
        let svg = draw("A & B", &latencies, 3e6);
        assert!(svg.contains("A &amp; B"), "{svg}");
        assert!(
            svg.contains("burst 0: 3 requests, 1 ms to 3 ms, median 2 ms; 1 cold<"),
            "{svg}"
        );
        assert!(svg.contains("burst 1: 1 request, 4 ms to 4 ms"), "{svg}");
        assert!(
            svg.contains("2 of 4 requests cold (blue): 3 ms or longer"),
            "{svg}"
        );
        // A threshold that none reaches has no line, which would be outside.
        assert!(svg.contains("<line class=\"threshold\""), "{svg}");
        let svg = draw("fast", &latencies, 3e8);
        assert!(!svg.contains("<line class=\"threshold\""), "{svg}");
        assert!(
            svg.contains("0 of 4 requests cold (blue): 300 ms or longer"),
            "{svg}"
        );
        // None is left out.
        let one_in = |burst: u32| if burst == 333 { 9e6 } else { 1e6 };
        let many: Vec<(u32, f64)> = (0..1_000).map(|burst| (burst, one_in(burst))).collect();
        let svg = draw("many", &many, 3e8);
        assert_eq!(svg.matches("<g>").count(), COLUMNS_MAX);
        let column = "bursts from 330 on: 5 requests, 1 ms to 9 ms, median 1 ms";
        assert!(svg.contains(column), "{svg}");
        assert!(svg.contains("first of 5 bursts"), "{svg}");
        assert!(draw("none", &[], 3e8).ends_with("</svg>\n"));
    }
}
