//! Histograms of latencies, one below the other on the same log scale of time, each as high as its fullest bin.

use std::fmt::Write as _;

use super::cdf::Line;
use super::format::number;
use super::scale::Decades;
use super::{escape, open};

const WIDTH: f64 = 820.0;
const LEFT: f64 = 160.0;
const RIGHT: f64 = WIDTH - 30.0;
const TOP: f64 = 34.0;
/// Height of one, and from one to the next.
const HEIGHT: f64 = 44.0;
const PITCH: f64 = 56.0;
const BOTTOM: f64 = 30.0;

/// Bins of a decade.
const BINS: f64 = 20.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}rect{fill:#0969da;fill-opacity:.8}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}rect{fill:#58a6ff}}";

/// The SVG.
pub fn draw(title: &str, lines: &[Line<'_>]) -> String {
    let all = lines.iter().flat_map(|line| line.sorted_ns).copied();
    let scale = Decades::of(all, LEFT, RIGHT);
    let edge = |bin: usize| scale.x(10_f64.powf(scale.from + bin as f64 / BINS));
    let below = TOP + PITCH * lines.len() as f64;
    let mut svg = open(title, STYLE, WIDTH, below + BOTTOM);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    );
    scale.grid(TOP, below, &mut svg);
    for (index, line) in lines.iter().enumerate() {
        let bottom = TOP + PITCH * index as f64 + HEIGHT;
        let counts = counts(line.sorted_ns, scale.from, scale.to);
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let _ = writeln!(
            svg,
            "<text class=\"y\" x=\"{}\" y=\"{}\">{}</text><text class=\"y\" x=\"{}\" y=\"{}\">{} samples</text>",
            LEFT - 10.0,
            bottom - 18.0,
            escape(line.name),
            LEFT - 10.0,
            bottom - 3.0,
            number(line.sorted_ns.len() as f64),
        );
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (left, right) = (edge(bin), edge(bin + 1));
            let height = HEIGHT * *count as f64 / most as f64;
            let _ = write!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                bottom - height,
                right - left,
            );
        }
        svg.push('\n');
    }
    svg.push_str("</svg>\n");
    svg
}

/// How many samples each bin has.
fn counts(samples: &[f64], from: f64, to: f64) -> Vec<usize> {
    let mut counts = vec![0; ((to - from) * BINS).round() as usize];
    let last = counts.len().saturating_sub(1);
    for sample in samples {
        let bin = ((sample.max(1.0).log10() - from) * BINS).floor();
        // The largest sample may be the scale's end.
        counts[(bin.max(0.0) as usize).min(last)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_in_their_bins() {
        let counts = counts(&[100.0, 101.0, 999.0, 1_000.0], 2.0, 3.0);
        assert_eq!(counts.len(), 20);
        assert_eq!((counts[0], counts[19]), (2, 2));
        assert_eq!(counts.iter().sum::<usize>(), 4);
    }

    #[test]
    fn each_line_has_its_bars_on_the_same_scale() {
        let (warm, cold) = ([2e5, 2e5, 3e5], [2e6]);
        let line = |name, sorted_ns| Line { name, sorted_ns };
        let svg = draw(
            "A & B",
            &[line("warm", &warm), line("cold", &cold), line("none", &[])],
        );
        assert!(
            svg.contains("A &amp; B") && svg.contains("3 samples"),
            "{svg}"
        );
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        assert!(draw("nothing", &[]).ends_with("</svg>\n"));
    }
}
