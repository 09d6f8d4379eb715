//! `GET /api/v1/invocations/{id}`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{self, Read, Scoped};
use super::path::Path;
use super::problem::Problem;
use crate::model::{InvocationId, InvocationPayloads, InvocationRecord, Payload};

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
    let InvocationPayloads { event, result } = app.history.payloads(record.id).await?;
    Ok(Json(InvocationDetail {
        record,
        event,
        result,
    }))
}
