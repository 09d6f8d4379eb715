//! `GET /api/v1/chains/{name}/ingress`.

use axum::Json;
use axum::extract::State;

use crate::catalog::ChainIngressView;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Get a chain's ports, and what was received and sent there.
///
/// Packets are counted at the interfaces of `HEARTH_XDP_INTERFACE` since the chain has ports or the server started; without
/// such interfaces `received` and `sent` are null.
#[utoipa::path(
    get,
    path = "/api/v1/chains/{name}/ingress",
    tag = "chains",
    operation_id = "chain_ingress",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the chain")),
    responses((status = 200, description = "Ports and traffic", body = ChainIngressView)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn ingress(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<ChainIngressView>, Problem> {
    Ok(Json(app.catalog.ingress(&name)?))
}
