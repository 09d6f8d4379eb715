//! `/functions`: the list of functions.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, TryStreamExt, stream};
use hearth_web::pages::{FunctionRow, FunctionsPage, FunctionsTable};
use hearth_web::respond;
use serde::Deserialize;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Right};
use crate::store::StoreError;

use super::guard::is_htmx;
use super::session::Viewer;
use super::view;

/// Statistics queried at one time: the list must not take all readers of the database.
const CONCURRENT_STATS: usize = 4;

/// `?notice=…`: set by the redirect after a change.
#[derive(Debug, Default, Deserialize)]
pub struct Notice {
    #[serde(default)]
    notice: String,
}

impl Notice {
    /// What to say about the change.
    pub fn in_words(&self) -> Option<String> {
        (self.notice == "deleted").then(|| "The function is deleted.".to_owned())
    }
}

/// `GET /functions`: the page, or for htmx the table alone.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut chrome = viewer.chrome();
    let rows = rows(&app).await?;
    if is_htmx(&headers) {
        return Ok(respond::partial(&FunctionsTable { rows, chrome }));
    }
    chrome.notice = query.in_words();
    Ok(respond::page(
        StatusCode::OK,
        &FunctionsPage { chrome, rows },
    ))
}

async fn rows(app: &App) -> Result<Vec<FunctionRow>, Problem> {
    let functions = app.engine.list().await?;
    let rows: Vec<FunctionRow> = stream::iter(functions)
        .map(|function| row(app, function))
        .buffered(CONCURRENT_STATS)
        .try_collect()
        .await?;
    Ok(rows)
}

async fn row(app: &App, function: FunctionView) -> Result<FunctionRow, StoreError> {
    Ok(FunctionRow {
        recent: view::recent(app, &function.name).await?,
        runtime: view::runtime(function.runtime),
        state: view::state(function.state),
        state_reason: function.state_reason,
        idle: function.instances.idle,
        busy: function.instances.busy,
        starting: function.instances.starting,
        max_concurrency: function.max_concurrency,
        name: function.name,
    })
}
