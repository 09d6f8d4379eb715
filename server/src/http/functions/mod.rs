//! `/api/v1/functions`: one file per verb and resource.

pub mod activate;
pub mod add_version;
pub mod copy;
pub mod create;
pub mod delete;
pub mod events;
pub mod gate;
pub mod get;
pub mod ingress;
pub mod invocations;
pub mod invoke;
pub mod invoke_version;
pub mod latency;
pub mod list;
pub mod logs;
pub mod network;
pub mod patch;
pub mod performance;
pub mod put_code;
pub mod saved_events;
pub mod stats;
pub mod version_code;
pub mod versions;
pub mod what_if;

use std::future::Future;

use axum::http::HeaderMap;

use super::App;
use super::auth::Proof;
use super::problem::Problem;
use crate::model::FunctionView;

/// Row id of a function, or 404.
fn id_of(app: &App, name: &str) -> Result<i64, Problem> {
    app.engine.id_of(name).ok_or_else(|| no_function(name))
}

/// 404 for a function.
pub fn no_function(name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    Problem::not_found(format!("function {shown:?}"))
}

/// The number of a version in an address; 404 if it is none.
fn version_number(name: &str, version: &str) -> Result<u32, Problem> {
    version.parse().map_err(|_| {
        let shown: String = version.chars().take(20).collect();
        Problem::not_found(format!("version {shown:?} of function {name:?}"))
    })
}

/// Whether a stream about this function should continue: the function still exists, the server is not draining, and the
/// caller is still authorised.
async fn is_alive(app: &App, name: &str, id: i64, proof: &Proof) -> bool {
    !app.engine.is_draining() && app.engine.id_of(name) == Some(id) && proof.holds(app).await
}

/// Runs a change on a task of its own, so that a client that hangs up leaves it either undone or complete.
pub async fn to_the_end<T, E>(
    change: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Into<Problem> + Send + 'static,
{
    match tokio::spawn(change).await {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(e) => Err(Problem::internal(format!("a change was aborted: {e}"))),
    }
}

/// A function with its URL for the sender of these headers.
fn addressed(app: &App, headers: &HeaderMap, mut view: FunctionView) -> FunctionView {
    view.url = app.edge.address_of(&view.name, headers);
    view
}
