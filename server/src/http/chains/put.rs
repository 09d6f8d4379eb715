//! `PUT /api/v1/chains/{name}`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::chain;

/// Create a chain, or replace all settings of one by a new version.
///
/// The settings that a chain has already change nothing.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{name}",
    tag = "chains",
    operation_id = "put_chain",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the chain")),
    request_body(content = docs::PutChain, content_type = "application/json"),
    responses(
        (status = 200, description = "The chain with its new version", body = chain::View),
        (status = 201, description = "Created", body = chain::View,
            headers(("Location" = String, description = "Where the chain is"))),
    ),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "already_exists", "payload_too_large", "unsupported_media_type",
        "invalid_field", "chain_not_started", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn put(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let settings = spec::replace_chain(&name, spec::json_fields(request).await?)?;
    let meant = etag::meant(&headers);
    let (is_new, view) = app.catalog.replace(settings, meant).await?;
    if is_new {
        asked.audit.action("chain.create");
        let location = format!("/api/v1/chains/{name}");
        let made = etag::changed(StatusCode::CREATED, &view.revision(), &view)?;
        return Ok(([(header::LOCATION, location)], made).into_response());
    }
    asked
        .audit
        .detail(format!("version {}", view.active_version));
    etag::changed(StatusCode::OK, &view.revision(), &view)
}
