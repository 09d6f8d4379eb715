//! `/`: how the node and its functions are.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{OverviewPage, StateCount};
use hearth_web::respond;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionState, Right};

use super::functions::Notice;
use super::session::Viewer;
use super::view;

/// The states in the order they are shown in.
const STATES: [FunctionState; 4] = [
    FunctionState::Ready,
    FunctionState::Starting,
    FunctionState::Asleep,
    FunctionState::Failed,
];

/// `GET /`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(notice): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let functions = app.engine.list().await?;
    let states = STATES
        .into_iter()
        .map(|state| StateCount {
            state: view::state(state),
            count: functions.iter().filter(|f| f.state == state).count() as u64,
        })
        .collect();
    let mut chrome = viewer.chrome();
    chrome.notice = notice.in_words();
    Ok(respond::page(
        StatusCode::OK,
        &OverviewPage { chrome, states },
    ))
}
