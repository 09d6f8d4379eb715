//! `GET /api/v1/invocations/{id}`.

use axum::Json;
use axum::extract::State;

use super::App;
use super::auth::{self, Read, Scoped};
use super::path::Path;
use super::problem::Problem;
use crate::model::{InvocationId, InvocationRecord};

/// One invocation: stages, sizes, start rung, error with traceback, log lines.
#[utoipa::path(
    get,
    path = "/api/v1/invocations/{id}",
    tag = "history",
    operation_id = "get_invocation",
    security(("bearer" = ["read"])),
    params(("id" = uuid::Uuid, Path, description = "The `X-Hearth-Invocation-Id` of its answer")),
    responses((status = 200, description = "The invocation", body = InvocationRecord)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn invocation(
    asked: Scoped<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<InvocationRecord>, Problem> {
    let found = match id.parse() {
        Ok(uuid) => app.history.get(InvocationId(uuid)).await?,
        Err(_) => None,
    };
    let found = found.ok_or_else(|| {
        let shown: String = id.chars().take(64).collect();
        Problem::not_found(format!("invocation {shown:?}"))
    })?;
    auth::reach(&asked.caller, &found.function)?;
    Ok(Json(found))
}
