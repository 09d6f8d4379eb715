//! `POST /api/v1/functions/{name}/versions/{n}/activate`.

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::gate;
use super::{id_of, version_number};
use crate::http::App;
use crate::http::auth::{Allowed, Write, check};
use crate::http::etag;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::{FunctionView, Right, VersionView};

/// Activate an existing version (roll back or forward) without failing a request.
///
/// With a gate, a version that was never active is compared with the active one first, and the answer is 202. `override_gate=true`, for which
/// the right admin is needed, activates it all the same; the audit log keeps the figures.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/versions/{n}/activate",
    tag = "functions",
    operation_id = "activate_version",
    security(("bearer" = ["write"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("n" = u32, Path, minimum = 1, description = "Version number"),
        ("override_gate" = Option<bool>, Query, description = "Whatever the function's gate says"),
    ),
    responses(
        (status = 200, description = "The function with this version active", body = FunctionView),
        (status = 202, description = "The version, which is compared before it becomes active", body = VersionView,
            headers(("Location" = String, description = "The experiment"))),
    ),
    extensions(("x-tagged" = json!("change")), ("x-errors" = json!(["not_found", "function_is_copy", "invalid_field", "import_failed", "host_exhausted", "shutting_down", "too_many_requests", "payload_too_large"]))),
)]
pub async fn activate(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    id_of(&app, &name)?;
    let version = version_number(&name, &version)?;
    let overrides = Query::parse(query.as_deref(), &["override_gate"])?.flag("override_gate")?;
    if overrides {
        check(&asked.caller, Right::Admin)?;
    }
    let (meant, by) = (etag::meant(&headers), &asked.caller);
    let deployed = app.lab.activate(&name, version, meant, by, overrides);
    let deployed = deployed.await?;
    asked.audit.detail(gate::detail(&deployed));
    gate::answer(&app, &headers, deployed)
}
