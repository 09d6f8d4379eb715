//! The flood's plot: what an innocent client gets, and its p99, over the packets a second, a line for each way to limit them.

use super::format::{number, time};
use super::panel::{self, Axis, Line, Panel, Stroke};
use crate::results::Document;
use crate::suites::ingress::flood::{CATEGORY, PACKETS, REQUESTS, STEPS, Way, row};

/// The plot's file.
pub const FILE: &str = "ingress-flood.svg";

fn stroke(way: Way) -> Stroke {
    match way {
        Way::Xdp => Stroke::Ours,
        Way::Nftables => Stroke::Theirs,
        Way::Nowhere => Stroke::Neither,
    }
}

/// The SVG; none where there was no flood.
pub fn draw(document: &Document) -> Option<String> {
    let line = |way: Way, value: &dyn Fn(&str) -> Option<f64>| {
        let point = |step| {
            let row = row(way, step);
            let packets = document.value_in(CATEGORY, &row, PACKETS)?;
            Some((packets, value(&row)?))
        };
        Line {
            name: way.name(),
            stroke: stroke(way),
            // No flood has no place on a log scale.
            points: STEPS.into_iter().skip(1).filter_map(point).collect(),
        }
    };
    let requests = |row: &str| document.value_in(CATEGORY, row, REQUESTS);
    let p99 = |row: &str| document.timed(CATEGORY, row)?.p99_ns;
    let panels = [
        Panel {
            title: "requests/s of the innocent client, by the flood\u{2019}s packets/s".into(),
            lines: Way::ALL.map(|way| line(way, &requests)).into(),
            label: number,
        },
        Panel {
            title: "its p99".into(),
            lines: Way::ALL.map(|way| line(way, &p99)).into(),
            label: time,
        },
    ];
    panel::draw("An innocent client in a flood", Axis::Decades, &panels)
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
            let line = format!("<path class=\"{}\" d=\"M90.0", stroke(way).class());
            assert!(svg.contains(&line), "{svg}");
        }
    }
}
