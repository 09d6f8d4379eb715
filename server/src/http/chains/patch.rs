//! `PATCH /api/v1/chains/{name}`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::docs;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::chain;

/// Change some settings of a chain.
///
/// Creates a version with the changed settings, and activates it once its members run. No request fails.
#[utoipa::path(
    patch,
    path = "/api/v1/chains/{name}",
    tag = "chains",
    operation_id = "patch_chain",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the chain")),
    request_body(content = docs::PatchChain, content_type = "application/json"),
    responses((status = 200, description = "The chain with its new version", body = chain::View)),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "invalid_field",
        "chain_not_started", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn patch(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    app.catalog.get(&name)?;
    let patch = spec::patch_chain(spec::json_fields(request).await?)?;
    asked.audit.detail(patch.fields().join(", "));
    let meant = etag::meant(&headers);
    let view = app.catalog.update(&name, patch, meant).await?;
    asked
        .audit
        .detail(format!("version {}", view.active_version));
    etag::changed(StatusCode::OK, &view.revision(), &view)
}
