//! `POST /api/v1/functions/{name}/copies`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::addressed;
use super::to_the_end;
use crate::http::App;
use crate::http::auth::{self, Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::FunctionView;

/// Copy a version for a while, to measure or try it where nobody else is served.
///
/// The copy is a function with the version's code, variables and secrets and its own instances, history and name. It has no
/// ports, is called with a token only, and reaches over the network what its own `network` allows: nothing without one. Secrets
/// that are put into requests to hosts are left out and named in `copy_of`. It cannot be changed, is no member of a chain, and is
/// removed after `lifetime_s` at the latest.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/copies",
    tag = "functions",
    operation_id = "copy_function",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    request_body(content = spec::CopyFunction, content_type = "application/json"),
    responses((status = 201, description = "The copy", body = FunctionView,
        headers(("Location" = String, description = "URL of the copy")))),
    extensions(("x-tagged" = json!("make")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "already_exists", "function_is_copy", "payload_too_large",
        "unsupported_media_type", "invalid_field", "import_failed", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn copy(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    sent: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let runtime = app.engine.get(&name)?.runtime;
    let wanted = spec::copy(spec::json_fields(request).await?, runtime)?;
    // With what changing the function's network takes, and creating a function of this name: whoever may copy it could deploy
    // the same code with the same network.
    auth::reach(&asked.caller, &wanted.name)?;
    let location = format!("/api/v1/functions/{}", wanted.name);
    asked.audit.detail(format!("as {}", wanted.name));
    let changed = wanted.settings.fields();
    if !changed.is_empty() {
        asked.audit.detail(format!("with {}", changed.join(", ")));
    }
    let engine = app.engine.clone();
    let view = to_the_end(async move { engine.copy(&name, wanted).await }).await?;
    if let Some(copy_of) = &view.copy_of {
        asked.audit.detail(format!("version {}", copy_of.version));
    }
    if view.network.is_open() {
        asked.audit.detail(format!("network {}", view.network));
    }
    let view = addressed(&app, &sent, view);
    let made = etag::changed(StatusCode::CREATED, &view.revision(), &view)?;
    Ok(([(header::LOCATION, location)], made).into_response())
}
