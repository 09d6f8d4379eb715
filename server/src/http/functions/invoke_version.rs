//! `POST /api/v1/functions/{name}/versions/{n}/invoke`.

use axum::extract::{Request, State};
use axum::response::Response;

use super::invoke;
use crate::engine::VersionApart;
use crate::http::App;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::InvalidField;

/// Invoke a version, active or not, and wait for its result.
///
/// As an invoke of the function, but in instances of the version's own, apart from the function's other requests: this is for comparing
/// versions. They end after a minute without such a call; `min_instances` and `keep_warm` do not count.
///
/// How fast the same code is depends on where its template's memory came to lie, so that a comparison takes many templates: each
/// `template` has instances of its own. It is booted, never restored, by the first call that names it, and `processor` pins it and its
/// instances to one of the server's processors. The server keeps the twelve templates that were called last.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/versions/{n}/invoke",
    tag = "invocation",
    operation_id = "invoke_version",
    security(("bearer" = ["invoke"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
        ("template" = Option<u32>, Query, minimum = 0, maximum = 4294967295u32, description = "Number of the template, 0 by default"),
        ("processor" = Option<u32>, Query, minimum = 0, description = "Processor of the template: 0 to one less than the node's `cpus`; any by default"),
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context"),
    ),
    request_body(content = Option<serde_json::Value>, content_type = "application/json", description = "The event"),
    responses((status = 200, description = "The handler's result", body = serde_json::Value)),
    extensions(("x-invocation" = json!(true)), ("x-errors" = json!([
        "invalid_json", "invalid_field", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "too_many_requests", "function_error",
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
    // What is wrong with either is said only to those who may invoke. No version is number 0.
    let version = version.parse().unwrap_or(0);
    let asked = asked(&app, version, parts.uri.query());
    invoke::run(&app, &parts, body, &name, Some(asked)).await
}

fn asked(app: &App, version: u32, query: Option<&str>) -> Result<VersionApart, InvalidField> {
    let query = Query::parse(query, &["template", "processor"])?;
    let last = app.engine.cores().saturating_sub(1);
    let processor = match query.text("processor") {
        Some(_) => Some(query.number("processor", 0, last, 0)?),
        None => None,
    };
    Ok(VersionApart {
        version,
        template: query.number("template", 0, u32::MAX, 0)?,
        processor,
    })
}
