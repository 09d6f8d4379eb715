//! `/functions/{name}/code` takes edits or an upload: what they change is reviewed, and a new version is deployed.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{CODE_FIELDS, CodeReviewPage, CodeReviewPartial, DeployProblem};
use hearth_web::respond;

use crate::engine::{EngineError, VersionCode};
use crate::http::App;
use crate::http::functions::gate;
use crate::http::problem::Problem;
use crate::http::spec::{self, Fields};
use crate::lab::Deployed;
use crate::model::{
    Code, FileEdit, FunctionPatch, FunctionView, InvalidField, Meant, Revision, Right,
};

use super::code::refuse;
use super::code_files::blocking;
use super::form::{self, Form, Submitted};
use super::guard::{go, is_htmx};
use super::outcome::Failure;
use super::{code_edits, create, diff, view};

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
            let by = viewer.caller();
            let deployed = app.lab.deploy(&name, patch, Some(code), meant, by).await;
            if let Ok(deployed) = &deployed {
                viewer.audit().detail(gate::detail(deployed));
            }
            let done = match deployed {
                Ok(Deployed::Active { .. }) => Ok(format!("/functions/{name}?notice=deployed")),
                Ok(Deployed::Gated(_)) => Ok(format!("/functions/{name}/versions?notice=gated")),
                Err(error) => Err(gate::engine_error(error)?),
            };
            match done {
                Ok(next) => return Ok(go(&headers, &next)),
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
