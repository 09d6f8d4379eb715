//! `DELETE /api/v1/chains/{name}`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Delete a chain with its versions and history. Its functions stay; running requests finish.
#[utoipa::path(
    delete,
    path = "/api/v1/chains/{name}",
    tag = "chains",
    operation_id = "delete_chain",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the chain")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!(["not_found", "shutting_down"]))),
)]
pub async fn delete(
    _: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    app.catalog.delete(&name, etag::meant(&headers)).await?;
    Ok(StatusCode::NO_CONTENT)
}
