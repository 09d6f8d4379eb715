//! The same of the pages about code.

use super::*;

pub(super) fn commands() -> Vec<Command> {
    vec![Command {
        what: "Do it",
        line: HOSTILE.into(),
    }]
}

pub(super) fn file_entry(path: &str, bytes: Option<u64>, inside: Option<FileList>) -> FileEntry {
    FileEntry {
        name: path.rsplit('/').next().unwrap_or(path).into(),
        path: path.into(),
        opened: path == "pkg/mod.py",
        bytes,
        inside,
    }
}

pub(super) fn files(entries: Vec<FileEntry>) -> FileList {
    FileList {
        function: "hello".into(),
        version: 2,
        entries,
        left_out: 0,
    }
}

pub(super) fn code_page() -> CodePage {
    let inside = files(vec![file_entry("pkg/mod.py", Some(12), None)]);
    CodePage {
        chrome: chrome(),
        head: head(),
        handler: HOSTILE.into(),
        version: 2,
        files: files(vec![
            file_entry("lib", None, None),
            file_entry("pkg", None, Some(inside)),
            file_entry(HOSTILE, Some(2048), None),
        ]),
        file: OpenFile {
            opened: "pkg/mod.py".into(),
            path: HOSTILE.into(),
            kind: FileKind::Text,
            text: format!("\n{HOSTILE}"),
            bytes: 12,
        },
        upload: false,
        commands: commands(),
        errors: FieldErrors::default(),
        problem: Some(DeployProblem {
            title: "No".into(),
            error: Some(error()),
            place: Some(CodePlace {
                path: HOSTILE.into(),
                line: 7,
            }),
            ..DeployProblem::default()
        }),
    }
}

pub(super) fn diff() -> DiffView {
    DiffView {
        files: vec![FileDiff {
            path: HOSTILE.into(),
            renamed_from: Some("old.py".into()),
            change: FileChange::Renamed,
            added: 1_200,
            removed: 1,
            hunks: vec![Hunk {
                place: "Lines 1 to 2".into(),
                lines: vec![
                    DiffLine {
                        side: Side::Before,
                        number: 1,
                        text: HOSTILE.into(),
                    },
                    DiffLine {
                        side: Side::After,
                        number: 1,
                        text: "new".into(),
                    },
                ],
            }],
            note: String::new(),
        }],
        files_left_out: 2,
        settings: vec![SettingRow {
            name: "env.SECRET".into(),
            before: "set".into(),
            after: "set to another value".into(),
        }],
    }
}

pub(super) fn versions_page() -> VersionsPage {
    let version = |version, before| VersionRow {
        version,
        active: version == 3,
        created: moment(),
        author: Some(HOSTILE.into()),
        code_sha256: "9f86d081884c7d65".into(),
        code_bytes: 2048,
        before,
        code: version != 2,
        starts: StartRow {
            by: "restore".into(),
            reason: Some(HOSTILE.into()),
        },
        settings: match version {
            2 => diff().settings,
            _ => Vec::new(),
        },
        notes: vec![HOSTILE.into()],
        gate: (version != 1).then(|| GateRow {
            badge: Badge::new("refused by the gate", Tone::Bad),
            against: 1,
            experiment: 7,
            reason: HOSTILE.into(),
        }),
    };
    VersionsPage {
        chrome: chrome(),
        head: head(),
        versions: vec![version(3, Some(2)), version(2, Some(1)), version(1, None)],
        commands: commands(),
    }
}
