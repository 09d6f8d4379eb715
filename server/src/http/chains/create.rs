//! `POST /api/v1/chains`.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::etag;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::chain;

/// Create a chain of existing functions. Returns once all members run.
#[utoipa::path(
    post,
    path = "/api/v1/chains",
    tag = "chains",
    operation_id = "create_chain",
    security(("bearer" = ["write"])),
    request_body(content = docs::CreateChain, content_type = "application/json"),
    responses((status = 201, description = "Created", body = chain::View,
        headers(("Location" = String, description = "Where the chain is")))),
    extensions(("x-tagged" = json!("make")), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "already_exists", "payload_too_large", "unsupported_media_type", "invalid_field",
        "chain_not_started", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn create(
    asked: Allowed<Write>,
    State(app): State<App>,
    request: Request,
) -> Result<Response, Problem> {
    let settings = spec::create_chain(spec::json_fields(request).await?)?;
    asked.audit.target(&settings.name);
    let view = app.catalog.create(settings).await?;
    let location = format!("/api/v1/chains/{}", view.name);
    let made = etag::changed(StatusCode::CREATED, &view.revision(), &view)?;
    Ok(([(header::LOCATION, location)], made).into_response())
}
