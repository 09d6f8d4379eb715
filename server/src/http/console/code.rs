//! `/functions/{name}/code`: shows the files of the active version, and what was typed when a deploy of it is refused.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{CODE_FIELDS, CodePage, FileKind, OpenFile};
use hearth_web::respond;
use serde::Deserialize;

use crate::engine::VersionCode;
use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Right};
use crate::package::browse;

use super::code_files::{self, MAX_EDITED_BYTES, blocking};
use super::form::Form;
use super::guard::is_htmx;
use super::outcome::Failure;
use super::session::Viewer;
use super::{commands, view};

/// Which file the editor shows.
#[derive(Debug, Default, Deserialize)]
pub struct Shown {
    /// A file of the active version.
    #[serde(default)]
    path: String,
    /// A directory that is unfolded.
    #[serde(default)]
    dir: String,
    /// Not empty: a new file.
    #[serde(default)]
    new: String,
}

/// `GET /functions/{name}/code`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(shown): Query<Shown>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let code = app.engine.code(&name, None).await?;
    let file = match (shown.new.as_str(), shown.path.as_str()) {
        ("", "") => first(&code, &function).await?,
        ("", path) => open(&code, vec![path.to_owned()]).await?,
        _ => None,
    };
    if file.is_none() && !shown.path.is_empty() {
        return Err(Problem::not_found(format_args!("file {:?}", shown.path)));
    }
    let asked = Asked {
        dir: shown.dir,
        file: file.unwrap_or_else(new_file),
        upload: false,
    };
    show(&app, &viewer, &headers, &function, code, asked, None).await
}

/// The handler's module, or where that is no file of its own the first file there is.
async fn first(code: &VersionCode, function: &FunctionView) -> Result<Option<OpenFile>, Problem> {
    if let Some(module) = open(code, code_files::module_paths(function)).await? {
        return Ok(Some(module));
    }
    let root = code.path();
    let files = blocking(move || Ok(browse::walk(&root)?.files)).await?;
    open(code, files.into_keys().take(1).collect()).await
}

/// The first of these files that is there.
async fn open(code: &VersionCode, wanted: Vec<String>) -> Result<Option<OpenFile>, Problem> {
    let root = code.path();
    blocking(move || {
        for path in wanted {
            if let Some(content) = browse::read(&root, &path, MAX_EDITED_BYTES)? {
                let (kind, text, bytes) = code_files::parts(content);
                return Ok(Some(OpenFile {
                    opened: path.clone(),
                    path,
                    kind,
                    text,
                    bytes,
                }));
            }
        }
        Ok(None)
    })
    .await
}

fn new_file() -> OpenFile {
    OpenFile {
        opened: String::new(),
        path: String::new(),
        kind: FileKind::Text,
        text: String::new(),
        bytes: 0,
    }
}

/// What the page is to show.
struct Asked {
    dir: String,
    file: OpenFile,
    upload: bool,
}

/// The page again, as it was typed, with what is wrong.
pub(super) async fn refuse(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    function: &FunctionView,
    form: &Form,
    failure: Failure,
) -> Result<Response, Problem> {
    if is_htmx(headers) {
        return Ok(failure.partial(CODE_FIELDS));
    }
    let code = app.engine.code(&function.name, None).await?;
    let opened = form.text("opened").to_owned();
    let mut file = match opened.as_str() {
        "" => new_file(),
        _ => open(&code, vec![opened]).await?.unwrap_or_else(new_file),
    };
    file.path = form.trimmed("path");
    if file.kind == FileKind::Text {
        file.text = form.lines("code");
    }
    let asked = Asked {
        dir: String::new(),
        file,
        upload: form.text("code_source") == "file",
    };
    show(app, viewer, headers, function, code, asked, Some(failure)).await
}

async fn show(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    function: &FunctionView,
    code: VersionCode,
    asked: Asked,
    failure: Option<Failure>,
) -> Result<Response, Problem> {
    let status = match failure {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let failure = failure.unwrap_or_default();
    let version = code.version;
    let Asked { dir, file, upload } = asked;
    let name = function.name.clone();
    let opened = match dir.as_str() {
        "" => file.opened.clone(),
        // Any name in it unfolds it.
        dir => format!("{dir}/"),
    };
    let files = blocking(move || code_files::tree(&name, &code, "", &opened))
        .await?
        .ok_or_else(|| Problem::internal("a package without a root"))?;
    let page = CodePage {
        chrome: viewer.chrome(),
        head: view::head(app, function).await?,
        handler: function.handler.clone(),
        version,
        commands: commands::code(headers, function, version, &files),
        files,
        file,
        upload,
        errors: failure.errors,
        problem: failure.problem,
    };
    Ok(respond::page(status, &page))
}
