//! `GET /api/v1/functions/{name}/network`.

use axum::Json;
use axum::extract::State;

use crate::engine::NetworkView;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Get a function's outbound traffic and refused destinations.
///
/// Counted since the server started. Allow a refused destination with `PATCH /api/v1/functions/{name}` and
/// `{"network": {"allow": […]}}`. After a dry run, `suggested_allow` is the list to put there.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/network",
    tag = "functions",
    operation_id = "function_network",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "Policy, traffic and refusals", body = NetworkView)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn network(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<NetworkView>, Problem> {
    Ok(Json(app.engine.network(&name).await?))
}
