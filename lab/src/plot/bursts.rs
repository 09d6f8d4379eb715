//! Bursts one by one: from the fastest request of each to the slowest, with its median, as STeLLAR characterises them.

use std::fmt::Write as _;

use super::format::time;
use super::{escape, open};
use crate::statistics::quantile::{linear, sort};

const WIDTH: f64 = 820.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 34.0;
const HEIGHT: f64 = 220.0;
const BOTTOM: f64 = 44.0;

/// Most columns: of more bursts, as many neighbours as it takes share one.
const COLUMNS_MAX: usize = 200;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}.range{stroke:#0969da;stroke-opacity:.45}.half{stroke:#0969da}.median{stroke:#24292f;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}.range,.half{stroke:#58a6ff}.median{stroke:#e6edf3}}";

/// The SVG, of latencies in ns with the number of their burst. The scale is linear and begins at 0.
pub fn draw(title: &str, latencies: &[(u32, f64)]) -> String {
    let (columns, each) = columns(latencies);
    let most = latencies.iter().map(|(_, ns)| *ns).fold(1.0, f64::max);
    let bottom = TOP + HEIGHT;
    let y = |ns: f64| bottom - HEIGHT * ns / most;
    let pitch = (RIGHT - LEFT) / columns.len().max(1) as f64;
    let mut svg = open(title, STYLE, WIDTH, bottom + BOTTOM);
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
    for (index, (burst, sorted_ns)) in columns.iter().enumerate() {
        let x = LEFT + pitch * (index as f64 + 0.5);
        let at = |share| linear(sorted_ns, share).map_or(bottom, y);
        let (range, half) = (
            (pitch * 0.5).clamp(1.0, 12.0),
            (pitch * 0.3).clamp(1.0, 7.0),
        );
        let _ = writeln!(
            svg,
            "<g><title>burst{}: {}, {} to {}, median {}</title>\
             <line class=\"range\" stroke-width=\"{range:.1}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <line class=\"half\" stroke-width=\"{half:.1}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <line class=\"median\" x1=\"{:.1}\" y1=\"{m:.1}\" x2=\"{:.1}\" y2=\"{m:.1}\"/></g>",
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
            x - range / 2.0,
            x + range / 2.0,
            m = at(0.5),
        );
        // As many names as there is room for.
        if index % columns.len().div_ceil(20) == 0 {
            let _ = writeln!(
                svg,
                "<text class=\"x\" x=\"{x:.1}\" y=\"{}\">{burst}</text>",
                bottom + 18.0
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text class=\"x\" x=\"{}\" y=\"{}\">{}: all requests, the middle half, the median</text>",
        f64::midpoint(LEFT, RIGHT),
        bottom + 36.0,
        match each {
            1 => "burst".to_owned(),
            _ => format!("first of {each} bursts"),
        },
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
        let svg = draw("A & B", &latencies);
        assert!(svg.contains("A &amp; B"), "{svg}");
        assert!(
            svg.contains("burst 0: 3 requests, 1 ms to 3 ms, median 2 ms"),
            "{svg}"
        );
        assert!(svg.contains("burst 1: 1 request, 4 ms to 4 ms"), "{svg}");
        // None is left out.
        let one_in = |burst: u32| if burst == 333 { 9e6 } else { 1e6 };
        let many: Vec<(u32, f64)> = (0..1_000).map(|burst| (burst, one_in(burst))).collect();
        let svg = draw("many", &many);
        assert_eq!(svg.matches("<g>").count(), COLUMNS_MAX);
        let column = "bursts from 330 on: 5 requests, 1 ms to 9 ms, median 1 ms";
        assert!(svg.contains(column), "{svg}");
        assert!(svg.contains("first of 5 bursts"), "{svg}");
        assert!(draw("none", &[]).ends_with("</svg>\n"));
    }
}
