//! One line per comparison: its interval, and its estimate as a dot. No change is in the middle.

use std::fmt::Write as _;

use super::{escape, open};
use crate::statistics::{Interval, Verdict};

const WIDTH: f64 = 820.0;
/// Where labels end and the scale begins and ends.
const LEFT: f64 = 260.0;
const RIGHT: f64 = WIDTH - 130.0;
const TOP: f64 = 40.0;
const ROW: f64 = 24.0;
/// Room for the scale and the legend below the rows.
const BOTTOM: f64 = 50.0;

/// Longest label that has room there, in characters. Of longer names the end is shown, which tells benchmarks apart.
const LABEL_MAX: usize = 38;

/// Least change that the scale shows, as a share.
const SCALE_MIN: f64 = 0.01;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}\
.label{fill:#24292f;text-anchor:end}.tick{text-anchor:middle}.title{fill:#24292f;font-weight:600}\
.grid{stroke:#8c959f;stroke-opacity:.35}.zero{stroke:#57606a}\
.none{stroke:#6e7781;fill:#6e7781}.possible{stroke:#9a6700;fill:#9a6700}\
.faster{stroke:#1a7f37;fill:#1a7f37}.slower{stroke:#cf222e;fill:#cf222e}line{stroke-width:1}.range{stroke-width:3;stroke-opacity:.6}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.label,.title{fill:#e6edf3}.zero{stroke:#9198a1}\
.none{stroke:#8b949e;fill:#8b949e}.possible{stroke:#d29922;fill:#d29922}\
.faster{stroke:#3fb950;fill:#3fb950}.slower{stroke:#ff7b72;fill:#ff7b72}}";

/// A comparison. Changes are shares: 0.05 is 5 % slower.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What was compared.
    pub name: &'a str,
    /// The median change.
    pub estimate: f64,
    /// Its interval.
    pub interval: Interval,
    /// What was decided.
    pub verdict: Verdict,
}

/// The SVG.
pub fn draw(title: &str, rows: &[Row<'_>]) -> String {
    let ends = rows
        .iter()
        .flat_map(|row| [row.interval.low, row.interval.high]);
    let most = ends.map(f64::abs).fold(SCALE_MIN, f64::max) * 1.05;
    let x = |change: f64| LEFT + (change / most + 1.0) / 2.0 * (RIGHT - LEFT);
    let below = TOP + ROW * rows.len() as f64;
    let mut svg = open(title, STYLE, WIDTH, below + BOTTOM);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    );
    let step = step(most);
    let ticks = (most / step).floor() as i32;
    for tick in -ticks..=ticks {
        let (x, class) = (
            x(f64::from(tick) * step),
            if tick == 0 { "zero" } else { "grid" },
        );
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{below}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{}\">{}</text>",
            below + 16.0,
            percent(f64::from(tick) * step)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let class = match row.verdict {
            Verdict::NoChange => "none",
            Verdict::Possible => "possible",
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
        };
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"{}\" y=\"{}\"><title>{}</title>{}</text>\
             <line class=\"range {class}\" x1=\"{:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\"/>\
             <circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"4.5\"/><text x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 10.0,
            y + 4.0,
            escape(row.name),
            escape(&label(row.name)),
            x(row.interval.low),
            x(row.interval.high),
            x(row.estimate),
            RIGHT + 10.0,
            y + 4.0,
            percent(row.estimate),
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\">← faster · median change (its value at the right) and its interval · slower →</text>\n</svg>",
        below + 38.0
    );
    svg
}

fn label(name: &str) -> String {
    let count = name.chars().count();
    if count <= LABEL_MAX {
        return name.to_owned();
    }
    let end = name.chars().skip(count - LABEL_MAX + 1);
    std::iter::once('…').chain(end).collect()
}

/// 1, 2 or 5 times a power of ten, of which the scale has two to five on each side.
fn step(most: f64) -> f64 {
    let decade = 10_f64.powf((most / 2.0).log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|factor| factor * decade)
        .find(|step| most / step >= 2.0)
        .unwrap_or(decade)
}

/// A change as people read it: `+5.2 %`.
pub fn percent(change: f64) -> String {
    let percent = change * 100.0;
    let decimals = match percent.abs() {
        p if p >= 9.95 => 0,
        p if p >= 0.995 => 1,
        _ => 2,
    };
    let text = format!("{percent:+.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    let text = if ["+0", "-0"].contains(&text) {
        "0"
    } else {
        text
    };
    format!("{text} %").replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_in_percent() {
        for (change, expected) in [
            (0.0, "0 %"),
            (0.05, "+5 %"),
            (-0.0523, "\u{2212}5.2 %"),
            (0.25, "+25 %"),
            (1.0, "+100 %"),
            (0.000_47, "+0.05 %"),
            (-0.000_001, "0 %"),
        ] {
            assert_eq!(percent(change), expected);
        }
    }

    #[test]
    fn the_scale_has_round_steps() {
        for (most, expected) in [(0.0105, 0.005), (0.05, 0.02), (0.25, 0.1), (1.1, 0.5)] {
            assert!(
                (step(most) - expected).abs() < 1e-12,
                "{most}: {}",
                step(most)
            );
        }
    }

    #[test]
    fn each_comparison_has_a_line() {
        let row = |name, low, high, verdict| Row {
            name,
            estimate: f64::midpoint(low, high),
            interval: Interval { low, high },
            verdict,
        };
        let rows = [
            row("a<b", 0.04, 0.06, Verdict::Slower),
            row("c", -0.01, 0.01, Verdict::NoChange),
        ];
        let svg = draw("v1 and v2", &rows);
        assert!(svg.contains("a&lt;b") && svg.contains("+5 %"), "{svg}");
        assert!(svg.contains("range slower") && svg.contains("range none"));
        assert!(draw("nothing", &[]).contains("</svg>"));
        let long = format!("{}.BenchmarkX/size=10", "deep/".repeat(20));
        let svg = draw("long", &[row(&long, 0.0, 0.1, Verdict::NoChange)]);
        let shown = format!("<title>{long}</title>…");
        assert!(svg.contains(&shown) && svg.contains("BenchmarkX/size=10</text>"));
    }
}
