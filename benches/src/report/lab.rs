//! The lab's tables, whose columns are the figures' units, and the plot of what duets have found.

use std::fmt::Write as _;

use super::format::number;
use super::panel::{self, Axis, Line, Panel, Stroke};
use crate::results::Document;
use crate::suites::lab::{
    CLOSED, CPU, DUET_COLUMNS, DUETS, Duet, OPEN, P50, P99, PERCENTILES, RATE, RATE_ERROR, TAIL,
    TAIL_COLUMNS, changes, percentile,
};

/// The plot's file.
pub const FILE: &str = "lab-duets-changes.svg";

/// Each table's category, and its columns.
const TABLES: [(&str, &[&str]); 4] = [
    (CLOSED, &[RATE, P50, P99, CPU]),
    (OPEN, &[RATE_ERROR, P50, P99, CPU]),
    (DUETS, &DUET_COLUMNS),
    (TAIL, &TAIL_COLUMNS),
];

/// Whether a category's figures are in one of the tables, or the plot.
pub fn has_table(category: &str) -> bool {
    TABLES.iter().any(|(of, _)| *of == category)
        || Duet::ALL.iter().any(|duet| changes(*duet) == category)
}

/// The tables of what was measured.
pub fn write(document: &Document, page: &mut String) {
    for (category, columns) in TABLES {
        let mut rows: Vec<&str> = Vec::new();
        for figure in &document.figures {
            if figure.category == category && !rows.contains(&figure.name.as_str()) {
                rows.push(&figure.name);
            }
        }
        if rows.is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(page, "### {}\n", super::page::capitalised(category));
        if category == DUETS {
            let _ = writeln!(page, "![Changes of the benchmarks, sorted]({FILE})\n");
        }
        let line = " ---: |".repeat(columns.len());
        let _ = writeln!(page, "| | {} |\n| --- |{line}", columns.join(" | "));
        for row in rows {
            let _ = write!(page, "| {row} |");
            for unit in columns {
                let value = document.value_in(category, row, unit);
                let _ = write!(page, " {} |", value.map_or_else(String::new, number));
            }
            page.push('\n');
        }
        page.push('\n');
    }
}

/// The benchmarks' changes in their order, a line for each duet; none where there was no duet.
pub fn draw(document: &Document) -> Option<String> {
    let line = |duet: Duet| Line {
        name: duet.in_short(),
        stroke: match duet {
            Duet::Itself => Stroke::Neither,
            Duet::Copy => Stroke::Theirs,
            Duet::Slower5 | Duet::Slower10 => Stroke::Ours,
        },
        points: PERCENTILES
            .into_iter()
            .filter_map(|percent| {
                let change = document.value(&changes(duet), &percentile(percent))?;
                Some((percent, change))
            })
            .collect(),
    };
    let panel = Panel {
        title: "median change of a benchmark, by the percentage of benchmarks that change no more"
            .to_owned(),
        lines: Duet::ALL.map(line).into(),
        label: |change| format!("{} %", number(change)),
    };
    panel::draw("Changes found by duets", Axis::Percent, &[panel])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_row_stand_side_by_side() {
        let mut document = Document::new("lab");
        let mut page = String::new();
        write(&document, &mut page);
        assert_eq!((page.as_str(), draw(&document)), ("", None));
        document.figure(OPEN, "fixed, 100/s", 0.25, RATE_ERROR);
        document.figure(OPEN, "fixed, 100/s", 40.0, P99);
        document.figure(TAIL, "warm", 1.5, TAIL_COLUMNS[0]);
        write(&document, &mut page);
        assert!(
            page.contains("| fixed, 100/s | 0.25 |  | 40 |  |\n"),
            "{page}"
        );
        assert!(page.contains("### Tail table") && page.contains("| warm | 1.5 |"));
        assert!(!page.contains("Duets"), "{page}");
        assert!(has_table(OPEN) && has_table(&changes(Duet::Itself)) && !has_table("warm"));
    }

    #[test]
    fn the_plot_has_a_line_for_each_duet_and_room_for_negative_changes() {
        let mut document = Document::new("lab");
        for (duet, most) in Duet::ALL.into_iter().zip([1.0, 1.0, 6.0, 9.0]) {
            document.figure(&changes(duet), &percentile(0.0), -1.0, "%");
            document.figure(&changes(duet), &percentile(100.0), most, "%");
        }
        let svg = draw(&document).unwrap();
        // From the lower edge to the upper one, over the whole width.
        assert!(svg.contains("d=\"M90.0 220.0L690.0 40.0\""), "{svg}");
        assert!(svg.contains(">-1 %<") && svg.contains(">4 %<"), "{svg}");
        assert!(svg.contains(Duet::Slower10.in_short()), "{svg}");
    }
}
