//! Empirical distribution functions, on a log scale of time: a step for each sample, and marks where the median and the 99th percentile
//! are read.

use std::fmt::Write as _;

use super::format::time;
use super::scale::Decades;
use super::{escape, open};
use crate::statistics::quantile::linear;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 250.0;
/// Height of a panel, and from one to the next.
const HEIGHT: f64 = 180.0;
const PITCH: f64 = HEIGHT + 64.0;
const TOP: f64 = 40.0;

/// Most points of a line: more than there are pixels say nothing.
const POINTS_MAX: usize = 500;

/// Lines of one panel that can be told apart.
const STYLES: usize = 6;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}path{fill:none;stroke-width:2}\
.l0{stroke:#0969da}.l1{stroke:#9a6700;stroke-dasharray:7 4}.l2{stroke:#6e7781;stroke-dasharray:2 4}\
.l3{stroke:#1a7f37}.l4{stroke:#8250df;stroke-dasharray:7 4}.l5{stroke:#cf222e;stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}\
.l0{stroke:#58a6ff}.l1{stroke:#d29922}.l2{stroke:#8b949e}.l3{stroke:#3fb950}.l4{stroke:#bc8cff}.l5{stroke:#ff7b72}}";

/// Samples of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What they are of.
    pub name: &'a str,
    /// In ns, ascending.
    pub sorted_ns: &'a [f64],
}

/// Lines that are to be compared.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// Above it.
    pub title: &'a str,
    /// At least one of them has samples; as many as six are told apart.
    pub lines: Vec<Line<'a>>,
}

/// The SVG. All panels have the same scale.
pub fn draw(title: &str, panels: &[Panel<'_>]) -> String {
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    let all = lines.flat_map(|line| line.sorted_ns).copied();
    let scale = Decades::of(all, LEFT, RIGHT);
    let mut svg = open(title, STYLE, WIDTH, TOP + PITCH * panels.len() as f64);
    for (index, panel) in panels.iter().enumerate() {
        panel.draw(TOP + PITCH * index as f64, &scale, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

impl Panel<'_> {
    fn draw(&self, top: f64, scale: &Decades, svg: &mut String) {
        let bottom = top + HEIGHT;
        let x = |ns: f64| scale.x(ns);
        let y = |share: f64| bottom - HEIGHT * share;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"8\" y=\"{}\">{}</text>",
            top - 14.0,
            escape(self.title)
        );
        for share in [0.0, 0.5, 0.99] {
            let y = y(share);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{}\" y=\"{:.1}\">{share}</text>",
                LEFT - 8.0,
                y + 4.0,
            );
        }
        scale.grid(top, bottom, svg);
        for (index, line) in self.lines.iter().enumerate() {
            let class = index % STYLES;
            let path = steps(line.sorted_ns, x, y);
            let legend = top + 10.0 + 20.0 * index as f64;
            let figures = match (linear(line.sorted_ns, 0.5), linear(line.sorted_ns, 0.99)) {
                (Some(median), Some(p99)) => format!(": {} / {}", time(median), time(p99)),
                _ => ": no samples".to_owned(),
            };
            let _ = writeln!(
                svg,
                "<path class=\"l{class}\" d=\"{path}\"/><path class=\"l{class}\" d=\"M{} {legend}h18\"/>\
                 <text x=\"{}\" y=\"{}\">{}{figures}</text>",
                RIGHT + 12.0,
                RIGHT + 36.0,
                legend + 4.0,
                escape(line.name),
            );
        }
    }
}

/// The path of a distribution function: up at each sample, level up to the next.
fn steps(sorted: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let count = sorted.len();
    let mut path = String::new();
    let Some(first) = sorted.first() else {
        return path;
    };
    // Writing to a string does not fail.
    let _ = write!(path, "M{:.1} {:.1}", x(*first), y(0.0));
    let points = count.min(POINTS_MAX);
    for point in 1..=points {
        // The last one is the largest sample.
        let rank = (point * count).div_ceil(points);
        let share = rank as f64 / count as f64;
        let _ = write!(path, "H{:.1}V{:.1}", x(sorted[rank - 1]), y(share));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_up_at_each_sample() {
        let path = steps(&[10.0, 20.0, 40.0], |ns| ns, |share| share * 30.0);
        assert_eq!(path, "M10.0 0.0H10.0V10.0H20.0V20.0H40.0V30.0");
        assert_eq!(steps(&[], |ns| ns, |share| share), "");
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let path = steps(&many, |ns| ns, |share| share);
        assert_eq!(path.matches('V').count(), POINTS_MAX);
        assert!(path.ends_with("H9999.0V1.0"), "{path}");
    }

    #[test]
    fn panels_share_a_scale_and_say_their_figures() {
        let (warm, cold) = ([2e5, 3e5, 4e5], [2e6, 3e6, 4e7]);
        let line = |name, sorted_ns| Line { name, sorted_ns };
        let panels = [
            Panel {
                title: "one & two",
                lines: vec![line("warm", &warm), line("cold", &cold)],
            },
            Panel {
                title: "none",
                lines: vec![line("empty", &[])],
            },
        ];
        let svg = draw("Latencies <1>", &panels);
        assert!(svg.ends_with("</svg>\n") && svg.contains("Latencies &lt;1&gt;"));
        assert!(
            svg.contains("one &amp; two") && svg.contains("warm: 300 µs / 398 µs"),
            "{svg}"
        );
        assert!(svg.contains("empty: no samples"));
        // 100 µs to 100 ms, in each panel.
        assert_eq!(svg.matches(">100 ms<").count(), 2, "{svg}");
        assert!(draw("nothing", &[]).ends_with("</svg>\n"));
    }
}
