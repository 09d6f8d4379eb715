//! `GET /api/v1/chains/{name}`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::chain::{VersionView, View};

/// A chain with its versions.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChainDetail {
    /// The chain.
    #[serde(flatten)]
    pub chain: View,
    /// Its versions, newest first.
    pub versions: Vec<VersionView>,
}

/// Get a chain: settings and versions.
///
/// The `ETag` changes with anything in the response. A conditional change (`If-Match`) is rejected only if the chain's active
/// version has changed since.
#[utoipa::path(
    get,
    path = "/api/v1/chains/{name}",
    tag = "chains",
    operation_id = "get_chain",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the chain")),
    responses((status = 200, description = "The chain", body = ChainDetail)),
    extensions(("x-tagged" = json!("read")), ("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let chain = app.catalog.get(&name)?;
    let versions = app.catalog.versions(&name).await?;
    let revision = chain.revision();
    etag::answer(&headers, &revision, &ChainDetail { chain, versions })
}
