//! `GET /api/v1/functions/{name}`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::addressed;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::{FunctionView, VersionView};

/// A function with its versions.
#[derive(Debug, Serialize, ToSchema)]
pub struct FunctionDetail {
    /// The function.
    #[serde(flatten)]
    pub function: FunctionView,
    /// Its versions, newest first.
    pub versions: Vec<VersionView>,
}

/// Get a function: configuration, live state and versions.
///
/// The `ETag` changes with anything in the response. A conditional change (`If-Match`) is rejected only if the
/// function's configuration or active version has changed since.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}",
    tag = "functions",
    operation_id = "get_function",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "The function", body = FunctionDetail)),
    extensions(("x-tagged" = json!("read")), ("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let function = addressed(&app, &headers, app.engine.get(&name)?);
    let versions = app.engine.versions(&name).await?;
    let revision = function.revision();
    etag::answer(&headers, &revision, &FunctionDetail { function, versions })
}
