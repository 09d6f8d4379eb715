//! Edits of a package that is in its place, looking into it, and making an archive of it again.

use super::*;
use crate::model::FileEdit;
use crate::package::browse::{self, Content};

fn edit(from: Option<&str>, to: Option<&str>, text: Option<&str>) -> FileEdit {
    FileEdit {
        from: from.map(Into::into),
        to: to.map(Into::into),
        text: text.map(Into::into),
    }
}

/// A package with an executable, an empty directory and a file that is no text.
fn base() -> Place {
    let place = Place::new();
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in [
        ("main.py", 0o644, &b"import pkg\n"[..]),
        ("pkg/__init__.py", 0o644, b""),
        ("bin/tool", 0o755, b"#!/bin/sh\n"),
        ("data.bin", 0o644, b"\xff\0"),
    ] {
        zip.start_file(name, stored().unix_permissions(mode))
            .unwrap();
        zip.write_all(content).unwrap();
    }
    zip.add_directory("empty", stored()).unwrap();
    let zip = zip.finish().unwrap().into_inner();
    place.unpack(Code::Zip(zip.into())).unwrap();
    place
}

fn apply(base: &Place, edits: Vec<FileEdit>) -> Result<(Place, Unpacked), PackageError> {
    let place = Place::new();
    let code = Code::Edits { base: 1, edits };
    let outcome = unpack(&code, Some(&base.dest()), &python("main"), &place.dest());
    if outcome.is_err() {
        assert_eq!(fs::read_dir(place.dest()).unwrap().count(), 0);
    }
    outcome.map(|unpacked| (place, unpacked))
}

fn files(place: &Place) -> Vec<String> {
    browse::walk(&place.dest())
        .unwrap()
        .files
        .into_keys()
        .collect()
}

#[test]
fn files_are_written_moved_removed_and_kept() {
    let base = base();
    let (edited, _) = apply(
        &base,
        vec![
            edit(Some("main.py"), Some("main.py"), Some("import other\n")),
            edit(Some("pkg/__init__.py"), Some("other/__init__.py"), None),
            edit(Some("data.bin"), None, None),
            edit(None, Some("deep/er/new.py"), Some("")),
        ],
    )
    .unwrap();
    assert_eq!(
        files(&edited),
        ["bin/tool", "deep/er/new.py", "main.py", "other/__init__.py"]
    );
    let listing = browse::walk(&edited.dest()).unwrap();
    assert!(listing.files["bin/tool"].executable);
    // A directory goes with its last file; one that was empty stays.
    assert_eq!(listing.empty_directories, ["empty"]);
    assert_eq!(
        browse::read(&edited.dest(), "main.py", 100).unwrap(),
        Some(Content::Text("import other\n".into()))
    );
    // The base is as it was.
    assert_eq!(files(&base).len(), 4);
}

#[test]
fn files_may_change_places() {
    let base = base();
    let (edited, _) = apply(
        &base,
        vec![
            edit(Some("main.py"), Some("bin/tool"), None),
            edit(Some("bin/tool"), Some("main.py"), None),
        ],
    )
    .unwrap();
    let listing = browse::walk(&edited.dest()).unwrap();
    assert!(listing.files["main.py"].executable && !listing.files["bin/tool"].executable);
}

#[test]
fn what_cannot_be_done_is_refused_whole() {
    let base = base();
    for (edits, code) in [
        (vec![edit(Some("nope"), None, None)], "bad_edit"),
        (vec![edit(None, Some("main.py"), Some(""))], "bad_edit"),
        (vec![edit(None, Some("main.py/x"), Some(""))], "bad_edit"),
        (vec![edit(None, Some("pkg"), Some(""))], "bad_edit"),
        (vec![edit(None, Some("a/"), Some(""))], "bad_edit"),
        (vec![edit(None, Some("../a"), Some(""))], "bad_edit"),
        (vec![edit(None, Some("a"), None)], "bad_edit"),
        (vec![edit(None, None, Some("a"))], "bad_edit"),
        (
            vec![
                edit(Some("main.py"), Some("main.py"), None),
                edit(Some("main.py"), None, None),
            ],
            "bad_edit",
        ),
        (
            vec![
                edit(None, Some("a"), Some("")),
                edit(None, Some("./a"), Some("")),
            ],
            "bad_edit",
        ),
        (vec![edit(Some("main.py"), None, None)], "missing_module"),
        (
            (0..=MAX_EDITS)
                .map(|number| edit(None, Some(&format!("f{number}")), Some("")))
                .collect(),
            "bad_edit",
        ),
    ] {
        let error = apply(&base, edits).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn an_archive_of_a_package_is_the_same_package() {
    let base = base();
    let mut zip = Cursor::new(Vec::new());
    pack(&base.dest(), &mut zip).unwrap();
    let again = Place::new();
    let unpacked = again.unpack(Code::Zip(zip.into_inner().into())).unwrap();
    let (_, edited) = apply(&base, vec![edit(None, Some("a"), Some(""))]).unwrap();
    let (_, back) = {
        let (place, _) = apply(&base, vec![edit(None, Some("a"), Some(""))]).unwrap();
        apply(&place, vec![edit(Some("a"), None, None)]).unwrap()
    };
    assert_eq!(unpacked.sha256, back.sha256);
    assert_ne!(unpacked.sha256, edited.sha256);
}

#[test]
fn only_what_is_in_the_package_can_be_read() {
    let base = base();
    fs::write(base.outer.path().join("secret"), "s").unwrap();
    for path in [
        "../secret",
        "/etc/passwd",
        "pkg/../../secret",
        "pkg",
        "nope",
        "",
        "main.py/x",
    ] {
        assert_eq!(
            browse::read(&base.dest(), path, 100).unwrap(),
            None,
            "{path}"
        );
    }
    assert_eq!(browse::directory(&base.dest(), "..").unwrap(), None);
    assert_eq!(browse::directory(&base.dest(), "main.py").unwrap(), None);
    let names: Vec<String> = browse::directory(&base.dest(), "")
        .unwrap()
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["bin", "empty", "pkg", "data.bin", "main.py"]);
    assert_eq!(
        browse::read(&base.dest(), "data.bin", 100).unwrap(),
        Some(Content::Binary(2))
    );
    assert_eq!(
        browse::read(&base.dest(), "main.py", 3).unwrap(),
        Some(Content::Large(11))
    );
    fs::remove_file(base.outer.path().join("secret")).unwrap();
}
