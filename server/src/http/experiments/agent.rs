//! What agents ask for and report.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::body;
use crate::http::path::Path;
use crate::http::problem::{Problem, ProblemCode};
use crate::model::{AssignedExperiment, ExperimentEnd};

/// Longest report.
const REPORT_MAX: usize = 1 << 20;
/// Longest file.
const FILE_MAX: usize = 32 << 20;

/// What an agent is to do.
#[derive(Debug, Serialize, ToSchema)]
pub struct Told {
    /// Whether to cancel the experiment.
    pub cancel: bool,
}

/// Take the next experiment (for agents).
///
/// Waits up to 20 s for one. An agent must report its progress at least every 30 s from then on.
#[utoipa::path(
    post,
    path = "/api/v1/experiments/next",
    tag = "experiments",
    operation_id = "take_experiment",
    security(("bearer" = ["write"])),
    responses(
        (status = 200, description = "An experiment to run", body = AssignedExperiment),
        (status = 204, description = "None waits, or another one runs"),
    ),
)]
pub async fn next(_: Allowed<Write>, State(app): State<App>) -> Result<Response, Problem> {
    Ok(match app.lab.next().await? {
        Some(assigned) => Json(assigned).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Report progress (for agents).
#[utoipa::path(
    put,
    path = "/api/v1/experiments/{id}/progress",
    tag = "experiments",
    operation_id = "report_experiment_progress",
    security(("bearer" = ["write"])),
    params(("id" = i64, Path, minimum = 1, description = "Number of the experiment")),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The progress"),
    responses((status = 200, description = "What to do", body = Told)),
    extensions(("x-errors" = json!(["invalid_json", "bad_request_body", "payload_too_large", "not_found", "experiment_state"]))),
)]
pub async fn progress(
    _: Allowed<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Told>, Problem> {
    let progress = json(request).await?;
    let cancel = app.lab.progress(id_of(&id)?, &progress).await?;
    Ok(Json(Told { cancel }))
}

/// Add a file (for agents).
#[utoipa::path(
    put,
    path = "/api/v1/experiments/{id}/files/{path}",
    tag = "experiments",
    operation_id = "add_experiment_file",
    security(("bearer" = ["write"])),
    params(
        ("id" = i64, Path, minimum = 1, description = "Number of the experiment"),
        ("path" = String, Path, description = "Path of the file; a slash in it is `%2F`"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file"),
    responses((status = 204, description = "Kept")),
    extensions(("x-errors" = json!(["bad_request_body", "payload_too_large", "not_found", "invalid_experiment", "experiment_state"]))),
)]
pub async fn add_file(
    _: Allowed<Write>,
    State(app): State<App>,
    Path((id, path)): Path<(String, String)>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let content = body::read(request.into_body(), FILE_MAX).await?;
    app.lab.add_file(id_of(&id)?, &path, &content).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Report the end (for agents).
#[utoipa::path(
    put,
    path = "/api/v1/experiments/{id}/end",
    tag = "experiments",
    operation_id = "end_experiment",
    security(("bearer" = ["write"])),
    params(("id" = i64, Path, minimum = 1, description = "Number of the experiment")),
    request_body(content = ExperimentEnd, content_type = "application/json", description = "How it ended"),
    responses((status = 204, description = "Kept")),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "not_found", "invalid_experiment", "experiment_state"
    ]))),
)]
pub async fn end(
    _: Allowed<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let end: ExperimentEnd = serde_json::from_value(json(request).await?)
        .map_err(|error| Problem::new(ProblemCode::InvalidExperiment, error.to_string()))?;
    app.lab.end(id_of(&id)?, &end).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn json(request: Request) -> Result<Value, Problem> {
    let bytes = body::read(request.into_body(), REPORT_MAX).await?;
    body::json(&bytes)
}
