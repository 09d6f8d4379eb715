//! `POST /api/v1/functions/{name}/versions`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::to_the_end;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{FunctionPatch, VersionView};

/// Add a version without activating it.
///
/// It has the active version's settings and this code, which is imported once; code that does not import is rejected. The active version
/// goes on serving. `POST …/versions/{n}/invoke` tries the new one, `POST …/versions/{n}/activate` puts it in service.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/versions",
    tag = "functions",
    operation_id = "add_version",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    request_body(content(
        (spec::CodeBody = "application/json"),
        (spec::CodeForm = "multipart/form-data"),
        ("application/zip"),
        ("text/x-python"),
    )),
    responses((status = 201, description = "The version", body = VersionView)),
    extensions(("x-errors" = json!([
        "invalid_json", "invalid_multipart", "bad_request_body", "not_found", "function_is_copy", "payload_too_large", "precondition_failed",
        "unsupported_media_type", "invalid_field", "invalid_package", "import_failed", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn add_version(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let runtime = app.engine.get(&name)?.runtime;
    let fields = spec::code_upload(request, &app.uploads).await?;
    let code = spec::code_only(fields, runtime)?;
    let (engine, meant) = (app.engine.clone(), etag::meant(&headers));
    let add = async move {
        let nothing_else = FunctionPatch::default();
        engine
            .add_version(&name, nothing_else, Some(code), meant)
            .await
    };
    let view = to_the_end(add).await?;
    asked.audit.detail(format!("version {}", view.version));
    Ok((StatusCode::CREATED, axum::Json(view)).into_response())
}
