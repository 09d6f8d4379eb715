//! Curves of one quantity against another, and one point beside them.

use std::fmt::Write as _;

use serde_json::Value;

use super::format::number;
use super::{escape, open};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 230.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = HEIGHT - 60.0;

/// Lines at even distances.
const LINES: usize = 4;

/// Curves that can be told apart.
const STYLES: usize = 6;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{fill:#24292f;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}\
.grid{stroke:#8c959f;stroke-opacity:.35}path{fill:none;stroke-width:2}.dot{fill:#cf222e;stroke:#fff;stroke-width:2}\
.l0{stroke:#0969da}.l1{stroke:#9a6700;stroke-dasharray:7 4}.l2{stroke:#6e7781;stroke-dasharray:2 4}\
.l3{stroke:#1a7f37}.l4{stroke:#8250df;stroke-dasharray:7 4}.l5{stroke:#bf3989;stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}.dot{fill:#ff7b72;stroke:#0d1117}\
.l0{stroke:#58a6ff}.l1{stroke:#d29922}.l2{stroke:#8b949e}.l3{stroke:#3fb950}.l4{stroke:#bc8cff}.l5{stroke:#f778ba}}";

/// A curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Its points, and what each is for.
    pub points: Vec<(f64, f64, String)>,
}

/// An axis from 0 on.
#[derive(Debug, Clone, Copy)]
pub struct Axis<'a> {
    /// What it is of, with its unit.
    pub name: &'a str,
}

/// The SVG. The dot is what there is now.
pub fn draw(
    title: &str,
    [x_axis, y_axis]: [Axis<'_>; 2],
    curves: &[Curve],
    dot: Option<(f64, f64, &str)>,
) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = |of: fn(&(f64, f64, String)) -> f64, dot: Option<f64>| {
        let most = points().map(of).chain(dot).fold(0.0, f64::max);
        if most > 0.0 { most * 1.05 } else { 1.0 }
    };
    let x_most = most(|point| point.0, dot.map(|dot| dot.0));
    let y_most = most(|point| point.1, dot.map(|dot| dot.1));
    let x = |value: f64| LEFT + value / x_most * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - value / y_most * (BOTTOM - TOP);
    let mut svg = open(title, STYLE, WIDTH, HEIGHT);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"20\">{}</text>\
         <text class=\"x\" x=\"{}\" y=\"{}\">{}</text><text x=\"8\" y=\"{}\">{}</text>",
        escape(title),
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 44.0,
        escape(x_axis.name),
        TOP - 14.0,
        escape(y_axis.name),
    );
    for line in 0..=LINES {
        let share = line as f64 / LINES as f64;
        let (x_value, y_value) = (x_most * share, y_most * share);
        let (x, y) = (x(x_value), y(y_value));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>\
             <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text><text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            number(y_value),
            BOTTOM + 18.0,
            number(x_value),
        );
    }
    for (index, curve) in curves.iter().enumerate() {
        let class = index % STYLES;
        let mut path = String::new();
        for (x_value, y_value, means) in &curve.points {
            let (x, y) = (x(*x_value), y(*y_value));
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
            let _ = writeln!(
                svg,
                "<circle class=\"l{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"none\"><title>{}</title></circle>",
                escape(means)
            );
        }
        let legend = TOP + 10.0 + 20.0 * index as f64;
        let _ = writeln!(
            svg,
            "<path class=\"l{class}\" d=\"{path}\"/><path class=\"l{class}\" d=\"M{} {legend}h18\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            RIGHT + 12.0,
            RIGHT + 36.0,
            legend + 4.0,
            escape(&curve.name),
        );
    }
    if let Some((x_value, y_value, name)) = dot {
        let legend = TOP + 10.0 + 20.0 * curves.len() as f64;
        let _ = writeln!(
            svg,
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"><title>{name}</title></circle>\
             <circle class=\"dot\" cx=\"{}\" cy=\"{legend}\" r=\"6\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            x(x_value),
            y(y_value),
            RIGHT + 21.0,
            RIGHT + 36.0,
            legend + 4.0,
            name = escape(name),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// What a server says of other settings (`GET …/what-if`): cold starts against memory, with the settings of now as a dot.
pub fn what_if(found: &Value) -> String {
    let point = |point: &Value| {
        let (memory, share) = (point["memory_mib"].as_f64(), point["cold_share"].as_f64());
        let means = format!(
            "{} s: {} cold, {} queued, {} refused",
            point["idle_timeout_s"], point["cold"], point["queued"], point["refused"]
        );
        Some((memory?, share? * 100.0, means))
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let curves: Vec<Curve> = list(&found["curves"])
        .iter()
        .map(|curve| Curve {
            name: name_of(curve),
            points: list(&curve["points"]).iter().filter_map(point).collect(),
        })
        .collect();
    let today = point(&found["today"]["points"][0]);
    let axes = [
        Axis {
            name: "memory of its instances in the mean, MiB",
        },
        Axis {
            name: "cold starts, % of calls",
        },
    ];
    let title = format!(
        "{}: cold starts against memory by idle timeout",
        found["function"].as_str().unwrap_or_default()
    );
    let dot = today.as_ref().map(|(x, y, _)| (*x, *y, "today"));
    draw(&title, axes, &curves, dot)
}

/// The settings that all points of a curve have.
pub fn name_of(curve: &Value) -> String {
    let mut name = format!(
        "min {}, max {}",
        curve["min_instances"], curve["max_concurrency"]
    );
    if let Some(memory) = curve["memory_mib"].as_u64() {
        let _ = write!(name, ", {memory} MiB");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_and_the_dot_have_one_scale() {
        let curve = Curve {
            name: "min <1>".to_owned(),
            points: vec![(0.0, 50.0, "1 s".to_owned()), (10.0, 0.0, "1 h".to_owned())],
        };
        let axes = [Axis { name: "MiB" }, Axis { name: "cold, %" }];
        let svg = draw("what if", axes, &[curve], Some((20.0, 100.0, "today")));
        assert!(
            svg.ends_with("</svg>\n") && svg.contains("min &lt;1&gt;"),
            "{svg}"
        );
        // The dot is at 1/1.05 of both axes.
        let (x, y) = (LEFT + (RIGHT - LEFT) / 1.05, BOTTOM - (BOTTOM - TOP) / 1.05);
        assert!(
            svg.contains(&format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"")),
            "{svg}"
        );
        assert!(draw("nothing", axes, &[], None).ends_with("</svg>\n"));
        let point = |cold: f64| serde_json::json!({"memory_mib": 3.0, "cold_share": cold, "idle_timeout_s": 60, "cold": 1});
        let found = serde_json::json!({"function": "hello", "today": {"points": [point(0.1)]},
            "curves": [{"min_instances": 1, "max_concurrency": 8, "memory_mib": 64, "points": [point(0.2), point(0.0)]}]});
        let svg = what_if(&found);
        assert!(
            svg.contains("min 1, max 8, 64 MiB") && svg.contains(">today<"),
            "{svg}"
        );
    }
}
