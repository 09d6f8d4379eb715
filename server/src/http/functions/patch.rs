//! `PATCH /api/v1/functions/{name}`.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::gate;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::secrets;
use crate::http::spec;
use crate::model::{FunctionView, VersionView};

/// Change settings.
///
/// Creates a version with the same code and the changed settings, and activates it once its template is running. With a gate, a change of
/// handler, variables or memory size is 202: the version is compared with the active one first.
#[utoipa::path(
    patch,
    path = "/api/v1/functions/{name}",
    tag = "functions",
    operation_id = "patch_function",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    request_body(content = spec::PatchFunction, content_type = "application/json"),
    responses(
        (status = 200, description = "The function with its new version", body = FunctionView),
        (status = 202, description = "The version, which is compared before it becomes active", body = VersionView,
            headers(("Location" = String, description = "The experiment"))),
    ),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "function_is_copy", "payload_too_large", "unsupported_media_type",
        "invalid_field", "import_failed", "host_exhausted", "shutting_down", "too_many_requests"
    ]))),
)]
pub async fn patch(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let now = app.engine.get(&name)?;
    let fields = spec::json_fields(request).await?;
    let patch = spec::patch(fields, now.runtime, now.max_concurrency)?;
    if let (Some(most), None) = (patch.max_concurrency, patch.min_instances) {
        spec::still_room(most, now.min_instances)?;
    }
    secrets::may_bind(&asked.caller, &now.secrets, patch.secrets.as_deref())?;
    asked.audit.detail(patch.fields().join(", "));
    let meant = etag::meant(&headers);
    let deployed = app.lab.deploy(&name, patch, None, meant, &asked.caller);
    let deployed = deployed.await?;
    asked.audit.detail(gate::detail(&deployed));
    gate::answer(&app, &headers, deployed)
}
