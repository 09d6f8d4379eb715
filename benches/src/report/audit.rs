//! The audit's table: what each way costs a request, side by side.

use std::fmt::Write as _;

use super::format::number;
use crate::results::Document;
use crate::suites::chains::{ROWS, WAYS, audit};

/// Whether a category is one of the audit's.
pub fn is_audit(category: &str) -> bool {
    WAYS.iter().any(|way| category == audit(way))
}

/// The table; nothing where nothing was counted.
pub fn write(document: &Document, page: &mut String) {
    let is_counted = |way: &&str| {
        let category = audit(way);
        let mut figures = document.figures.iter();
        figures.any(|figure| figure.category == category)
    };
    let ways: Vec<&str> = WAYS.into_iter().filter(|way| is_counted(way)).collect();
    if ways.is_empty() {
        return;
    }
    let line = " ---: |".repeat(ways.len());
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "### What a request costs\n\nOf one request through two native functions, 1 KB, 1 connection; without the client.\n\n\
         | counted | {} |\n| --- |{line}",
        ways.join(" | "),
    );
    for row in &ROWS {
        let _ = write!(page, "| {} |", row.name);
        for way in &ways {
            let value = document.value(&audit(way), row.name);
            let value = value.map_or_else(|| "not counted".to_owned(), number);
            let _ = write!(page, " {value} |");
        }
        page.push('\n');
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_stand_side_by_side_and_what_is_missing_is_said() {
        let mut document = Document::new("chains");
        let mut page = String::new();
        write(&document, &mut page);
        assert_eq!(page, "");
        document.figure(&audit(WAYS[0]), ROWS[0].name, 1.5, "");
        document.figure(&audit(WAYS[2]), ROWS[0].name, 4.0, "");
        document.figure(&audit(WAYS[2]), ROWS[1].name, 0.0, "");
        write(&document, &mut page);
        let head = format!("| counted | {} | {} |", WAYS[0], WAYS[2]);
        assert!(page.contains(&head), "{page}");
        let first = format!("| {} | 1.5 | 4 |", ROWS[0].name);
        assert!(page.contains(&first), "{page}");
        let second = format!("| {} | not counted | 0 |", ROWS[1].name);
        assert!(page.contains(&second), "{page}");
        assert!(is_audit(&audit(WAYS[1])) && !is_audit("anything else"));
    }
}
