//! `/functions/{name}/code`: upload a new version, go back to an earlier one.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{CodePage, CodeUpload, Moment, VersionRow};
use hearth_web::respond;
use jiff::Timestamp;

use crate::http::App;
use crate::http::problem::Problem;
use crate::http::spec::{self, Fields};
use crate::model::{Code, FunctionPatch, FunctionView, InvalidField, Right, Runtime, VersionView};

use super::create;
use super::form::{Form, Submitted};
use super::guard::{go, is_htmx};
use super::outcome::Failure;
use super::session::Viewer;
use super::view;

/// `GET /functions/{name}/code`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let function = app.engine.get(&name).await?;
    let form = CodeUpload::default();
    show(
        &app,
        &viewer,
        &function,
        form,
        Failure::default(),
        StatusCode::OK,
    )
    .await
}

/// `POST /functions/{name}/code`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = app.engine.get(&name).await?;
    let failure = match read(&form, function.runtime) {
        Err(error) => Failure::field(error, CodeUpload::FIELDS),
        Ok(code) => {
            let patch = FunctionPatch::default();
            match app.engine.update(&name, patch, Some(code)).await {
                Ok(_) => return Ok(go(&headers, &format!("/functions/{name}?notice=deployed"))),
                Err(error) => Failure::engine(error, CodeUpload::FIELDS, &viewer.request_id)?,
            }
        }
    };
    if is_htmx(&headers) {
        return Ok(failure.partial(CodeUpload::FIELDS));
    }
    let form = CodeUpload {
        code_source: form.trimmed("code_source"),
        code: form.lines("code"),
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    show(&app, &viewer, &function, form, failure, status).await
}

fn read(form: &Form, runtime: Runtime) -> Result<Code, InvalidField> {
    let fields = match create::code(form) {
        Some(code) => Fields::single("code", code),
        None => Fields::default(),
    };
    spec::code_only(fields, runtime).map_err(|error| create::rephrase_missing(error, form))
}

/// `POST /functions/{name}/versions/{version}/activate`.
pub async fn activate(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    let version: u32 = version
        .parse()
        .map_err(|_| Problem::not_found(format_args!("version {version:?} of \"{name}\"")))?;
    let audit = submitted.viewer.audit();
    audit.detail(format!("version {version}"));
    app.engine.activate(&name, version).await?;
    let page = format!("/functions/{name}?notice=activated");
    Ok(go(&submitted.headers, &page))
}

async fn show(
    app: &App,
    viewer: &Viewer,
    function: &FunctionView,
    form: CodeUpload,
    failure: Failure,
    status: StatusCode,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let page = CodePage {
        chrome: viewer.chrome(),
        head: view::head(app, function).await?,
        handler: function.handler.clone(),
        form,
        versions: app
            .engine
            .versions(&function.name)
            .await?
            .into_iter()
            .map(|version| row(version, now))
            .collect(),
        errors: failure.errors,
        problem: failure.problem,
    };
    Ok(respond::page(status, &page))
}

fn row(version: VersionView, now: Timestamp) -> VersionRow {
    VersionRow {
        version: version.version,
        active: version.active,
        created: Moment {
            at: version.created_at,
            now,
        },
        code_sha256: version.code_sha256,
        code_bytes: version.code_bytes,
        handler: version.handler,
        memory_mb: version.memory_mb,
        timeout_ms: version.timeout_ms,
    }
}
