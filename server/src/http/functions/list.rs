//! `GET /api/v1/functions`.

use axum::Json;
use axum::extract::{RawQuery, State};

use crate::http::App;
use crate::http::auth::{Read, Scoped};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::{FunctionView, Page};

/// All functions by name, with their live state. A token that is limited to some functions sees these.
#[utoipa::path(
    get,
    path = "/api/v1/functions",
    tag = "functions",
    operation_id = "list_functions",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "All functions, in one page", body = Page<FunctionView>)),
    extensions(("x-errors" = json!(["invalid_field"]))),
)]
pub async fn list(
    asked: Scoped<Read>,
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<FunctionView>>, Problem> {
    Query::parse(query.as_deref(), &[])?;
    let mut items = app.engine.list().await?;
    items.retain(|function| asked.caller.reaches(&function.name));
    Ok(Json(Page { items, next: None }))
}
