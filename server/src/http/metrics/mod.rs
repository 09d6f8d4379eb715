//! `GET /metrics`: OpenMetrics text, rendered for each scrape from the modules' counters.

mod histogram;
mod ingress;
mod network;
mod process;
mod snapshot;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::App;
use super::auth::{Allowed, Read};
use super::problem::Problem;

use snapshot::Snapshot;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Get metrics for Prometheus.
///
/// Functions by state, instances, scheduler decisions, memory, invocations by function, status and start kind, latency
/// histograms, requests to chains by status, and the server process.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "node",
    operation_id = "metrics",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "OpenMetrics text", body = String,
        content_type = "application/openmetrics-text")),
)]
pub async fn metrics(_: Allowed<Read>, State(app): State<App>) -> Result<Response, Problem> {
    let snapshot = Snapshot {
        functions: app.engine.list(),
        totals: app.history.totals(),
        chains: app.history.chain_totals(),
        memory_status: app.engine.memory_status(),
        prewarmed_sandboxes: app.engine.prewarmed().ready(),
        prewarmed_sandboxes_used: app.engine.prewarmed().used(),
        refused_stamps: app.engine.refused_stamps(),
        network: app.engine.network_traffic(),
        ingress: ingress::IngressTraffic {
            owners: app.engine.ingress().all_traffic(),
            node: app.engine.ingress().node_traffic(),
        },
        process: process::read(),
        uptime: app.started.elapsed(),
    };
    let text = render(snapshot).map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

fn render(snapshot: Snapshot) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut buffer = String::new();
    text::encode(&mut buffer, &registry)?;
    Ok(buffer)
}
