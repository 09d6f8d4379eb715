//! `GET /api/v1/functions/{name}/latency`.

use axum::Json;
use axum::extract::{RawQuery, State};

use super::id_of;
use super::stats::{DEFAULT_WINDOW, window};
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::Latency;

/// Get latency statistics, distributions and heat map of a window.
///
/// Returns everything in `stats` and what the console's Latency tab draws.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/latency",
    tag = "history",
    operation_id = "function_latency",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("window" = Option<String>, Query, pattern = "^[0-9]+[smhd]$", description = "60s to 7d, 5m by default"),
    ),
    responses((status = 200, description = "The distributions", body = Latency)),
    extensions(("x-errors" = json!(["not_found", "invalid_field"]))),
)]
pub async fn latency(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Latency>, Problem> {
    let id = id_of(&app, &name)?;
    let query = Query::parse(query.as_deref(), &["window"])?;
    let window = window(query.text("window").unwrap_or(DEFAULT_WINDOW))?;
    Ok(Json(app.history.latency(id, window).read().await?))
}
