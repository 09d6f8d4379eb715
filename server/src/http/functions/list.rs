//! `GET /api/v1/functions`.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;

use crate::http::App;
use crate::http::auth::{Read, Scoped};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::{FunctionView, Page};

/// List functions by name, with their live state.
///
/// A scoped token sees the functions in its scope.
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
    headers: HeaderMap,
) -> Result<Json<Page<FunctionView>>, Problem> {
    Query::parse(query.as_deref(), &[])?;
    let mut items = app.engine.list();
    items.retain(|function| asked.caller.reaches(&function.name));
    for item in &mut items {
        item.url = app.edge.address_of(&item.name, &headers);
    }
    Ok(Json(Page { items, next: None }))
}
