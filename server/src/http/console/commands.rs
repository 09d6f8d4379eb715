//! Shell commands that do what a page does. They read the token from the environment, so that no page shows one.

use axum::http::HeaderMap;
use hearth_web::pages::{Command, FileList};

use crate::model::FunctionView;

use super::view::base_url;

/// What a version of more than one file is uploaded as.
const ARCHIVE: &str = "package.zip";
/// The names that a single file can be uploaded under.
const SINGLE: [&str; 4] = ["main.py", "main.js", "main.mjs", "main.cjs"];

/// How a command proves who it is.
pub const TOKEN: &str = "-H \"Authorization: Bearer $HEARTH_TOKEN\"";

/// The command of the code page.
pub fn code(
    headers: &HeaderMap,
    function: &FunctionView,
    version: u32,
    files: &FileList,
) -> Vec<Command> {
    let api = api(headers, function);
    let file = uploaded(files);
    vec![
        Command {
            what: match file {
                ARCHIVE => "Deploy a zip archive as a new version; replaces all files",
                _ => "Deploy a file or a zip archive as a new version",
            },
            line: format!("curl -X PUT {api}/code {TOKEN} -F code=@{file}"),
        },
        download(&api, function, version),
    ]
}

/// The file name in the command that replaces a version with these files: uploading a single file removes all others.
fn uploaded(files: &FileList) -> &str {
    match files.entries.as_slice() {
        [only] if files.left_out == 0 && SINGLE.contains(&only.path.as_str()) => &only.path,
        _ => ARCHIVE,
    }
}

/// The command of the versions page.
pub fn versions(headers: &HeaderMap, function: &FunctionView) -> Vec<Command> {
    let api = api(headers, function);
    vec![
        Command {
            what: "Activate a version",
            line: format!(
                "curl -X POST {api}/versions/{}/activate {TOKEN}",
                function.active_version
            ),
        },
        Command {
            what: "List the versions",
            line: format!("curl {api}/versions {TOKEN}"),
        },
        download(&api, function, function.active_version),
    ]
}

/// The command of the settings page; scripts insert the changed fields.
pub fn settings(headers: &HeaderMap, function: &FunctionView) -> Vec<Command> {
    let api = api(headers, function);
    vec![
        Command {
            what: "Change settings",
            line: format!(
                "curl -X PATCH {api} {TOKEN} -H 'Content-Type: application/json' -d '{{\"memory_mb\":{}}}'",
                function.memory_mb
            ),
        },
        Command {
            what: "Show the settings",
            line: format!("curl {api} {TOKEN}"),
        },
    ]
}

fn download(api: &str, function: &FunctionView, version: u32) -> Command {
    Command {
        what: "Download this version as a zip archive",
        line: format!(
            "curl -o {}-v{version}.zip {api}/versions/{version}/code {TOKEN}",
            function.name
        ),
    }
}

fn api(headers: &HeaderMap, function: &FunctionView) -> String {
    format!("{}/api/v1/functions/{}", base_url(headers), function.name)
}

#[cfg(test)]
mod tests {
    use hearth_web::pages::FileEntry;

    use super::*;

    #[test]
    fn a_version_of_several_files_is_not_replaced_by_one() {
        let files = |names: &[&str]| FileList {
            function: "f".into(),
            version: 1,
            entries: names
                .iter()
                .map(|name| FileEntry {
                    name: (*name).to_owned(),
                    path: (*name).to_owned(),
                    bytes: Some(1),
                    inside: None,
                    opened: false,
                })
                .collect(),
            left_out: 0,
        };
        assert_eq!(uploaded(&files(&["main.py"])), "main.py");
        assert_eq!(uploaded(&files(&["main.mjs"])), "main.mjs");
        assert_eq!(uploaded(&files(&["app.py"])), ARCHIVE);
        assert_eq!(uploaded(&files(&["main.py", "pkg"])), ARCHIVE);
        assert_eq!(uploaded(&files(&[])), ARCHIVE);
    }
}
