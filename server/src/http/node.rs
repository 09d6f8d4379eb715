//! `GET /api/v1/node`: the host and what Hearth can do on it.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::App;
use super::auth::{Allowed, Read};
use crate::ingress::IngressReport;
use crate::system::HostMemory;

/// The node.
#[derive(Debug, Serialize, ToSchema)]
pub struct Node {
    /// Hearth's version.
    #[schema(example = "0.1.0")]
    pub version: &'static str,
    /// Seconds since the server started.
    pub uptime_s: u64,
    /// The host's name.
    pub hostname: String,
    /// The kernel's release.
    #[schema(example = "6.18.0")]
    pub kernel: String,
    /// Processors the server may use.
    pub cpus: usize,
    /// Memory of the host, bytes.
    pub memory_total_bytes: u64,
    /// Host memory available without swapping, bytes.
    pub memory_available_bytes: u64,
    /// Memory that templates, idle instances and images may take, bytes (`HEARTH_MEMORY_BUDGET_MB`).
    pub memory_budget_bytes: u64,
    /// Memory that they take, bytes.
    pub memory_kept_bytes: u64,
    /// Pre-warmed sandboxes waiting for a restore.
    pub prewarmed_sandboxes: usize,
    /// Restores that used one since the server started.
    pub prewarmed_sandboxes_used: u64,
    /// Host errors (out of descriptors, processes, memory or cgroups) since the server started.
    pub host_errors: u64,
    /// The latest of them while it persists, or null.
    pub host_error: Option<String>,
    /// Ports of functions: what runs in the kernel for them.
    pub ingress: IngressReport,
    /// What Hearth can use on this host, by name (criu, xdp, port_steering, sk_msg, cgroup, userns, landlock …): `available`, `reason`
    /// (why not, or null), `version` (if it has one). `runtimes` has the same for each language runtime.
    #[schema(value_type = Object, example = json!({
        "landlock": {"available": true, "reason": null, "version": "7"},
        "runtimes": {"python3": {"available": true, "reason": null, "version": "3.11.2"}},
    }))]
    pub capabilities: serde_json::Map<String, Value>,
}

/// Get the node: version, uptime, host and capabilities.
#[utoipa::path(
    get,
    path = "/api/v1/node",
    tag = "node",
    operation_id = "get_node",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The node", body = Node)),
)]
pub async fn node(_: Allowed<Read>, State(app): State<App>) -> Json<Node> {
    let host = rustix::system::uname();
    let memory = HostMemory::read();
    let kept = app.engine.memory_status();
    let prewarmed_sandboxes = app.engine.prewarmed();
    let (host_errors, host_error) = app.engine.host_errors();
    Json(Node {
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: app.started.elapsed().as_secs(),
        hostname: host.nodename().to_string_lossy().into_owned(),
        kernel: host.release().to_string_lossy().into_owned(),
        cpus: crate::system::cores() as usize,
        memory_total_bytes: memory.total,
        memory_available_bytes: memory.available,
        memory_budget_bytes: kept.budget,
        memory_kept_bytes: kept.used,
        prewarmed_sandboxes: prewarmed_sandboxes.ready(),
        prewarmed_sandboxes_used: prewarmed_sandboxes.used(),
        host_errors,
        ingress: IngressReport {
            maps: app.engine.ingress().maps(),
            ..app.engine.ingress().report().clone()
        },
        host_error,
        capabilities: app.engine.capabilities(),
    })
}
