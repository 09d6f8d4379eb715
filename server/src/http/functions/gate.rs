//! `/api/v1/functions/{name}/gate`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{addressed, no_function};
use crate::http::App;
use crate::http::auth::{Admin, Allowed, Read, Write, check};
use crate::http::body;
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::lab::{Deployed, LabError};
use crate::model::{Caller, Gate, InvalidField, Right};

/// Longest gate: names of events.
const TEXT_MAX: usize = 64 << 10;

/// Get a function's gate.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/gate",
    tag = "functions",
    operation_id = "get_gate",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "The gate", body = Gate)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<Gate>, Problem> {
    known(&app, &name)?;
    let gate = app.lab.gate(&name).await?;
    gate.map(Json).ok_or_else(|| no_gate(&name))
}

/// Give a function a gate.
///
/// From now on a version with other code, another handler, other variables or another memory size is compared with the active one by an
/// experiment, and becomes active if it is not slower. Changing a gate that is there needs the right admin.
#[utoipa::path(
    put,
    path = "/api/v1/functions/{name}/gate",
    tag = "functions",
    operation_id = "put_gate",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the function")),
    request_body(content = Gate, content_type = "application/json"),
    responses((status = 200, description = "The gate", body = Gate)),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "not_found", "invalid_field"
    ]))),
)]
pub async fn put(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<Gate>, Problem> {
    known(&app, &name)?;
    body::check_coding(request.headers())?;
    let media_type = body::media_type(request.headers());
    if !body::is_json(&media_type) {
        return Err(body::unsupported(&media_type, "application/json"));
    }
    let text = body::read(request.into_body(), TEXT_MAX).await?;
    let refuse = |rule: String| InvalidField {
        field: "gate".into(),
        value: "the body".into(),
        rule,
    };
    let value = body::json(&text)?;
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(refuse("must be an object".to_owned()).into());
    }
    let gate: Gate = serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    may_change(&app, &asked.caller, &name, Some(&gate)).await?;
    asked.audit.detail(words(&gate));
    app.lab.set_gate(&name, Some(gate.clone())).await?;
    Ok(Json(gate))
}

/// Take a function's gate away.
#[utoipa::path(
    delete,
    path = "/api/v1/functions/{name}/gate",
    tag = "functions",
    operation_id = "delete_gate",
    security(("bearer" = ["admin"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 204, description = "It has none any more")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn delete(
    _: Allowed<Admin>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    known(&app, &name)?;
    match app.lab.set_gate(&name, None).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_gate(&name)),
    }
}

fn known(app: &App, name: &str) -> Result<(), Problem> {
    let id = app.engine.id_of(name);
    id.map(drop).ok_or_else(|| no_function(name))
}

fn no_gate(name: &str) -> Problem {
    Problem::not_found(format!("gate of function {name:?}"))
}

/// A gate as the audit log names it.
pub fn words(gate: &Gate) -> String {
    let (threshold, confidence) = (gate.threshold_percent, gate.confidence_percent);
    format!("threshold {threshold} %, confidence {confidence} %")
}

/// 403 for who is no admin and would change a gate that is there: it is kept from them that deploy.
///
/// # Errors
/// Also what the lab says.
pub async fn may_change(
    app: &App,
    caller: &Caller,
    name: &str,
    then: Option<&Gate>,
) -> Result<(), Problem> {
    let now = app.lab.gate(name).await?;
    match now.is_some() && now.as_ref() != then {
        true => check(caller, Right::Admin),
        false => Ok(()),
    }
}

/// The answer to a change: the function, or 202 with the version that is being compared.
pub(super) fn answer(
    app: &App,
    headers: &HeaderMap,
    deployed: Deployed,
) -> Result<Response, Problem> {
    match deployed {
        Deployed::Active { function, .. } => {
            let view = addressed(app, headers, *function);
            etag::changed(StatusCode::OK, &view.revision(), &view)
        }
        Deployed::Gated(version) => {
            let experiment = version.gate.as_ref().map_or(0, |gate| gate.experiment);
            let location = format!("/api/v1/experiments/{experiment}");
            let headers = [(header::LOCATION, location)];
            Ok((StatusCode::ACCEPTED, headers, Json(*version)).into_response())
        }
    }
}

/// What the audit log says of it.
pub fn detail(deployed: &Deployed) -> String {
    match deployed {
        Deployed::Active {
            function,
            overridden,
        } => {
            let version = function.active_version;
            match overridden {
                Some(said) => format!("version {version}, gate overridden: {said}"),
                None => format!("version {version}"),
            }
        }
        Deployed::Gated(version) => {
            let experiment = version.gate.as_ref().map_or(0, |gate| gate.experiment);
            format!(
                "version {}, compared first by experiment {experiment}",
                version.version
            )
        }
    }
}

/// The error of an engine's change, where it is one.
pub fn engine_error(error: LabError) -> Result<crate::engine::EngineError, Problem> {
    match error {
        LabError::Engine(error) => Ok(error),
        other => Err(other.into()),
    }
}
