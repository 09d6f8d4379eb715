//! `/functions/{name}`: state, test panel, history.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::pages::{
    FunctionHeadPartial, FunctionPage, HistoryPartial, HistoryView, InvokeOutcome,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::engine::EngineError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{FunctionView, Right};

use super::guard::is_htmx;
use super::session::Viewer;
use super::view;

/// Rows of a page of the history.
const HISTORY_ROWS: u32 = 20;
/// The event the test panel starts with.
const FIRST_EVENT: &str = "{\n  \"name\": \"world\"\n}";

/// Which part of the history, and what the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    status: String,
    before: Option<String>,
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
        history: history_view(app, &function.name, wanted).await?,
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

/// `GET /functions/{name}/history`: the history alone. The page's address follows, so that a reload shows the same.
pub async fn history(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !is_htmx(&headers) {
        return Ok(to_page(&name));
    }
    viewer.needs(Right::Read)?;
    let history = history_view(&app, &name, wanted).await?;
    let address = format!(
        "/functions/{name}{}",
        history.query(history.before.as_deref())
    );
    let mut response = respond::partial(&HistoryPartial { history });
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert("hx-replace-url", address);
    }
    Ok(response)
}

async fn history_view(app: &App, name: &str, wanted: Wanted) -> Result<HistoryView, Problem> {
    let Some(id) = app.engine.id_of(name) else {
        return Err(Problem::not_found(format_args!("function \"{name}\"")));
    };
    let status = view::status_filter(&wanted.status);
    let before = wanted.before.filter(|before| !before.is_empty());
    let page = app
        .history
        .list(id, status, before.as_deref(), HISTORY_ROWS)
        .await?
        .ok_or_else(|| {
            let value = before.as_deref().unwrap_or_default().into();
            spec::invalid("before", &value, "must be the key of an earlier page")
        })?;
    let now = Timestamp::now();
    Ok(HistoryView {
        function: name.to_owned(),
        status: status.map_or_else(String::new, |_| wanted.status),
        rows: page
            .items
            .into_iter()
            .map(|record| view::history_row(record, now))
            .collect(),
        before,
        next: page.next,
    })
}

/// To the whole page, for who opens a partial's address.
fn to_page(name: &str) -> Response {
    Redirect::to(&format!("/functions/{name}")).into_response()
}
