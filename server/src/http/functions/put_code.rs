//! `PUT /api/v1/functions/{name}/code`.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::gate;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{FunctionPatch, FunctionView, VersionView};

/// Upload new code.
///
/// Creates a version with the same settings and activates it once its template is running. Until then, or if the new
/// code is rejected, the current version keeps serving. With a gate it is 202: the version is stored, compared with the active one, and
/// activated if it is not slower. Accepts JSON, a form with a file `code`, or the code itself as
/// the body.
#[utoipa::path(
    put,
    path = "/api/v1/functions/{name}/code",
    tag = "functions",
    operation_id = "put_code",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    request_body(content(
        (spec::CodeBody = "application/json"),
        (spec::CodeForm = "multipart/form-data"),
        ("application/zip"),
        ("text/x-python"),
    )),
    responses(
        (status = 200, description = "The function with its new version", body = FunctionView),
        (status = 202, description = "The version, which is compared before it becomes active", body = VersionView,
            headers(("Location" = String, description = "The experiment"))),
    ),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!([
        "invalid_json", "invalid_multipart", "bad_request_body", "not_found", "function_is_copy", "payload_too_large",
        "unsupported_media_type", "invalid_field", "invalid_package", "import_failed", "host_exhausted", "shutting_down", "too_many_requests"
    ]))),
)]
pub async fn put_code(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let runtime = app.engine.get(&name)?.runtime;
    let fields = spec::code_upload(request, &app.uploads).await?;
    let code = spec::code_only(fields, runtime)?;
    let nothing_else = FunctionPatch::default();
    let (meant, by) = (etag::meant(&headers), &asked.caller);
    let deployed = app.lab.deploy(&name, nothing_else, Some(code), meant, by);
    let deployed = deployed.await?;
    asked.audit.detail(gate::detail(&deployed));
    gate::answer(&app, &headers, deployed)
}
