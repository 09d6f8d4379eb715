//! `GET /api/v1/functions/{name}`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use super::addressed;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
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

/// One function: configuration, live state, versions.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}",
    tag = "functions",
    operation_id = "get_function",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "The function", body = FunctionDetail)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<FunctionDetail>, Problem> {
    let function = addressed(&app, &headers, app.engine.get(&name).await?);
    let versions = app.engine.versions(&name).await?;
    Ok(Json(FunctionDetail { function, versions }))
}
