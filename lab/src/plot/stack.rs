//! Stacked bars, one below the other: how parts share a whole.

use std::fmt::Write as _;

use super::{escape, open};

const WIDTH: f64 = 820.0;
const LEFT: f64 = 180.0;
const RIGHT: f64 = WIDTH - 90.0;
/// Room for the title and the legend.
const TOP: f64 = 62.0;
/// Height of a bar, and from one to the next.
const HEIGHT: f64 = 20.0;
const PITCH: f64 = 28.0;
/// Room for the scale.
const BOTTOM: f64 = 34.0;

/// From one name of the legend to the next.
const LEGEND: f64 = 150.0;

/// Parts that can be told apart.
const STYLES: usize = 4;

/// Lines of the scale at even distances.
const LINES: usize = 4;

/// A part that is narrower has no label.
const LABEL_MIN: f64 = 0.07;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}.in{text-anchor:middle;fill:#fff}.p2+.in,.p3+.in{fill:#24292f}\
.p0{fill:#0550ae}.p1{fill:#8250df}.p2{fill:#d4a72c}.p3{fill:#afb8c1}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}.in{fill:#fff}.p3{fill:#8b949e}}";

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What it is of.
    pub name: String,
    /// The whole, in words.
    pub total: String,
    /// Each part's share of it, and the same in words.
    pub parts: Vec<(f64, String)>,
}

/// The SVG. `parts` are their names, in the order in which each bar has them.
pub fn draw(title: &str, parts: &[&str], bars: &[Bar]) -> String {
    let x = |share: f64| LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT);
    let below = TOP + PITCH * bars.len() as f64;
    let mut svg = open(title, STYLE, WIDTH, below + BOTTOM);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    );
    for (index, name) in parts.iter().enumerate() {
        let at = LEFT + LEGEND * index as f64;
        let _ = writeln!(
            svg,
            "<rect class=\"p{}\" x=\"{at}\" y=\"32\" width=\"12\" height=\"12\"/><text x=\"{}\" y=\"42\">{}</text>",
            index % STYLES,
            at + 18.0,
            escape(name),
        );
    }
    for line in 0..=LINES {
        let share = line as f64 / LINES as f64;
        let x = x(share);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{below}\"/>\
             <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{:.0} %</text>",
            TOP - 6.0,
            below + 18.0,
            share * 100.0,
        );
    }
    for (index, bar) in bars.iter().enumerate() {
        let top = TOP + PITCH * index as f64;
        let baseline = top + HEIGHT - 6.0;
        let _ = writeln!(
            svg,
            "<text class=\"y\" x=\"{}\" y=\"{baseline}\">{}</text><text x=\"{}\" y=\"{baseline}\">{}</text>",
            LEFT - 10.0,
            escape(&bar.name),
            RIGHT + 10.0,
            escape(&bar.total),
        );
        let mut before = 0.0;
        for (part, (share, words)) in bar.parts.iter().enumerate() {
            let (left, right) = (x(before), x(before + share));
            before += share;
            let name = parts.get(part).copied().unwrap_or_default();
            let _ = write!(
                svg,
                "<rect class=\"p{}\" x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{HEIGHT}\"><title>{}: {}</title></rect>",
                part % STYLES,
                right - left,
                escape(name),
                escape(words),
            );
            if *share >= LABEL_MIN {
                let _ = write!(
                    svg,
                    "<text class=\"in\" x=\"{:.1}\" y=\"{baseline}\">{:.0} %</text>",
                    f64::midpoint(left, right),
                    share * 100.0,
                );
            }
        }
        svg.push('\n');
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_a_bar_one_after_the_other() {
        let bar = Bar {
            name: "a & b".to_owned(),
            total: "10 µs".to_owned(),
            parts: vec![
                (0.5, "5 µs".to_owned()),
                (0.45, String::new()),
                (0.05, String::new()),
            ],
        };
        let svg = draw("Shares", &["x", "y", "z"], &[bar]);
        assert!(
            svg.contains("a &amp; b") && svg.contains("x: 5 µs"),
            "{svg}"
        );
        // Three of the legend, three of the bar, whose last is too narrow for its label.
        assert_eq!(svg.matches("<rect").count(), 6, "{svg}");
        assert_eq!(svg.matches("class=\"in\"").count(), 2, "{svg}");
        assert!(
            svg.contains("x=\"180.0\" y=\"62\" width=\"275.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("x=\"455.0\" y=\"62\" width=\"247.5\""),
            "{svg}"
        );
        assert!(draw("nothing", &[], &[]).ends_with("</svg>\n"));
    }
}
