//! `/functions/{name}`: state, test panel, recent invocations.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::pages::{EventPicker, FunctionPage};
use hearth_web::respond;
use serde::Deserialize;

use crate::engine::EngineError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Right};

use super::invocations;
use super::invoke::Answered;
use super::session::Viewer;
use super::{commands, events, view};

/// The event the test panel starts with.
const FIRST_EVENT: &str = "{\n  \"name\": \"world\"\n}";

/// What the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct FunctionQuery {
    #[serde(default)]
    notice: String,
    /// Key of the event to start with.
    #[serde(default)]
    pick: String,
    /// The invocation whose event to start with.
    #[serde(default)]
    event: String,
}

/// `GET /functions/{name}`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FunctionQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = match app.engine.get(&name) {
        // Search terms for the page that creates a function.
        Err(EngineError::NotFound(_)) if name == "new" => {
            return Ok(Redirect::to("/new").into_response());
        }
        found => found?,
    };
    show(&app, &viewer, &function, query, &headers, None).await
}

/// The page, with the result of an invocation when it answers a form.
pub async fn show(
    app: &App,
    viewer: &Viewer,
    function: &FunctionView,
    query: FunctionQuery,
    headers: &HeaderMap,
    answered: Option<Answered>,
) -> Result<Response, Problem> {
    let mut chrome = viewer.chrome();
    chrome.notice = notice(&query.notice, function);
    let base = view::base_url(headers);
    let (typed, http, outcome) = match answered {
        Some(answered) => (answered.event, answered.http, Some(answered.outcome)),
        None => (None, None, None),
    };
    let first = first_event(app, viewer, &function.name, &query).await?;
    // One that was typed for a former function of this name is not meant.
    let explicit_event = typed.is_some() || first.asked_for || query.notice == "created";
    let page = FunctionPage {
        chrome,
        head: view::head(app, function).await?,
        url: match app.edge.address_of(&function.name, headers) {
            path if path.starts_with('/') => format!("{base}{path}"),
            url => url,
        },
        public: function.public,
        curl: format!(
            "curl {base}/api/v1/functions/{}/invoke {} -d ",
            function.name,
            commands::TOKEN
        ),
        event: typed.unwrap_or(first.event),
        explicit_event,
        picker: first.picker,
        by_http: http.is_some(),
        http: http.unwrap_or_default(),
        outcome,
        history: invocations::recent(app, &function.name).await?,
        decisions: view::decisions(&function.decisions),
        starts: view::starts(function.starts_by, function.start_reason.as_ref()),
        image: view::image(&function.image),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// The event that the test panel starts with, and the chooser it is chosen in.
struct FirstEvent {
    event: String,
    picker: EventPicker,
    asked_for: bool,
}

/// The one that is asked for; else the first that was saved, which for a starter is its own sample.
async fn first_event(
    app: &App,
    viewer: &Viewer,
    name: &str,
    query: &FunctionQuery,
) -> Result<FirstEvent, Problem> {
    let mut picker = events::picker(app, viewer, name, query.pick.clone()).await?;
    if let Some((event, said)) = events::of_invocation(app, name, &query.event).await? {
        picker.said = said;
        return Ok(FirstEvent {
            event,
            picker,
            asked_for: true,
        });
    }
    let asked_for = !query.pick.is_empty();
    if !asked_for && let Some(saved) = picker.saved.first() {
        picker.picked = format!("saved-{}", saved.id);
        picker.name = saved.name.clone();
    }
    let found = events::text(app, name, &picker.picked).await?;
    if found.is_none() {
        picker.picked = String::new();
    }
    Ok(FirstEvent {
        asked_for: asked_for && found.is_some(),
        event: found.unwrap_or_else(|| FIRST_EVENT.to_owned()),
        picker,
    })
}

/// `?notice=…`: set by the redirect after a change.
#[derive(Debug, Default, Deserialize)]
pub struct FunctionNotice {
    /// What was done.
    #[serde(default)]
    pub notice: String,
}

/// What was done, in words.
pub fn notice(key: &str, function: &FunctionView) -> Option<String> {
    let version = function.active_version;
    Some(match key {
        "created" => format!("{} is live. Try it below.", function.name),
        "deployed" => format!("Version {version} is live."),
        "activated" => format!("Version {version} is live."),
        "saved" => format!("Settings saved as version {version}."),
        "gated" => format!(
            "The new version is compared with version {version}, which serves requests until it has passed."
        ),
        "gate" => "Gate saved.".to_owned(),
        "unchanged" => "No changes, no new version.".to_owned(),
        _ => return None,
    })
}

/// To the whole page, for who opens a partial's address.
pub(super) fn to_page(name: &str) -> Response {
    Redirect::to(&format!("/functions/{name}")).into_response()
}
