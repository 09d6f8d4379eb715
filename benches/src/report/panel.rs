//! Plots of several panels over one axis: what changes with a rate or with a length, a line for each of those that are compared.
//! The colours follow the reader's scheme, light or dark; the background is the page's.

use std::fmt::Write as _;

use super::format::number;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = WIDTH - 130.0;
/// Height of a panel, and from one to the next.
const HEIGHT: f64 = 180.0;
const PITCH: f64 = HEIGHT + 60.0;
const TOP: f64 = 40.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}path{fill:none;stroke-width:2.5}\
.ours{stroke:#0969da}.theirs{stroke:#9a6700;stroke-dasharray:7 4}.neither{stroke:#6e7781;stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}\
.ours{stroke:#58a6ff}.theirs{stroke:#d29922}.neither{stroke:#8b949e}}";

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(super) enum Stroke {
    /// Hearth.
    Ours,
    /// What it is compared with.
    Theirs,
    /// A bound of both.
    Neither,
}

impl Stroke {
    /// Its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
            Self::Neither => "neither",
        }
    }
}

/// The axis below all panels.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// A log scale with a mark for each power of ten.
    Decades,
    /// A linear scale with a mark for each integer.
    Counts,
    /// A linear scale of percentages with a mark for every tenth.
    Percent,
}

/// A line: what the legend says, and its points.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) stroke: Stroke,
    pub(super) points: Vec<(f64, f64)>,
}

/// What is shown over the axis, from 0, or the smallest value below, to the largest.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) lines: Vec<Line>,
    /// How a value is written beside the panel.
    pub(super) label: fn(f64) -> String,
}

/// The SVG; none without any point.
pub(super) fn draw(title: &str, axis: Axis, panels: &[Panel]) -> Option<String> {
    let points = panels.iter().flat_map(|panel| &panel.lines);
    let all: Vec<f64> = points
        .flat_map(|line| line.points.iter().map(|(x, _)| *x))
        .collect();
    let least = all.iter().copied().reduce(f64::min)?;
    let least = match axis {
        Axis::Percent => least,
        Axis::Decades | Axis::Counts => least.max(1.0),
    };
    // A single point has a place, too.
    let most = all.into_iter().fold(least + 0.1 * least.max(1.0), f64::max);
    let height = TOP + PITCH * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        panel.draw(
            TOP + PITCH * index as f64,
            &Across { axis, least, most },
            &mut svg,
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// The axis with its ends.
struct Across {
    axis: Axis,
    least: f64,
    most: f64,
}

impl Across {
    fn x(&self, value: f64) -> f64 {
        let share = match self.axis {
            Axis::Decades => (value.max(1.0) / self.least).ln() / (self.most / self.least).ln(),
            Axis::Counts | Axis::Percent => (value - self.least) / (self.most - self.least),
        };
        LEFT + share * (RIGHT - LEFT)
    }

    fn marks(&self) -> Vec<f64> {
        let (least, most) = (self.least, self.most);
        match self.axis {
            Axis::Decades => ((least.log10().ceil() as i32)..=(most.log10().floor() as i32))
                .map(|decade| 10_f64.powi(decade))
                .collect(),
            Axis::Counts => ((least.ceil() as i32)..=(most.floor() as i32))
                .map(f64::from)
                .collect(),
            Axis::Percent => (0..=10)
                .map(|tenth| f64::from(10 * tenth))
                .filter(|mark| (least..=most).contains(mark))
                .collect(),
        }
    }
}

impl Panel {
    /// Draws it with its upper edge at `top`.
    fn draw(&self, top: f64, across: &Across, svg: &mut String) {
        let bottom = top + HEIGHT;
        let values = self.lines.iter().flat_map(|line| &line.points);
        let values = values.map(|(_, value)| *value);
        let smallest = values.clone().fold(0.0, f64::min);
        let range = values.fold(0.0, f64::max).max(1.0) - smallest;
        let y = |value: f64| bottom - HEIGHT * (value - smallest) / range;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"8\" y=\"{}\">{}</text>",
            top - 14.0,
            self.title
        );
        for share in [0.0, 0.5, 1.0] {
            let value = smallest + range * share;
            let y = y(value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                (self.label)(value)
            );
        }
        for mark in across.marks() {
            let x = across.x(mark);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                bottom + 18.0,
                number(mark)
            );
        }
        for (index, line) in self.lines.iter().enumerate() {
            let mut path = String::new();
            for (x, value) in &line.points {
                let move_or_line = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{move_or_line}{:.1} {:.1}", across.x(*x), y(*value));
            }
            // The legend is a list beside the panel: lines that meet would hide labels at their ends.
            let legend = top + 14.0 + 20.0 * index as f64;
            let _ = writeln!(
                svg,
                "<path class=\"{class}\" d=\"{path}\"/>\
                 <path class=\"{class}\" d=\"M{} {legend}h18\"/><text x=\"{}\" y=\"{}\">{}</text>",
                RIGHT + 6.0,
                RIGHT + 28.0,
                legend + 4.0,
                line.name,
                class = line.stroke.class(),
            );
        }
    }
}
