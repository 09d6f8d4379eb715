//! `GET /healthz` and `GET /readyz`: for monitoring; no token needed.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::{Problem, ProblemCode};

/// The server is healthy.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`.
    #[schema(example = "ok")]
    pub status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

/// Check that the process is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "node",
    operation_id = "healthz",
    responses((status = 200, description = "Alive", body = Health)),
)]
pub async fn healthz() -> Json<Health> {
    OK
}

/// Check that the server can serve requests.
///
/// Fails while the server drains or the database does not respond. Sleeping functions count as ready: a call wakes
/// them.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "node",
    operation_id = "readyz",
    responses((status = 200, description = "Able to serve", body = Health)),
    extensions(("x-errors" = json!(["not_ready"]))),
)]
pub async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.engine.is_draining() {
        return Err(Problem::new(
            ProblemCode::NotReady,
            "the server is draining",
        ));
    }
    match app.store.ping().await {
        Ok(()) => Ok(OK),
        Err(error) => {
            tracing::error!(%error, "the database does not answer");
            Err(Problem::new(
                ProblemCode::NotReady,
                "the database does not answer",
            ))
        }
    }
}
