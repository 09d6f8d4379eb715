//! `/api/v1/functions/{name}/saved-events`: named events, for the console's test panel, gates and duets.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read, Write};
use crate::http::body;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec::invalid;
use crate::model::Page;
use crate::store::{MAX_SAVED_EVENTS, SavedEvent, Saving};

/// Longest event that is saved: examples, not data. Bounds the database.
pub const MAX_EVENT_BYTES: usize = 256 << 10;
/// Longest name in characters: a line of the chooser.
const MAX_NAME_CHARS: usize = 64;

/// A saved event without its content.
#[derive(Debug, Serialize, ToSchema)]
pub struct SavedEventName {
    /// Its name.
    #[schema(max_length = 64)]
    pub name: String,
}

/// What is wrong with a saved event's name; nothing if it is one.
pub fn check_name(name: &str) -> Result<(), String> {
    let count = name.chars().count();
    match (1..=MAX_NAME_CHARS).contains(&count) && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!(
            "must be one line of 1 to {MAX_NAME_CHARS} characters"
        )),
    }
}

/// List a function's saved events.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/saved-events",
    tag = "functions",
    operation_id = "list_saved_events",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "Their names, all in one page, in the order in which they were first saved", body = Page<SavedEventName>)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn list(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<Page<SavedEventName>>, Problem> {
    let saved = app.store.saved_events(id_of(&app, &name)?).await?;
    let items = saved.into_iter();
    let items = items.map(|event| SavedEventName { name: event.name });
    Ok(Json(Page {
        items: items.collect(),
        next: None,
    }))
}

/// Get a saved event: the event itself.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/saved-events/{event}",
    tag = "functions",
    operation_id = "get_saved_event",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("event" = String, Path, description = "Name of the event"),
    ),
    responses((status = 200, description = "The event", body = serde_json::Value, content_type = "application/json")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path((name, event)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (function, saved) = find(&app, &name, &event).await?;
    let text = app.store.saved_event(function, saved.id).await?;
    let text = text.ok_or_else(|| no_event(&event))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Save an event under a name; one that has the name is replaced.
#[utoipa::path(
    put,
    path = "/api/v1/functions/{name}/saved-events/{event}",
    tag = "functions",
    operation_id = "put_saved_event",
    security(("bearer" = ["write"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("event" = String, Path, description = "Name of the event: one line of at most 64 characters"),
    ),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The event, at most 256 KiB"),
    responses(
        (status = 201, description = "Saved", body = SavedEventName),
        (status = 200, description = "Replaced", body = SavedEventName),
    ),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "not_found", "invalid_field"
    ]))),
)]
pub async fn put(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path((name, event)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let function = id_of(&app, &name)?;
    check_name(&event).map_err(|rule| invalid("event", &event.as_str().into(), rule))?;
    body::check_coding(request.headers())?;
    let media_type = body::media_type(request.headers());
    if !body::is_json(&media_type) {
        return Err(body::unsupported(&media_type, "application/json"));
    }
    let text = body::read(request.into_body(), MAX_EVENT_BYTES).await?;
    body::check_json(&text)?;
    asked.audit.detail(format!("\"{event}\""));
    let text = String::from_utf8_lossy(&text);
    let status = match app.store.save_event(function, &event, &text).await? {
        Saving::Created(_) => StatusCode::CREATED,
        Saving::Replaced(_) => StatusCode::OK,
        Saving::Full => {
            let rule =
                format!("a function has at most {MAX_SAVED_EVENTS} saved events: delete one first");
            return Err(invalid("event", &event.into(), rule).into());
        }
    };
    Ok((status, Json(SavedEventName { name: event })).into_response())
}

/// Delete a saved event.
#[utoipa::path(
    delete,
    path = "/api/v1/functions/{name}/saved-events/{event}",
    tag = "functions",
    operation_id = "delete_saved_event",
    security(("bearer" = ["write"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("event" = String, Path, description = "Name of the event"),
    ),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn delete(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path((name, event)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (function, saved) = find(&app, &name, &event).await?;
    asked.audit.detail(format!("\"{event}\""));
    match app.store.delete_saved_event(function, saved.id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_event(&event)),
    }
}

async fn find(app: &App, name: &str, event: &str) -> Result<(i64, SavedEvent), Problem> {
    let function = id_of(app, name)?;
    let saved = app.store.saved_events(function).await?;
    let found = saved.into_iter().find(|saved| saved.name == event);
    Ok((function, found.ok_or_else(|| no_event(event))?))
}

fn no_event(event: &str) -> Problem {
    let shown: String = event.chars().take(MAX_NAME_CHARS).collect();
    Problem::not_found(format!("saved event {shown:?}"))
}
