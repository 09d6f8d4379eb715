//! `/chains/{name}/requests/{id}`: one request with its waterfall.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{ChainRequestPage, Moment};
use hearth_web::respond;
use hearth_web::waterfall::{Stay, Waterfall};
use jiff::Timestamp;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::chain::TraceHop;
use crate::model::{InvocationId, Right};

use super::session::Viewer;
use super::view;

/// `GET /chains/{name}/requests/{id}`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let missing = || Problem::not_found(format_args!("request {id:?} of chain \"{name}\""));
    let key = id.parse().map(InvocationId).map_err(|_| missing())?;
    let record = app.history.get(key).await?.ok_or_else(missing)?;
    let Some(trace) = record.chain.filter(|_| record.function == name) else {
        return Err(missing());
    };
    let stay = |hop: TraceHop| Stay {
        member: hop.member,
        instance: hop.instance,
        is_call: hop.is_call,
        entered: hop.entered_us,
        left: hop.left_us,
    };
    let page = ChainRequestPage {
        chrome: viewer.chrome(),
        name,
        id: record.id.to_string(),
        route: trace.route,
        version: record.version,
        status: view::status(record.status),
        trigger: view::trigger(record.trigger),
        received: Moment {
            at: record.received_at,
            now: Timestamp::now(),
        },
        waterfall: Waterfall::new(
            trace.hops.into_iter().map(stay).collect(),
            record.stages_us.total,
        ),
        stages: view::stages(&record.stages_us),
        error: record.error.map(view::error),
        logs: view::logs(record.logs),
    };
    Ok(respond::page(StatusCode::OK, &page))
}
