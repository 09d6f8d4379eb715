//! `POST /api/v1/functions/{name}/versions/{n}/activate`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::addressed;
use super::{id_of, to_the_end, version_number};
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::FunctionView;

/// Activate an existing version (roll back or forward) without failing a request.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/versions/{n}/activate",
    tag = "functions",
    operation_id = "activate_version",
    security(("bearer" = ["write"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
    ),
    responses((status = 200, description = "The function with this version active", body = FunctionView)),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!(["not_found", "invalid_field", "import_failed", "host_exhausted", "shutting_down"]))),
)]
pub async fn activate(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    id_of(&app, &name)?;
    let version = version_number(&name, &version)?;
    asked.audit.detail(format!("version {version}"));
    let (engine, meant) = (app.engine.clone(), etag::meant(&headers));
    let view = to_the_end(async move { engine.activate(&name, version, meant).await }).await?;
    let view = addressed(&app, &headers, view);
    etag::changed(StatusCode::OK, &view.revision(), &view)
}
