//! `POST /api/v1/chains/{name}/versions/{n}/activate`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::chain;

/// Activate an existing version of a chain (roll back or forward) without failing a request.
#[utoipa::path(
    post,
    path = "/api/v1/chains/{name}/versions/{n}/activate",
    tag = "chains",
    operation_id = "activate_chain_version",
    security(("bearer" = ["write"])),
    params(
        ("name" = String, Path, description = "Name of the chain"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
    ),
    responses((status = 200, description = "The chain with this version active", body = chain::View)),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!(["not_found", "invalid_field", "chain_not_started", "host_exhausted", "shutting_down"]))),
)]
pub async fn activate(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.catalog.get(&name)?;
    let Ok(version) = version.parse() else {
        let shown: String = version.chars().take(20).collect();
        return Err(Problem::not_found(format!(
            "version {shown:?} of chain {name:?}"
        )));
    };
    asked.audit.detail(format!("version {version}"));
    let meant = etag::meant(&headers);
    let view = app.catalog.activate(&name, version, meant).await?;
    etag::changed(StatusCode::OK, &view.revision(), &view)
}
