//! Saved events of the test panel, and samples: choose, save, delete.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::format::encode;
use hearth_web::pages::{EventPicker, SavedEventRow};
use hearth_web::{respond, samples};
use serde::Deserialize;

use crate::http::App;
use crate::http::body;
use crate::http::functions::saved_events::{MAX_EVENT_BYTES, check_name};
use crate::http::problem::Problem;
use crate::model::{InvocationId, Right};
use crate::store::{MAX_SAVED_EVENTS, Saving};

use super::form::{self, Form, Submitted};
use super::guard::{go, is_htmx, sentence};
use super::session::Viewer;

/// `?pick=…`.
#[derive(Debug, Default, Deserialize)]
pub struct Picked {
    #[serde(default)]
    pick: String,
}

/// `GET /functions/{name}/event?pick=…`: the text of a saved event or a sample.
pub async fn event(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(Picked { pick }): Query<Picked>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let text = text(&app, &name, &pick)
        .await?
        .ok_or_else(|| Problem::not_found(format_args!("event {pick:?} of \"{name}\"")))?;
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, text).into_response())
}

/// `POST /functions/{name}/events/pick`: chooses, where no script does.
pub async fn pick(
    Path(name): Path<String>,
    submitted: Submitted<form::Event>,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Read)?;
    let pick = encode(submitted.form.text("pick"));
    Ok(Redirect::to(&format!("/functions/{name}?pick={pick}")).into_response())
}

/// `POST /functions/{name}/events`: saves the event in the editor.
pub async fn save(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::Event>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = id(&app, &name)?;
    let (event, event_name) = match read(&form) {
        Ok(read) => read,
        Err(error) => return refuse(&app, &viewer, &name, &form, error, is_htmx(&headers)).await,
    };
    let (id, said) = match app.store.save_event(function, &event_name, &event).await? {
        Saving::Created(id) => (id, format!("Saved as \"{event_name}\".")),
        Saving::Replaced(id) => (id, format!("Replaced \"{event_name}\".")),
        Saving::Full => {
            let error = format!("The limit is {MAX_SAVED_EVENTS} saved events. Delete one first.");
            return refuse(&app, &viewer, &name, &form, error, is_htmx(&headers)).await;
        }
    };
    viewer.audit().detail(format!("\"{event_name}\""));
    let pick = format!("saved-{id}");
    if !is_htmx(&headers) {
        return Ok(go(&headers, &format!("/functions/{name}?pick={pick}")));
    }
    let picker = EventPicker {
        said,
        ..picker(&app, &viewer, &name, pick).await?
    };
    Ok(respond::partial(&picker))
}

/// `POST /functions/{name}/events/delete`: deletes the chosen event.
pub async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::Event>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = id(&app, &name)?;
    let pick = form.text("pick");
    let deleted = match saved_id(pick) {
        Some(event) => app.store.delete_saved_event(function, event).await?,
        None => false,
    };
    if !deleted {
        return Err(Problem::not_found(format_args!(
            "saved event {pick:?} of \"{name}\""
        )));
    }
    if !is_htmx(&headers) {
        return Ok(go(&headers, &format!("/functions/{name}")));
    }
    let picker = EventPicker {
        said: "Saved event deleted. Its text is still in the editor.".to_owned(),
        ..picker(&app, &viewer, &name, String::new()).await?
    };
    Ok(respond::partial(&picker))
}

/// The chooser, with `picked` chosen if it is there.
pub async fn picker(
    app: &App,
    viewer: &Viewer,
    name: &str,
    picked: String,
) -> Result<EventPicker, Problem> {
    let saved: Vec<SavedEventRow> = app
        .store
        .saved_events(id(app, name)?)
        .await?
        .into_iter()
        .map(|event| SavedEventRow {
            id: event.id,
            name: event.name,
        })
        .collect();
    let chosen = saved_id(&picked).and_then(|id| saved.iter().find(|event| event.id == id));
    Ok(EventPicker {
        function: name.to_owned(),
        name: chosen.map_or_else(String::new, |event| event.name.clone()),
        picked,
        saved,
        can_write: viewer.may(Right::Write),
        said: String::new(),
        error: String::new(),
    })
}

/// The text of a saved event or a sample by its key.
pub async fn text(app: &App, name: &str, pick: &str) -> Result<Option<String>, Problem> {
    if let Some(key) = pick.strip_prefix("sample-") {
        return Ok(samples::by_key(key).map(|sample| sample.event.trim_end().to_owned()));
    }
    match saved_id(pick) {
        Some(event) => Ok(app.store.saved_event(id(app, name)?, event).await?),
        None => Ok(None),
    }
}

/// The stored event of an earlier invocation of the function, and a message about it.
pub async fn of_invocation(
    app: &App,
    name: &str,
    id: &str,
) -> Result<Option<(String, String)>, Problem> {
    let Ok(id) = id.parse().map(InvocationId) else {
        return Ok(None);
    };
    let record = app.history.get(id).await?;
    if record.is_none_or(|record| record.function != name) {
        return Ok(None);
    }
    let payloads = app.history.payloads(id).await?;
    let Some((text, truncated)) = payloads
        .event
        .and_then(|event| Some((event.text?, event.truncated)))
    else {
        return Ok(None);
    };
    let said = match truncated {
        true => format!("Loaded the beginning of the event of {id}; the rest was not kept."),
        false => format!("Loaded the event of {id}."),
    };
    let shown = match truncated {
        true => text,
        false => hearth_web::json::pretty(&text),
    };
    Ok(Some((shown, said)))
}

fn saved_id(pick: &str) -> Option<i64> {
    pick.strip_prefix("saved-")?.parse().ok()
}

fn id(app: &App, name: &str) -> Result<i64, Problem> {
    app.engine
        .id_of(name)
        .ok_or_else(|| Problem::not_found(format_args!("function \"{name}\"")))
}

/// Event and name, or why they are invalid.
fn read(form: &Form) -> Result<(String, String), String> {
    let name = form.trimmed("event_name");
    if name.is_empty() {
        return Err("Give the event a name.".to_owned());
    }
    check_name(&name).map_err(|rule| sentence(&rule))?;
    let event = form.lines("event");
    if event.len() > MAX_EVENT_BYTES {
        return Err(format!(
            "Must be at most {}.",
            hearth_web::format::bytes(MAX_EVENT_BYTES as u64)
        ));
    }
    body::check_json(event.as_bytes())
        .map_err(|problem| sentence(&problem.detail().replace("the body is", "the event is")))?;
    Ok((event, name))
}

async fn refuse(
    app: &App,
    viewer: &Viewer,
    name: &str,
    form: &Form,
    error: String,
    htmx: bool,
) -> Result<Response, Problem> {
    if !htmx {
        return Err(crate::http::spec::invalid(
            "event_name",
            &form.trimmed("event_name").into(),
            error,
        )
        .into());
    }
    let picker = EventPicker {
        name: form.trimmed("event_name"),
        error,
        ..picker(app, viewer, name, form.trimmed("pick")).await?
    };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, respond::partial(&picker)).into_response())
}
