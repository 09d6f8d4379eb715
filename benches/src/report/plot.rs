//! A plot of one category: for each row a line from the median over the 95th to the 99th percentile, on a log scale.
//! The colours follow the reader's scheme, light or dark; the background is the page's.

use std::fmt::Write as _;

use super::format::time;
use crate::results::Document;

const WIDTH: f64 = 820.0;
/// Where labels end and the scale begins and ends.
const LEFT: f64 = 330.0;
const RIGHT: f64 = WIDTH - 70.0;
const TOP: f64 = 30.0;
const ROW: f64 = 24.0;
/// Room for the scale and the legend below the rows.
const BOTTOM: f64 = 50.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}\
.label{fill:#24292f;text-anchor:end}.tick{text-anchor:middle}.title{fill:#24292f;font-weight:600}\
.grid{stroke:#8c959f;stroke-opacity:.35}.range{stroke:#0969da;stroke-width:3;stroke-opacity:.45}\
.p50{fill:#0969da}.p95,.p99{stroke:#0969da;stroke-width:2}.floor .range,.floor .p95,.floor .p99{stroke:#6e7781}\
.floor .p50{fill:#6e7781}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.label,.title{fill:#e6edf3}\
.range,.p95,.p99{stroke:#58a6ff}.p50{fill:#58a6ff}.floor .range,.floor .p95,.floor .p99{stroke:#8b949e}\
.floor .p50{fill:#8b949e}}";

/// Where a duration lies on a log scale from `from` to `to`, in ns.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// From the power of ten below the smallest median to the one above the largest p99.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min).max(1.0);
        let most = values.fold(1.0, f64::max);
        let from = 10_f64.powf(least.log10().floor());
        let to = 10_f64.powf(most.log10().ceil()).max(from * 10.0);
        Self { from, to }
    }

    fn x(&self, nanos: f64) -> f64 {
        let share = (nanos.max(1.0) / self.from).log10() / (self.to / self.from).log10();
        LEFT + share * (RIGHT - LEFT)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let decades = (self.to / self.from).log10().round() as i32;
        let from = self.from;
        (0..=decades).map(move |decade| from * 10_f64.powi(decade))
    }
}

/// The SVG of a category.
pub fn draw(document: &Document, category: &str) -> String {
    let rows: Vec<_> = document
        .results
        .iter()
        .filter(|result| result.category == category)
        .collect();
    let values = rows
        .iter()
        .flat_map(|row| [row.metrics.median_ns, row.metrics.upper_ns()]);
    let scale = Scale::over(values);
    let below = TOP + ROW * rows.len() as f64;
    let height = below + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"8\" y=\"18\">{title}</text>\n",
        title = escape(category)
    );
    for tick in scale.ticks() {
        let x = scale.x(tick);
        let y = below + 16.0;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{below}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{y}\">{}</text>",
            time(tick)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let m = &row.metrics;
        // Where there are too few samples for a percentile, its mark is that of the one below.
        let upper = [m.median_ns, m.p95_ns.unwrap_or(m.median_ns), m.upper_ns()];
        let [p50, p95, p99] = upper.map(|nanos| scale.x(nanos));
        let kind = if row.name.contains("floor") {
            "floor"
        } else {
            "row"
        };
        let _ = writeln!(
            svg,
            "<g class=\"{kind}\"><text class=\"label\" x=\"{}\" y=\"{}\">{}</text>\
             <line class=\"range\" x1=\"{p50:.1}\" y1=\"{y}\" x2=\"{p99:.1}\" y2=\"{y}\"/>\
             <line class=\"p95\" x1=\"{p95:.1}\" y1=\"{}\" x2=\"{p95:.1}\" y2=\"{}\"/>\
             <line class=\"p99\" x1=\"{p99:.1}\" y1=\"{}\" x2=\"{p99:.1}\" y2=\"{}\"/>\
             <circle class=\"p50\" cx=\"{p50:.1}\" cy=\"{y}\" r=\"4.5\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text></g>",
            LEFT - 10.0,
            y + 4.0,
            escape(row.name.split(" (means").next().unwrap_or_default()),
            y - 4.0,
            y + 4.0,
            y - 7.0,
            y + 7.0,
            p99 + 7.0,
            y + 4.0,
            time(m.median_ns),
        );
    }
    let y = height - 12.0;
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{y}\">● median (its value at the right) · short mark p95 · long mark p99, all observed</text>\n</svg>"
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
