//! `GET /api/v1/chains/{name}/versions`.

use axum::Json;
use axum::extract::State;

use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::Page;
use crate::model::chain::VersionView;

/// List a chain's versions, newest first. Versions are immutable.
#[utoipa::path(
    get,
    path = "/api/v1/chains/{name}/versions",
    tag = "chains",
    operation_id = "list_chain_versions",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the chain")),
    responses((status = 200, description = "All versions, in one page", body = Page<VersionView>)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn versions(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<Page<VersionView>>, Problem> {
    let items = app.catalog.versions(&name).await?;
    Ok(Json(Page { items, next: None }))
}
