//! `/functions/{name}/invocations/{id}`: one invocation.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::InvocationPage;
use hearth_web::respond;
use jiff::Timestamp;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{InvocationId, Right};

use super::session::Viewer;
use super::{explanation, view};

/// `GET /functions/{name}/invocations/{id}`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let missing = || Problem::not_found(format_args!("invocation {id:?} of \"{name}\""));
    let key = id.parse().map(InvocationId).map_err(|_| missing())?;
    let record = app
        .history
        .get(key)
        .await?
        .filter(|record| record.function == name && record.chain.is_none())
        .ok_or_else(missing)?;
    let payloads = app.history.payloads(key).await?;
    let id = app.engine.id_of(&name).ok_or_else(missing)?;
    let explained = app.tail.explain(id, &record, true, |_| true).await?;
    let page = InvocationPage {
        chrome: viewer.chrome(),
        explanation: explanation::view(&explained),
        invocation: view::invocation(
            record,
            &payloads,
            &view::base_url(&headers),
            Timestamp::now(),
        ),
    };
    Ok(respond::page(StatusCode::OK, &page))
}
