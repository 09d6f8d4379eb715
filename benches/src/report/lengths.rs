//! The plots of chains by their length: requests a second, median and 99th percentile, beside the functions hop by hop over HTTP.

use super::format::{number, time};
use super::panel::{self, Axis, Line, Panel, Stroke};
use crate::results::Document;
use crate::suites::chains::{ALONE, BUSIEST, BY_HTTP, LONGEST, RING, lengths, of_length};

/// Each plot's file, with the connections that it is of.
pub const FILES: [(usize, &str); 2] = [
    (BUSIEST, "chains-lengths-busy.svg"),
    (ALONE, "chains-lengths-alone.svg"),
];

/// The plot of a category, if it has one.
pub fn file_of(category: &str) -> Option<&'static str> {
    let of = |(connections, _): &&(usize, &str)| category == lengths(*connections);
    FILES.iter().find(of).map(|(_, file)| *file)
}

/// The SVG for so many connections; none where no length was measured.
pub fn draw(document: &Document, connections: usize) -> Option<String> {
    let category = lengths(connections);
    let line = |name, way, stroke, value: &dyn Fn(&str) -> Option<f64>| Line {
        name,
        stroke,
        points: (1..=LONGEST)
            .filter_map(|length| Some((length as f64, value(&of_length(way, length))?)))
            .collect(),
    };
    let panel = |title, label, value: &dyn Fn(&str) -> Option<f64>| Panel {
        title,
        lines: vec![
            line("chain, ring", RING, Stroke::Ours, value),
            line("over HTTP", BY_HTTP, Stroke::Theirs, value),
        ],
        label,
    };
    let panels = [
        panel(
            "requests/s by functions".to_owned(),
            number,
            &|row: &str| document.value_in(&category, row, "requests/s"),
        ),
        panel("p50".to_owned(), time, &|row: &str| {
            Some(document.timed(&category, row)?.median_ns)
        }),
        panel("p99".to_owned(), time, &|row: &str| {
            document.timed(&category, row)?.p99_ns
        }),
    ];
    panel::draw(&category, Axis::Counts, &panels)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::Samples;

    #[test]
    fn a_plot_has_each_length_that_was_measured() {
        let mut document = Document::new("chains");
        assert_eq!(draw(&document, BUSIEST), None);
        for length in [1, 8] {
            for way in [RING, BY_HTTP] {
                let row = of_length(way, length);
                let mut samples = Samples::default();
                (0..2_000).for_each(|_| samples.push(Duration::from_micros(length as u64)));
                document.add(&lengths(BUSIEST), &row, samples);
                document.figure(&lengths(BUSIEST), &row, 4_000.0, "requests/s");
            }
        }
        let svg = draw(&document, BUSIEST).unwrap();
        for panel in ["requests/s", "p50", "p99"] {
            assert!(svg.contains(panel), "{svg}");
        }
        // The rate is the same at both lengths; the median grows to the highest value there is.
        assert!(
            svg.contains("class=\"ours\" d=\"M90.0 40.0L690.0 40.0\""),
            "{svg}"
        );
        assert!(svg.contains("L690.0 280.0"), "{svg}");
        assert_eq!(draw(&document, ALONE), None);
        assert_eq!(file_of(&lengths(ALONE)), Some("chains-lengths-alone.svg"));
        assert_eq!(file_of("anything else"), None);
    }
}
