//! `POST /api/v1/experiments`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearth_lab::job::{Job, JobError};
use hearth_lab::stellar::experiment::TEXT_MAX;

use crate::http::App;
use crate::http::auth::{Allowed, Write};
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::lab::LabError;
use crate::model::{AssignedExperiment, ExperimentDetail, InvalidField};

/// Create an experiment.
///
/// The body is an experiment in STeLLAR's format, or has a `kind`: `tail` is STeLLAR's table of tail latencies for this server, `duet` compares
/// two functions or versions, `load` sends requests to a function, a chain or an address, `replay` sends what came to a function once more to copies of two versions, which reach what its `network` allows, `overhead` tells what function,
/// worker, server and client each have of a small invocation's time, `suite` compares two source trees that the agent has by their
/// microbenchmarks (`tool`: `go`, `pytest-benchmark`, `pyperf`, `tinybench` or `mitata`), `whatif` runs a function's
/// recorded calls through other settings of the scheduler. An agent (`hearth lab agent`) runs one experiment at a time, oldest first.
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
    let text = read(&app, request).await?;
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

/// Create an experiment and run it (for agents).
///
/// As `POST /api/v1/experiments`, but who creates it runs it, as `hearth lab run --keep` does: it runs from now on, and its progress is to be
/// reported at least every 30 s. While another experiment runs, it is refused with 409.
#[utoipa::path(
    post,
    path = "/api/v1/experiments/taken",
    tag = "experiments",
    operation_id = "create_taken_experiment",
    security(("bearer" = ["write"])),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The experiment"),
    responses((status = 201, description = "Created: run it", body = AssignedExperiment,
        headers(("Location" = String, description = "Where the experiment is")))),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_experiment", "experiment_state",
        "too_many_requests"
    ]))),
)]
pub async fn create_taken(
    asked: Allowed<Write>,
    State(app): State<App>,
    request: Request,
) -> Result<Response, Problem> {
    let text = read(&app, request).await?;
    let by = asked.caller.name();
    let (made, title) = app.lab.create_taken(&text, by).await?;
    asked.audit.target(made.id.to_string());
    asked.audit.detail(title);
    let location = format!("/api/v1/experiments/{}", made.id);
    let headers = [(header::LOCATION, location)];
    Ok((StatusCode::CREATED, headers, Json(made)).into_response())
}

async fn read(app: &App, request: Request) -> Result<Bytes, Problem> {
    body::check_coding(request.headers())?;
    let text = body::read(request.into_body(), TEXT_MAX).await?;
    body::check_json(&text)?;
    check_settings(app, &text)?;
    Ok(text)
}

/// Refuses settings of a replay that its function cannot have, and a network that no copy can have here: its agent would find out
/// late. What else is wrong is said when the experiment is created.
pub fn check_settings(app: &App, config: &[u8]) -> Result<(), LabError> {
    let Ok(Job::Replay(replay)) = Job::read(config) else {
        return Ok(());
    };
    let network = spec::copy_network(replay.network.setting().clone());
    network
        .and_then(|network| app.engine.check_network(&network))
        .map_err(|invalid| JobError::Field("network", within_network(&invalid)))?;
    let Ok([_, (_, second)]) = replay.subjects() else {
        return Ok(());
    };
    let Ok(function) = app.engine.get(&second.function) else {
        return Ok(());
    };
    let changed = replay.settings.settings().clone();
    let checked = spec::copy_settings(changed, function.runtime);
    let refused = |field| LabError::Job(JobError::Field("settings", field));
    checked.map_err(|invalid| refused(invalid.to_string()))
}

/// A refusal that stands behind the field's name.
fn within_network(invalid: &InvalidField) -> String {
    let InvalidField { field, value, rule } = invalid;
    match field.strip_prefix("network.") {
        Some(place) => format!("{place}: {value} is not valid: {rule}"),
        None => format!("{value} is not valid: {rule}"),
    }
}
