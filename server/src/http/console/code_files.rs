//! The files of a function's code: a directory as a list, a file as JSON for the editor.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use hearth_web::pages::{FileEntry, FileKind, FileList};
use hearth_web::respond;
use serde::Deserialize;
use serde_json::json;

use crate::engine::VersionCode;
use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Right, Runtime};
use crate::package::browse::{self, Content, Entry};

use super::guard::is_htmx;
use super::session::Viewer;

/// Largest file that can be edited in the browser: larger ones make its editor crawl.
pub const MAX_EDITED_BYTES: u64 = 1 << 20;
/// Most entries of one directory that are listed: bounds the page.
const MAX_LISTED: usize = 1_000;

/// Which directory or file.
#[derive(Debug, Default, Deserialize)]
pub struct FileQuery {
    version: Option<u32>,
    #[serde(default)]
    dir: String,
    #[serde(default)]
    path: String,
}

/// `GET /functions/{name}/code/files?version=…&dir=…`: one directory.
pub async fn list(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FileQuery>,
    headers: axum::http::HeaderMap,
) -> Result<Response, Problem> {
    if !is_htmx(&headers) {
        return Ok(Redirect::to(&format!("/functions/{name}/code")).into_response());
    }
    viewer.needs(Right::Read)?;
    let code = app.engine.code(&name, query.version).await?;
    let missing = Problem::not_found(format_args!("directory {:?}", query.dir));
    let listed = blocking(move || tree(&name, &code, &query.dir, "")).await?;
    Ok(respond::partial(&listed.ok_or(missing)?))
}

/// `GET /functions/{name}/code/file?version=…&path=…`: one file, as JSON.
pub async fn file(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FileQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let code = app.engine.code(&name, query.version).await?;
    let version = code.version;
    let path = query.path.clone();
    let content = blocking(move || browse::read(&code.path(), &path, MAX_EDITED_BYTES))
        .await?
        .ok_or_else(|| Problem::not_found(format_args!("file {:?}", query.path)))?;
    let (kind, text, bytes) = parts(content);
    let body = json!({
        "path": query.path,
        "version": version,
        "kind": kind.name(),
        "size": hearth_web::format::bytes(bytes),
        "text": text,
    });
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response())
}

/// What the editor can do with a file, its text with plain line ends, its size.
pub fn parts(content: Content) -> (FileKind, String, u64) {
    match content {
        Content::Text(text) => {
            let bytes = text.len() as u64;
            (FileKind::Text, text.replace("\r\n", "\n"), bytes)
        }
        Content::Binary(bytes) => (FileKind::Binary, String::new(), bytes),
        Content::Large(bytes) => (FileKind::Large, String::new(), bytes),
    }
}

/// The directory `dir`, with the way to `opened` unfolded; blocking. `None` when there is no such directory.
pub fn tree(
    name: &str,
    code: &VersionCode,
    dir: &str,
    opened: &str,
) -> std::io::Result<Option<FileList>> {
    let Some(mut entries) = browse::directory(&code.path(), dir)? else {
        return Ok(None);
    };
    let left_out = entries.len().saturating_sub(MAX_LISTED);
    entries.truncate(MAX_LISTED);
    let mut list = FileList {
        function: name.to_owned(),
        version: code.version,
        entries: Vec::with_capacity(entries.len()),
        left_out: left_out as u64,
    };
    for Entry {
        name: own_name,
        path,
        file,
    } in entries
    {
        let on_the_way = opened
            .strip_prefix(path.as_str())
            .is_some_and(|rest| rest.starts_with('/'));
        let inside = match file {
            None if on_the_way => tree(name, code, &path, opened)?,
            _ => None,
        };
        list.entries.push(FileEntry {
            name: own_name,
            opened: path == opened,
            path,
            bytes: file.map(|file| file.bytes),
            inside,
        });
    }
    Ok(Some(list))
}

/// Paths that the handler's module may be in, the usual one first.
pub fn module_paths(function: &FunctionView) -> Vec<String> {
    let module = function
        .handler
        .rsplit_once('.')
        .map_or(function.handler.as_str(), |(module, _)| module);
    match function.runtime {
        Runtime::Python3 => {
            let base = module.replace('.', "/");
            vec![format!("{base}.py"), format!("{base}/__init__.py")]
        }
        Runtime::Node => ["js", "mjs", "cjs"]
            .map(|extension| format!("{module}.{extension}"))
            .to_vec(),
        Runtime::Native => vec![function.handler.clone()],
        Runtime::Provided => vec![Runtime::Provided.default_handler().to_owned()],
    }
}

/// Runs what reads the disk where that may take its time.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Problem::internal)?
        .map_err(Problem::internal)
}
