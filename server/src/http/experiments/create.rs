//! `POST /api/v1/experiments`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearth_lab::stellar::experiment::TEXT_MAX;

use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::body;
use crate::http::problem::Problem;
use crate::model::ExperimentDetail;

/// Create an experiment.
///
/// The body is an experiment in STeLLAR's format, or has a `kind`: `tail` is STeLLAR's table of tail latencies for this server, `duet` compares
/// two functions or versions, `replay` sends what came to a function once more to copies of two versions, `overhead` tells what function,
/// worker, server and client each have of a small invocation's time, `suite` compares two source trees that the agent has by their
/// microbenchmarks. An agent (`hearth lab agent`) runs one experiment at a time, oldest first.
#[utoipa::path(
    post,
    path = "/api/v1/experiments",
    tag = "experiments",
    operation_id = "create_experiment",
    security(("bearer" = ["write"])),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The experiment"),
    responses((status = 201, description = "Created", body = ExperimentDetail,
        headers(("Location" = String, description = "Where the experiment is")))),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_experiment", "too_many_requests"
    ]))),
)]
pub async fn create(
    asked: Allowed<Write>,
    State(app): State<App>,
    request: Request,
) -> Result<Response, Problem> {
    body::check_coding(request.headers())?;
    let text = body::read(request.into_body(), TEXT_MAX).await?;
    body::check_json(&text)?;
    let made = app.lab.create(&text, asked.caller.name()).await?;
    asked.audit.target(made.view.id.to_string());
    asked.audit.detail(made.view.title.clone());
    let location = format!("/api/v1/experiments/{}", made.view.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(made),
    )
        .into_response())
}
