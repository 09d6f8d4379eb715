//! Percentiles as bars, four for each kind of samples, on a log scale of time.

use std::fmt::Write as _;

use super::cdf::Line;
use super::format::time;
use super::scale::Decades;
use super::{escape, open};
use crate::statistics::quantile::linear;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 160.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 52.0;
/// Height of a bar, and from one kind to the next.
const BAR: f64 = 11.0;
const PITCH: f64 = 60.0;
const BOTTOM: f64 = 30.0;

/// Which.
const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.v{font-size:10px}.grid{stroke:#8c959f;stroke-opacity:.35}\
.b0{fill:#0969da}.b1{fill:#1a7f37}.b2{fill:#9a6700}.b3{fill:#cf222e}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}\
.b0{fill:#58a6ff}.b1{fill:#3fb950}.b2{fill:#d29922}.b3{fill:#ff7b72}}";

/// The SVG. A percentile that so few samples do not have is left out.
pub fn draw(title: &str, lines: &[Line<'_>]) -> String {
    let found: Vec<Vec<Option<f64>>> = lines.iter().map(|line| of(line.sorted_ns)).collect();
    let all = found.iter().flatten().flatten().copied();
    let scale = Decades::of(all, LEFT, RIGHT);
    let below = TOP + PITCH * lines.len() as f64;
    let mut svg = open(title, STYLE, WIDTH, below + BOTTOM);
    // Writing to a string does not fail.
    let _ = write!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    );
    for (index, (name, _)) in SHARES.iter().enumerate() {
        let x = LEFT + 80.0 * index as f64;
        let _ = write!(
            svg,
            "<rect class=\"b{index}\" x=\"{x}\" y=\"29\" width=\"11\" height=\"11\"/><text x=\"{}\" y=\"39\">{name}</text>",
            x + 16.0
        );
    }
    scale.grid(TOP, below, &mut svg);
    for (index, (line, percentiles)) in lines.iter().zip(&found).enumerate() {
        let top = TOP + PITCH * index as f64 + 6.0;
        let _ = write!(
            svg,
            "<text class=\"y\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 10.0,
            top + 2.0 * BAR + 4.0,
            escape(line.name),
        );
        for (bar, ns) in percentiles.iter().enumerate() {
            let Some(ns) = ns else { continue };
            let (y, x) = (top + BAR * bar as f64, scale.x(*ns));
            let _ = write!(
                svg,
                "<rect class=\"b{bar}\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\"/><text class=\"v\" x=\"{:.1}\" y=\"{}\">{}</text>",
                x - LEFT,
                BAR - 1.5,
                x + 5.0,
                y + BAR - 2.5,
                time(*ns),
            );
        }
        svg.push('\n');
    }
    svg.push_str("</svg>\n");
    svg
}

/// Each share that has a sample above it.
fn of(sorted_ns: &[f64]) -> Vec<Option<f64>> {
    let count = sorted_ns.len() as f64;
    let one = |(_, share): &(&str, f64)| {
        let has = count * (1.0 - share) >= 1.0 - 1e-9;
        linear(sorted_ns, *share).filter(|_| has)
    };
    SHARES.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_that_there_are_have_a_bar() {
        let samples: Vec<f64> = (1..=100).map(|number| f64::from(number) * 1e5).collect();
        let line = |name, sorted_ns| Line { name, sorted_ns };
        let svg = draw(
            "A & B",
            &[
                line("all", &samples),
                line("two", &samples[..2]),
                line("none", &[]),
            ],
        );
        // Beside the four of the legend: p50, p90 and p99 of a hundred, and the median of two.
        assert_eq!(svg.matches("<rect").count(), 4 + 3 + 1, "{svg}");
        assert!(svg.contains("A &amp; B") && svg.contains("9.9 ms"), "{svg}");
    }
}
