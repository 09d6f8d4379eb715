//! The flood's plot: what an innocent client gets, and its p99, over the packets a second, a line for each way to limit them.

use std::fmt::Write as _;

use super::format::{number, time};
use crate::results::Document;
use crate::suites::ingress::flood::{CATEGORY, PACKETS, REQUESTS, STEPS, Way, row};

/// The plot's file.
pub const FILE: &str = "ingress-flood.svg";

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
.xdp{stroke:#0969da}.nftables{stroke:#9a6700;stroke-dasharray:7 4}.nowhere{stroke:#6e7781;stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#e6edf3}\
.xdp{stroke:#58a6ff}.nftables{stroke:#d29922}.nowhere{stroke:#8b949e}}";

fn class(way: Way) -> &'static str {
    match way {
        Way::Xdp => "xdp",
        Way::Nftables => "nftables",
        Way::Nowhere => "nowhere",
    }
}

/// A line's points: packets/s and what is shown over them.
type Points = Vec<(f64, f64)>;

/// What a panel shows of each way.
struct Panel {
    title: &'static str,
    lines: Vec<(Way, Points)>,
    label: fn(f64) -> String,
}

/// The SVG; none where there was no flood.
pub fn draw(document: &Document) -> Option<String> {
    let line = |way, value: &dyn Fn(&str) -> Option<f64>| {
        let point = |step| {
            let row = row(way, step);
            let packets = document.value_in(CATEGORY, &row, PACKETS)?;
            Some((packets, value(&row)?))
        };
        // No flood has no place on a log scale.
        let points: Points = STEPS.into_iter().skip(1).filter_map(point).collect();
        (way, points)
    };
    let requests = |row: &str| document.value_in(CATEGORY, row, REQUESTS);
    let p99 = |row: &str| document.timed(CATEGORY, row)?.p99_ns;
    let panels = [
        Panel {
            title: "requests/s of the innocent client, by the flood\u{2019}s packets/s",
            lines: Way::ALL.map(|way| line(way, &requests)).into(),
            label: number,
        },
        Panel {
            title: "its p99",
            lines: Way::ALL.map(|way| line(way, &p99)).into(),
            label: time,
        },
    ];
    let packets = panels[0].lines.iter().flat_map(|(_, points)| points);
    let packets: Vec<f64> = packets.map(|(packets, _)| *packets).collect();
    let least = packets.iter().copied().reduce(f64::min)?.max(1.0);
    let most = packets.iter().copied().fold(least * 1.1, f64::max);
    let height = TOP + PITCH * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\">\n<title>An innocent client in a flood</title>\n<style>{STYLE}</style>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        panel.draw(TOP + PITCH * index as f64, [least, most], &mut svg);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

impl Panel {
    /// Draws it with its upper edge at `top`; packets/s are on a log scale.
    fn draw(&self, top: f64, [least, most]: [f64; 2], svg: &mut String) {
        let bottom = top + HEIGHT;
        let values = self.lines.iter().flat_map(|(_, points)| points);
        let largest = values.map(|(_, value)| *value).fold(0.0, f64::max).max(1.0);
        let x = |packets: f64| {
            let share = (packets.max(1.0) / least).ln() / (most / least).ln();
            LEFT + share * (RIGHT - LEFT)
        };
        let y = |value: f64| bottom - HEIGHT * value / largest;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"8\" y=\"{}\">{}</text>",
            top - 14.0,
            self.title
        );
        for share in [0.0, 0.5, 1.0] {
            let (value, y) = (largest * share, y(largest * share));
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                (self.label)(value)
            );
        }
        let decades = (least.log10().ceil() as i32)..=(most.log10().floor() as i32);
        for packets in decades.map(|decade| 10_f64.powi(decade)) {
            let x = x(packets);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                bottom + 18.0,
                number(packets)
            );
        }
        for (index, (way, points)) in self.lines.iter().enumerate() {
            let mut path = String::new();
            for (packets, value) in points {
                let move_or_line = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{move_or_line}{:.1} {:.1}", x(*packets), y(*value));
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
                way.name(),
                class = class(*way),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_a_line_for_each_way_and_none_without() {
        let mut document = Document::new("ingress");
        assert_eq!(draw(&document), None);
        for way in Way::ALL {
            for (step, packets) in [(STEPS[1], 25_000.0), (STEPS[9], 2_000_000.0)] {
                document.figure(CATEGORY, &row(way, step), packets, PACKETS);
                document.figure(CATEGORY, &row(way, step), 1_000.0, REQUESTS);
            }
        }
        let svg = draw(&document).unwrap();
        assert!(
            svg.contains("1,000,000") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        for way in Way::ALL {
            assert!(svg.contains(way.name()), "{svg}");
            // Two points, at the ends of the scale.
            let line = format!("<path class=\"{}\" d=\"M90.0", class(way));
            assert!(svg.contains(&line), "{svg}");
        }
    }
}
