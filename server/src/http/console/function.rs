//! `/functions/{name}`: state, test panel, last calls.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::pages::{FunctionHeadPartial, FunctionPage, InvokeOutcome};
use hearth_web::respond;
use serde::Deserialize;

use crate::engine::EngineError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Right};

use super::guard::is_htmx;
use super::invocations;
use super::session::Viewer;
use super::view;

/// The event the test panel starts with.
const FIRST_EVENT: &str = "{\n  \"name\": \"world\"\n}";

/// What the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    notice: String,
}

/// `GET /functions/{name}`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = match app.engine.get(&name).await {
        // What people type who look for the page that creates one.
        Err(EngineError::NotFound(_)) if name == "new" => {
            return Ok(Redirect::to("/new").into_response());
        }
        found => found?,
    };
    show(&app, &viewer, &function, wanted, &headers, None).await
}

/// The page, with the result of an invocation when it answers a form.
pub async fn show(
    app: &App,
    viewer: &Viewer,
    function: &FunctionView,
    wanted: Wanted,
    headers: &HeaderMap,
    invoked: Option<(String, InvokeOutcome)>,
) -> Result<Response, Problem> {
    let mut chrome = viewer.chrome();
    chrome.notice = notice(&wanted.notice, function);
    let base = view::base_url(headers);
    let (event, outcome) = match invoked {
        Some((event, outcome)) => (event, Some(outcome)),
        None => (FIRST_EVENT.to_owned(), None),
    };
    let page = FunctionPage {
        chrome,
        head: view::head(app, function).await?,
        url: format!("{base}{}", function.url),
        public: function.public,
        curl: format!(
            "curl {base}/api/v1/functions/{}/invoke -H \"Authorization: Bearer $HEARTH_TOKEN\" -d '{{\"name\":\"world\"}}'",
            function.name
        ),
        event,
        outcome,
        history: invocations::recent(app, &function.name).await?,
        decisions: view::decisions(&function.decisions),
        image: view::image(&function.image),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn notice(key: &str, function: &FunctionView) -> Option<String> {
    let version = function.active_version;
    Some(match key {
        "created" => format!("{} is deployed and answers. Try it below.", function.name),
        "deployed" => format!("Version {version} is deployed and answers."),
        "activated" => format!("Version {version} answers now."),
        "saved" => format!("The settings are saved as version {version}."),
        "unchanged" => "Nothing was changed, so there is no new version.".to_owned(),
        _ => return None,
    })
}

/// `GET /functions/{name}/head`: the head alone.
pub async fn head(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !is_htmx(&headers) {
        return Ok(to_page(&name));
    }
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name).await?;
    let head = view::head(&app, &function).await?;
    Ok(respond::partial(&FunctionHeadPartial { head }))
}

/// To the whole page, for who opens a partial's address.
pub(super) fn to_page(name: &str) -> Response {
    Redirect::to(&format!("/functions/{name}")).into_response()
}
