//! Shell commands that do what a page does. The token comes from the shell's environment, so that none is ever shown.

use axum::http::HeaderMap;
use hearth_web::pages::Command;

use crate::model::{FunctionView, Runtime};

use super::view::base_url;

/// How a command proves who it is.
pub const TOKEN: &str = "-H \"Authorization: Bearer $HEARTH_TOKEN\"";

/// Of the code page.
pub fn code(headers: &HeaderMap, function: &FunctionView, version: u32) -> Vec<Command> {
    let api = api(headers, function);
    let file = match function.runtime {
        Runtime::Python3 => "main.py",
        Runtime::Node => "main.mjs",
    };
    vec![
        Command {
            what: "Deploy a file or a zip archive as the new version",
            line: format!("curl -X PUT {api}/code {TOKEN} -F code=@{file}"),
        },
        download(&api, function, version),
    ]
}

/// Of the versions page.
pub fn versions(headers: &HeaderMap, function: &FunctionView) -> Vec<Command> {
    let api = api(headers, function);
    vec![
        Command {
            what: "Let a version answer",
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

/// Of the settings page; scripts put the changed fields in.
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
