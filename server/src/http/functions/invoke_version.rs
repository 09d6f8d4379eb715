//! `POST /api/v1/functions/{name}/versions/{n}/invoke`.

use axum::extract::{Request, State};
use axum::response::Response;

use super::invoke;
use crate::http::App;
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Invoke a version, active or not, and wait for its result.
///
/// As an invoke of the function, but in instances of the version's own, apart from the function's other requests: this is for comparing
/// versions. They end after a minute without such a call; `min_instances` and `keep_warm` do not count.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/versions/{n}/invoke",
    tag = "invocation",
    operation_id = "invoke_version",
    security(("bearer" = ["invoke"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context"),
    ),
    request_body(content = Option<serde_json::Value>, content_type = "application/json", description = "The event"),
    responses((status = 200, description = "The handler's result", body = serde_json::Value)),
    extensions(("x-invocation" = json!(true)), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "too_many_requests", "function_error",
        "function_crashed", "function_out_of_memory", "result_too_large", "function_unavailable", "host_exhausted", "shutting_down",
        "function_timeout"
    ]))),
)]
pub async fn invoke_version(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    // None is number 0; that there is no such version is said only to those who may invoke.
    let version = version.parse().unwrap_or(0);
    invoke::run(&app, &parts, body, &name, Some(version)).await
}
