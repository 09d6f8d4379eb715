//! `GET /api/v1/chains`.

use axum::Json;
use axum::extract::{RawQuery, State};

use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::{Page, chain};

/// List chains by name.
#[utoipa::path(
    get,
    path = "/api/v1/chains",
    tag = "chains",
    operation_id = "list_chains",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "All chains, in one page", body = Page<chain::View>)),
    extensions(("x-errors" = json!(["invalid_field"]))),
)]
pub async fn list(
    _: Allowed<Read>,
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<chain::View>>, Problem> {
    Query::parse(query.as_deref(), &[])?;
    let items = app.catalog.list();
    Ok(Json(Page { items, next: None }))
}
