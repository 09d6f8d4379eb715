//! Compares two packages, or a package and edits of it, file by file and line by line.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use hearth_web::pages::{DiffLine, DiffView, FileChange, FileDiff, Hunk, SettingRow, Side};
use similar::{ChangeTag, DiffOp, TextDiff};

use crate::model::{FileEdit, SettingChange};
use crate::package::browse::{self, Content};

/// Largest file that is compared line by line: bounds the time of a page.
const MAX_COMPARED_BYTES: u64 = 1 << 20;
/// Most files that are shown: bounds the page.
const MAX_FILES: usize = 100;
/// Most lines of one file that are shown: bounds the page.
const MAX_LINES: usize = 2_000;
/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;
/// How long one file may be thought about; what comes out after it is right as well, only longer.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Settings for the page.
pub fn settings(changes: Vec<SettingChange>) -> Vec<SettingRow> {
    changes
        .into_iter()
        .map(|change| SettingRow {
            name: change.name,
            before: change.before,
            after: change.after,
        })
        .collect()
}

/// What differs from one package to another, blocking.
pub fn between(before: &Path, after: &Path) -> io::Result<DiffView> {
    let mut view = DiffView::default();
    if before == after {
        return Ok(view);
    }
    let old = browse::walk(before)?.files;
    let new = browse::walk(after)?.files;
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for path in paths {
        let change = match (old.get(path), new.get(path)) {
            (Some(old), Some(new)) => {
                let same = old == new && browse::same((before, path), (after, path))?;
                if same {
                    continue;
                }
                FileChange::Changed
            }
            (None, _) => FileChange::Added,
            (Some(_), None) => FileChange::Removed,
        };
        if view.files.len() == MAX_FILES {
            view.files_left_out += 1;
            continue;
        }
        let read = |root, wanted: bool| match wanted {
            true => browse::read(root, path, MAX_COMPARED_BYTES),
            false => Ok(None),
        };
        let sides = (
            read(before, change != FileChange::Added)?,
            read(after, change != FileChange::Removed)?,
        );
        view.files.push(file(path, None, change, sides));
    }
    Ok(view)
}

/// What edits make of a package, blocking.
pub fn of_edits(base: &Path, edits: &[FileEdit]) -> io::Result<DiffView> {
    let mut view = DiffView::default();
    for edit in edits {
        let before = match &edit.from {
            Some(from) => browse::read(base, from, MAX_COMPARED_BYTES)?,
            None => None,
        };
        let after = match (&edit.to, &edit.text) {
            (None, _) => None,
            (Some(_), Some(text)) => Some(Content::Text(text.clone())),
            (Some(_), None) => before.clone(),
        };
        let (change, path, renamed_from) = match (&edit.from, &edit.to) {
            (Some(from), Some(to)) if from != to => (FileChange::Renamed, to, Some(from.clone())),
            (Some(_), Some(to)) => (FileChange::Changed, to, None),
            (Some(from), None) => (FileChange::Removed, from, None),
            (None, Some(to)) => (FileChange::Added, to, None),
            (None, None) => continue,
        };
        if view.files.len() == MAX_FILES {
            view.files_left_out += 1;
            continue;
        }
        view.files
            .push(file(path, renamed_from, change, (before, after)));
    }
    view.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(view)
}

fn file(
    path: &str,
    renamed_from: Option<String>,
    change: FileChange,
    sides: (Option<Content>, Option<Content>),
) -> FileDiff {
    let mut diff = FileDiff {
        path: path.to_owned(),
        renamed_from,
        change,
        added: 0,
        removed: 0,
        hunks: Vec::new(),
        note: String::new(),
    };
    match sides {
        (Some(Content::Text(before)), Some(Content::Text(after))) => {
            lines(&mut diff, &before, &after);
        }
        (None, Some(Content::Text(after))) => lines(&mut diff, "", &after),
        (Some(Content::Text(before)), None) => lines(&mut diff, &before, ""),
        (before, after) => {
            let size = |side: Option<Content>| match side {
                None => "nothing".to_owned(),
                Some(Content::Text(text)) => hearth_web::format::bytes(text.len() as u64),
                Some(Content::Binary(bytes) | Content::Large(bytes)) => {
                    hearth_web::format::bytes(bytes)
                }
            };
            let is_large = matches!(
                (&before, &after),
                (Some(Content::Large(_)), _) | (_, Some(Content::Large(_)))
            );
            let why = if is_large {
                "Too large to show"
            } else {
                "Not text"
            };
            diff.note = format!("{why}: {} before, {} after.", size(before), size(after));
        }
    }
    diff
}

fn lines(diff: &mut FileDiff, before: &str, after: &str) {
    let compared = TextDiff::configure()
        .timeout(TIMEOUT)
        .diff_lines(before, after);
    let mut shown = 0;
    for group in compared.grouped_ops(CONTEXT) {
        let mut lines = Vec::new();
        for op in &group {
            for change in compared.iter_changes(op) {
                let side = match change.tag() {
                    ChangeTag::Equal => Side::Both,
                    ChangeTag::Delete => Side::Before,
                    ChangeTag::Insert => Side::After,
                };
                match side {
                    Side::Both => {}
                    Side::Before => diff.removed += 1,
                    Side::After => diff.added += 1,
                }
                if shown < MAX_LINES {
                    shown += 1;
                    let index = change.new_index().or(change.old_index()).unwrap_or(0);
                    lines.push(DiffLine {
                        side,
                        number: index as u64 + 1,
                        text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
                    });
                }
            }
        }
        if !lines.is_empty() {
            diff.hunks.push(Hunk {
                place: place(&group),
                lines,
            });
        }
    }
    if diff.added + diff.removed == 0 {
        diff.note = match diff.change {
            FileChange::Added | FileChange::Removed => "The file is empty.",
            FileChange::Renamed => "Same content.",
            // Line ends, or whether it may be executed.
            FileChange::Changed => "Only line endings or the executable bit changed.",
        }
        .to_owned();
    } else if shown == MAX_LINES {
        diff.note = format!("Only the first {MAX_LINES} lines are shown.");
    } else if !before.is_empty() && !after.is_empty() {
        diff.note = match (before.ends_with('\n'), after.ends_with('\n')) {
            (true, false) => "No newline at end of file.".to_owned(),
            (false, true) => "Newline added at end of file.".to_owned(),
            _ => String::new(),
        };
    }
}

/// Where a stretch is, by the lines after the change.
fn place(group: &[DiffOp]) -> String {
    let first = group.first().map_or(0, |op| op.new_range().start);
    let last = group.last().map_or(0, |op| op.new_range().end);
    match last.saturating_sub(first) {
        0 => format!("After line {first}"),
        1 => format!("Line {last}"),
        _ => format!("Lines {} to {last}", first + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn edit(from: Option<&str>, to: Option<&str>, text: Option<&str>) -> FileEdit {
        FileEdit {
            from: from.map(Into::into),
            to: to.map(Into::into),
            text: text.map(Into::into),
        }
    }

    #[test]
    fn edits_are_told_line_by_line() {
        let base = tempfile::tempdir().expect("a directory");
        fs::write(base.path().join("main.py"), "a\nb\nc\n").expect("a file");
        fs::write(base.path().join("old.py"), "x\n").expect("a file");
        fs::write(base.path().join("data.bin"), b"\xff\0").expect("a file");
        let view = of_edits(
            base.path(),
            &[
                edit(Some("main.py"), Some("main.py"), Some("a\nB\nc\nd")),
                edit(Some("old.py"), Some("new.py"), None),
                edit(Some("data.bin"), None, None),
                edit(None, Some("added.py"), Some("1\n")),
            ],
        )
        .expect("a diff");
        let shown: Vec<_> = view
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.change, file.added, file.removed))
            .collect();
        assert_eq!(
            shown,
            [
                ("added.py", FileChange::Added, 1, 0),
                ("data.bin", FileChange::Removed, 0, 0),
                ("main.py", FileChange::Changed, 2, 1),
                ("new.py", FileChange::Renamed, 0, 0),
            ]
        );
        assert!(view.files[1].note.starts_with("Not text: 2 B before"));
        let hunk = &view.files[2].hunks[0];
        let lines: Vec<_> = hunk
            .lines
            .iter()
            .map(|line| (line.side, line.number, line.text.as_str()))
            .collect();
        assert_eq!(
            lines,
            [
                (Side::Both, 1, "a"),
                (Side::Before, 2, "b"),
                (Side::After, 2, "B"),
                (Side::Both, 3, "c"),
                (Side::After, 4, "d"),
            ]
        );
        assert!(view.files[2].note.contains("No newline at end of file"));
        assert_eq!(view.files[3].renamed_from.as_deref(), Some("old.py"));
    }

    #[test]
    fn packages_are_compared_by_content() {
        let (old, new) = (
            tempfile::tempdir().expect("a directory"),
            tempfile::tempdir().expect("a directory"),
        );
        for (root, text) in [(&old, "one\n"), (&new, "two\n")] {
            fs::create_dir(root.path().join("pkg")).expect("a directory");
            fs::write(root.path().join("same.py"), "s\n").expect("a file");
            fs::write(root.path().join("pkg/mod.py"), text).expect("a file");
        }
        fs::write(new.path().join("more.py"), "").expect("a file");
        let view = between(old.path(), new.path()).expect("a diff");
        let paths: Vec<_> = view.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["more.py", "pkg/mod.py"]);
        assert_eq!(view.files[0].note, "The file is empty.");
        assert!(between(old.path(), old.path()).expect("a diff").is_empty());
    }

    #[test]
    fn long_files_are_cut_and_say_so() {
        let base = tempfile::tempdir().expect("a directory");
        let long = "line\n".repeat(MAX_LINES + 5);
        let view = of_edits(base.path(), &[edit(None, Some("a.py"), Some(&long))]).expect("a diff");
        assert_eq!(view.files[0].added, MAX_LINES as u64 + 5);
        assert_eq!(view.files[0].hunks[0].lines.len(), MAX_LINES);
        assert!(view.files[0].note.contains("first 2000 lines"));
    }
}
