//! `/`: the list of functions.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
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

/// `GET /`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut chrome = viewer.chrome();
    if query.notice == "deleted" {
        chrome.notice = Some("The function is deleted.".to_owned());
    }
    let page = FunctionsPage {
        chrome,
        rows: rows(&app).await?,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `GET /functions`: the table alone.
pub async fn table(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !is_htmx(&headers) {
        return Ok(Redirect::to("/").into_response());
    }
    viewer.needs(Right::Read)?;
    let table = FunctionsTable {
        rows: rows(&app).await?,
        chrome: viewer.chrome(),
    };
    Ok(respond::partial(&table))
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
