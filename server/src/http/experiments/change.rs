//! `POST /api/v1/experiments/{id}/cancel` and `DELETE /api/v1/experiments/{id}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::ExperimentDetail;

/// Cancel an experiment.
///
/// One that waits is cancelled at once; one that runs by its agent, which first removes what it has deployed.
#[utoipa::path(
    post,
    path = "/api/v1/experiments/{id}/cancel",
    tag = "experiments",
    operation_id = "cancel_experiment",
    security(("bearer" = ["write"])),
    params(("id" = i64, Path, minimum = 1, description = "Number of the experiment")),
    responses((status = 200, description = "The experiment", body = ExperimentDetail)),
    extensions(("x-errors" = json!(["not_found", "experiment_state"]))),
)]
pub async fn cancel(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<ExperimentDetail>, Problem> {
    asked.audit.target(id.as_str());
    Ok(Json(app.lab.cancel(id_of(&id)?).await?))
}

/// Delete an experiment with its files.
#[utoipa::path(
    delete,
    path = "/api/v1/experiments/{id}",
    tag = "experiments",
    operation_id = "delete_experiment",
    security(("bearer" = ["write"])),
    params(("id" = i64, Path, minimum = 1, description = "Number of the experiment")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found", "experiment_state"]))),
)]
pub async fn delete(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    asked.audit.target(id.as_str());
    app.lab.delete(id_of(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
