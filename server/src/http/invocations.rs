//! `GET /api/v1/invocations/{id}`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{self, Read, Scoped};
use super::path::Path;
use super::problem::Problem;
use crate::model::{Explanation, InvocationId, InvocationPayloads, InvocationRecord, Payload};

/// An invocation with its stored event and result.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvocationDetail {
    /// The record.
    #[serde(flatten)]
    pub record: InvocationRecord,
    /// Beginning of the event; null if not stored. Only the first few per second of each function are stored.
    pub event: Option<Payload>,
    /// Beginning of the result; null if there was none or it was not stored. For the HTTP trigger: status, headers and
    /// body.
    pub result: Option<Payload>,
}

/// Explain why an invocation took as long as it did.
///
/// Compares its stages with the function's medians, and names page faults, garbage collections, throttling, lost processors, pressure
/// and steal of that time, and what else ran. The instance's counters are kept with the invocation, the host's for a quarter of an hour.
#[utoipa::path(
    get,
    path = "/api/v1/invocations/{id}/explain",
    tag = "history",
    operation_id = "explain_invocation",
    security(("bearer" = ["read"])),
    params(("id" = uuid::Uuid, Path, description = "The `X-Hearth-Invocation-Id` of the response")),
    responses((status = 200, description = "The explanation", body = Explanation)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn explain(
    asked: Scoped<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<Explanation>, Problem> {
    let record = find(&app, &asked, &id).await?;
    let caller = &asked.caller;
    let names_all = caller.scope().is_none();
    let function = match record.chain {
        None => app.engine.id_of(&record.function),
        Some(_) => None,
    };
    let function = function.ok_or_else(|| {
        Problem::not_found(format!(
            "explanation of {id:?}, a request of a chain: see its way"
        ))
    })?;
    let explained = app
        .tail
        .explain(function, &record, names_all, |name| caller.reaches(name))
        .await?;
    Ok(Json(explained))
}

/// The invocation, if the caller may see it.
async fn find(app: &App, asked: &Scoped<Read>, id: &str) -> Result<InvocationRecord, Problem> {
    let found = match id.parse() {
        Ok(uuid) => app.history.get(InvocationId(uuid)).await?,
        Err(_) => None,
    };
    let record = found.ok_or_else(|| {
        let shown: String = id.chars().take(64).collect();
        Problem::not_found(format!("invocation {shown:?}"))
    })?;
    match record.chain {
        None => auth::reach(&asked.caller, &record.function)?,
        // Several functions have a part in it.
        Some(_) => auth::reach_all(&asked.caller)?,
    }
    Ok(record)
}

/// Get an invocation: stages, sizes, start kind, event, result, error with traceback and log lines.
#[utoipa::path(
    get,
    path = "/api/v1/invocations/{id}",
    tag = "history",
    operation_id = "get_invocation",
    security(("bearer" = ["read"])),
    params(("id" = uuid::Uuid, Path, description = "The `X-Hearth-Invocation-Id` of the response")),
    responses((status = 200, description = "The invocation", body = InvocationDetail)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn invocation(
    asked: Scoped<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<InvocationDetail>, Problem> {
    let record = find(&app, &asked, &id).await?;
    let InvocationPayloads { event, result } = app.history.payloads(record.id).await?;
    Ok(Json(InvocationDetail {
        record,
        event,
        result,
    }))
}
