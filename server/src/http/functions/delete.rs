//! `DELETE /api/v1/functions/{name}`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::to_the_end;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Delete a function with its versions and history, unless a chain has it as a member. Running requests finish first.
#[utoipa::path(
    delete,
    path = "/api/v1/functions/{name}",
    tag = "functions",
    operation_id = "delete_function",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!(["not_found", "function_in_use", "shutting_down"]))),
)]
pub async fn delete(
    _: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let meant = etag::meant(&headers);
    to_the_end(async move { app.catalog.delete_function(&name, meant).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
