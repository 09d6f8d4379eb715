//! `/functions/{name}/code`: shows the files of the active version and deploys a new one from edits or an upload, after
//! a review.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{
    CODE_FIELDS, CodePage, CodeReviewPage, CodeReviewPartial, DeployProblem, FileKind, OpenFile,
};
use hearth_web::respond;
use serde::Deserialize;

use crate::engine::{EngineError, VersionCode};
use crate::http::App;
use crate::http::problem::Problem;
use crate::http::spec::{self, Fields};
use crate::model::{
    Code, FileEdit, FunctionPatch, FunctionView, InvalidField, Meant, Revision, Right,
};
use crate::package::browse;

use super::code_files::{self, MAX_EDITED_BYTES, blocking};
use super::form::{self, Form, Submitted};
use super::guard::{go, is_htmx};
use super::outcome::Failure;
use super::session::Viewer;
use super::{code_edits, commands, create, diff, view};

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

/// `POST /functions/{name}/code`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::CodeFields>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = app.engine.get(&name)?;
    let read = match form.text("code_source") {
        "file" => upload(&form, &function).map_err(|error| Failure::field(error, CODE_FIELDS)),
        _ => match edits(&app, &function, &form).await? {
            Ok((_, base, edits)) if !edits.is_empty() => Ok(Code::Edits { base, edits }),
            Ok(_) => Err(unchanged()),
            Err(failure) => Err(failure),
        },
    };
    let failure = match read {
        Err(failure) => failure,
        Ok(code) => {
            let patch = FunctionPatch::default();
            let meant = match form.trimmed("base").parse() {
                Ok(base) => Meant::only(Revision::of_function(function.id, base)),
                Err(_) => Meant::Any,
            };
            match app.engine.update(&name, patch, Some(code), meant).await {
                Ok(deployed) => {
                    let version = deployed.active_version;
                    viewer.audit().detail(format!("version {version}"));
                    return Ok(go(&headers, &format!("/functions/{name}?notice=deployed")));
                }
                Err(EngineError::Invalid(error)) if error.field == "base" => stale(&function),
                Err(EngineError::Changed(_)) => stale(&app.engine.get(&name)?),
                Err(error) => Failure::engine(error, CODE_FIELDS, &viewer.request_id)?,
            }
        }
    };
    refuse(&app, &viewer, &headers, &function, &form, failure).await
}

/// `POST /functions/{name}/code/review`: what the edits change. Nothing is deployed.
pub async fn review(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::CodeFields>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = app.engine.get(&name)?;
    let (code, version, edits) = match edits(&app, &function, &form).await? {
        Ok((_, _, edits)) if edits.is_empty() => {
            return refuse(&app, &viewer, &headers, &function, &form, unchanged()).await;
        }
        Ok(read) => read,
        Err(failure) => {
            return refuse(&app, &viewer, &headers, &function, &form, failure).await;
        }
    };
    let sent = serde_json::json!(
        edits
            .iter()
            .map(|edit| serde_json::json!({"from": edit.from, "to": edit.to, "text": edit.text}))
            .collect::<Vec<_>>()
    );
    let diff = blocking(move || diff::of_edits(&code.path(), &edits)).await?;
    if is_htmx(&headers) {
        return Ok(respond::partial(&CodeReviewPartial { diff, version }));
    }
    let page = CodeReviewPage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        diff,
        version,
        edits: sent.to_string(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// Edits that can be carried out, and the code they are meant for.
type Read = (VersionCode, u32, Vec<FileEdit>);

async fn edits(
    app: &App,
    function: &FunctionView,
    form: &Form,
) -> Result<Result<Read, Failure>, Problem> {
    let code = app.engine.code(&function.name, None).await?;
    let base = form.trimmed("base");
    if !base.is_empty() && base != code.version.to_string() {
        return Ok(Err(stale(function)));
    }
    let edits = match code_edits::read(form) {
        Ok(edits) => edits,
        Err(error) => return Ok(Err(Failure::field(error, CODE_FIELDS))),
    };
    let root = code.path();
    let edits = blocking(move || code_edits::settle(&root, edits)).await?;
    let version = code.version;
    Ok(Ok((code, version, edits)))
}

fn upload(form: &Form, function: &FunctionView) -> Result<Code, InvalidField> {
    let fields = match create::code(form) {
        Some(code) => Fields::single("code", code),
        None => Fields::default(),
    };
    spec::code_only(fields, function.runtime).map_err(|error| create::rephrase_missing(error, form))
}

fn unchanged() -> Failure {
    problem("There are no changes to deploy.", "")
}

fn stale(function: &FunctionView) -> Failure {
    problem(
        &format!(
            "Version {} was deployed in the meantime. Nothing was changed.",
            function.active_version
        ),
        "Copy your changes, reload this page and apply them to the new version.",
    )
}

fn problem(title: &str, detail: &str) -> Failure {
    Failure {
        problem: Some(DeployProblem {
            title: title.to_owned(),
            detail: detail.to_owned(),
            ..DeployProblem::default()
        }),
        ..Failure::default()
    }
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

async fn refuse(
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
