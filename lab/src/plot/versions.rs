//! Latency over time, a colour for each version, with lines where versions became active and arrows where that changed something.

use std::fmt::Write as _;

use super::forest::percent;
use super::format::time;
use super::{escape, open};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 80.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = HEIGHT - 56.0;

/// Versions that can be told apart; neighbours always can.
const COLOURS: usize = 4;
/// Dates below the time line.
const DATES: usize = 5;
/// Labels of versions that are nearer to each other are left out; the lines stay.
const LABEL_PITCH: f64 = 34.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}.active{stroke:#8c959f;stroke-dasharray:3 3}path{fill:none;stroke-width:2}\
.tail{stroke-width:1;stroke-dasharray:2 3}circle{stroke:none}\
.c0{stroke:#0969da;fill:#0969da}.c1{stroke:#9a6700;fill:#9a6700}.c2{stroke:#8250df;fill:#8250df}.c3{stroke:#6e7781;fill:#6e7781}\
path.c0,path.c1,path.c2,path.c3{fill:none}.slower,.slower text{fill:#cf222e}.faster,.faster text{fill:#1a7f37}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}\
.c0{stroke:#58a6ff;fill:#58a6ff}.c1{stroke:#d29922;fill:#d29922}.c2{stroke:#bc8cff;fill:#bc8cff}.c3{stroke:#8b949e;fill:#8b949e}\
.slower,.slower text{fill:#ff7b72}.faster,.faster text{fill:#3fb950}}";

/// A latency at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds since 1970.
    pub at: f64,
    /// The latency, in nanoseconds.
    pub ns: f64,
}

/// A version's latencies over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The version.
    pub version: u32,
    /// Medians.
    pub medians: Vec<Point>,
    /// 99th percentiles, where they are known.
    pub tails: Vec<Point>,
}

/// A version that became active.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// When, in seconds since 1970.
    pub at: f64,
    /// The version.
    pub version: u32,
    /// What it changed, if that was found: the share, and the ends of its interval.
    pub change: Option<(f64, f64, f64)>,
    /// By what it was found.
    pub by: &'static str,
}

/// The SVG. `window` is from when to when, in seconds since 1970.
pub fn draw(title: &str, window: (f64, f64), lines: &[Line], marks: &[Mark]) -> String {
    let (from, to) = (window.0, window.1.max(window.0 + 1.0));
    let points = || {
        let both = |line: &'_ Line| [line.medians.clone(), line.tails.clone()].concat();
        lines.iter().flat_map(both)
    };
    let most = points().map(|point| point.ns).fold(0.0, f64::max);
    let least = points().map(|point| point.ns).fold(most, f64::min);
    // A logarithmic scale, on which the same change has the same height everywhere.
    let (low, high) = match most > 0.0 {
        true => ((least.max(1.0) / 1.3).ln(), (most * 1.3).ln()),
        false => (1e3_f64.ln(), 1e6_f64.ln()),
    };
    let x = |at: f64| LEFT + (at.clamp(from, to) - from) / (to - from) * (RIGHT - LEFT);
    let y = |ns: f64| BOTTOM - (ns.max(1.0).ln() - low) / (high - low) * (BOTTOM - TOP);
    let mut svg = open(title, STYLE, WIDTH, HEIGHT);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"20\">{}</text>\
         <text x=\"8\" y=\"38\">median as a line, p99 dotted; logarithmic</text>",
        escape(title)
    );
    for step in 0..=4 {
        let ns = (low + (high - low) * f64::from(step) / 4.0).exp();
        let y = y(ns);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            time(ns)
        );
    }
    for index in 0..=DATES {
        let at = from + (to - from) * index as f64 / DATES as f64;
        let anchor = match index {
            0 => "start",
            DATES => "end",
            _ => "middle",
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            x(at),
            BOTTOM + 20.0,
            date(at, to - from)
        );
    }
    let mut labelled = f64::INFINITY;
    let mut in_order: Vec<&Mark> = marks.iter().collect();
    // The newest first, whose labels have room in any case.
    in_order.sort_by(|a, b| b.at.total_cmp(&a.at).then(b.version.cmp(&a.version)));
    for mark in in_order {
        let x = x(mark.at);
        let _ = writeln!(
            svg,
            "<line class=\"active\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>"
        );
        if labelled - x >= LABEL_PITCH {
            let _ = writeln!(
                svg,
                "<text class=\"x\" x=\"{x:.1}\" y=\"{}\">v{}</text>",
                TOP - 6.0,
                mark.version
            );
            labelled = x;
        }
        if let Some((estimate, low, high)) = mark.change {
            let (class, shape) = match estimate > 0.0 {
                true => ("slower", "0,-9 5,0 -5,0"),
                false => ("faster", "0,0 5,-9 -5,-9"),
            };
            let _ = writeln!(
                svg,
                "<g class=\"{class}\" transform=\"translate({x:.1} {})\"><title>version {}: {} ({} to {}), {}</title>\
                 <polygon points=\"{shape}\"/><text x=\"8\" y=\"0\">{}</text></g>",
                BOTTOM + 38.0,
                mark.version,
                percent(estimate),
                percent(low),
                percent(high),
                escape(mark.by),
                percent(estimate),
            );
        }
    }
    for line in lines {
        let colour = line.version as usize % COLOURS;
        for (points, class) in [(&line.medians, ""), (&line.tails, " tail")] {
            let mut path = String::new();
            for point in points {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", x(point.at), y(point.ns));
            }
            if !path.is_empty() {
                let _ = writeln!(svg, "<path class=\"c{colour}{class}\" d=\"{path}\"/>");
            }
        }
        for point in &line.medians {
            let _ = writeln!(
                svg,
                "<circle class=\"c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>version {}: {}</title></circle>",
                x(point.at),
                y(point.ns),
                line.version,
                time(point.ns)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A time below the axis: the day, or the hour in windows of two days and less. UTC.
fn date(at: f64, length: f64) -> String {
    let format = match length <= 2.0 * 86_400.0 {
        true => "%H:%M",
        false => "%b %-d",
    };
    let at = jiff::Timestamp::from_second(at as i64).unwrap_or_default();
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_marked_and_changes_flagged() {
        let point = |at, ns| Point { at, ns };
        let line = |version, ns: f64| Line {
            version,
            medians: vec![point(0.0, ns), point(86_400.0, ns)],
            tails: vec![point(0.0, ns * 3.0)],
        };
        let mark = |at, version, change| Mark {
            at,
            version,
            change,
            by: "duet",
        };
        let marks = [
            mark(10.0, 1, None),
            mark(500_000.0, 2, Some((0.2, 0.1, 0.3))),
            mark(700_000.0, 3, Some((-0.1, -0.2, -0.05))),
        ];
        let lines = [line(1, 1e6), line(2, 1.2e6)];
        let svg = draw("f <1>", (0.0, 864_000.0), &lines, &marks);
        assert!(
            svg.contains("f &lt;1&gt;") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(svg.contains(">v1<") && svg.contains(">v3<"), "{svg}");
        assert!(
            svg.contains("version 2: +20 % (+10 % to +30 %), duet"),
            "{svg}"
        );
        assert!(svg.contains("class=\"slower\"") && svg.contains("class=\"faster\""));
        assert!(svg.contains("Jan 1") && svg.contains("Jan 11"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<path class").count(), 4);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let svg = draw("f", (0.0, 0.0), &[], &[]);
        assert!(!svg.contains("NaN") && svg.contains("00:00"), "{svg}");
    }
}
