//! `GET /api/v1/functions/{name}/ingress`.

use axum::Json;
use axum::extract::State;

use crate::engine::IngressView;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;

/// Get a function's ports, and what was received and sent there.
///
/// Packets are counted at the interfaces of `HEARTH_XDP_INTERFACE` since the function has ports or the server started; without
/// such interfaces `received` and `sent` are null.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/ingress",
    tag = "functions",
    operation_id = "function_ingress",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "Ports and traffic", body = IngressView)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn ingress(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<IngressView>, Problem> {
    Ok(Json(app.engine.function_ingress(&name)?))
}
