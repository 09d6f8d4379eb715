//! `GET /api/v1/functions/{name}/what-if`.

use axum::Json;
use axum::extract::{RawQuery, State};
use hearth_lab::plot::curve;

use super::stats::window;
use super::{id_of, no_function};
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::lab::WhatIfAsked;
use crate::model::{InvalidField, WhatIf};

/// The window when none is named.
pub const DEFAULT_WINDOW: &str = "1d";

/// Run recorded calls through other settings of the scheduler.
///
/// Simulates the function's calls of the window, the newest 50,000 at most, with each combination of the settings: how many would have been
/// cold, and how much memory the instances would have had. Lists are numbers separated by commas.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/what-if",
    tag = "history",
    operation_id = "what_if",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("window" = Option<String>, Query, pattern = "^[0-9]+[smhd]$", description = "60s to 7d, 1d by default"),
        ("idle_timeout_s" = Option<String>, Query, pattern = "^[0-9]{1,7}(,[0-9]{1,7})*$", description = "Seconds after which an idle instance ends, 1 to 86400; 1 to 3600 in ten steps by default"),
        ("min_instances" = Option<String>, Query, pattern = "^[0-9]{1,7}(,[0-9]{1,7})*$", description = "Instances that are kept, 0 to 1000; 0, 1, 2 by default"),
        ("max_concurrency" = Option<String>, Query, pattern = "^[0-9]{1,7}(,[0-9]{1,7})*$", description = "Most instances, 1 to 1000; as now by default"),
        ("memory_mib" = Option<String>, Query, pattern = "^[0-9]{1,7}(,[0-9]{1,7})*$", description = "Memory of all instances together, which limits their number; no limit by default"),
    ),
    responses((status = 200, description = "What would have been", body = WhatIf)),
    extensions(("x-errors" = json!(["not_found", "invalid_field", "too_many_requests"]))),
)]
pub async fn what_if(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<WhatIf>, Problem> {
    id_of(&app, &name)?;
    let names = [
        "window",
        "idle_timeout_s",
        "min_instances",
        "max_concurrency",
        "memory_mib",
    ];
    let query = Query::parse(query.as_deref(), &names)?;
    let asked = WhatIfAsked {
        window: window(query.text("window").unwrap_or(DEFAULT_WINDOW))?,
        idle_timeouts: list(&query, "idle_timeout_s", 1, 86_400)?,
        min_instances: list(&query, "min_instances", 0, 1_000)?,
        max_concurrency: list(&query, "max_concurrency", 1, 1_000)?,
        memory_mib: list(&query, "memory_mib", 1, 1 << 20)?,
    };
    match app.lab.what_if(&app.history, &name, asked).await? {
        Some(found) => Ok(Json(found)),
        None if app.engine.id_of(&name).is_none() => Err(no_function(&name)),
        None => Err(Problem::not_found(format!(
            "invocation of {name:?} in that window"
        ))),
    }
}

/// Numbers that are separated by commas; none if the parameter is absent.
fn list(query: &Query, name: &str, least: u32, most: u32) -> Result<Vec<u32>, InvalidField> {
    let Some(text) = query.text(name) else {
        return Ok(Vec::new());
    };
    let numbers = text.split(',').map(|part| part.trim().parse().ok());
    let numbers: Option<Vec<u32>> = numbers
        .map(|number| number.filter(|number| (least..=most).contains(number)))
        .collect();
    numbers.ok_or_else(|| {
        let rule = format!("must be whole numbers from {least} to {most}, separated by commas");
        invalid(name, &text.into(), rule)
    })
}

/// Cold starts against memory, with the settings of now as a dot.
pub fn plot(found: &WhatIf) -> String {
    let json = serde_json::to_value(found).unwrap_or_default();
    curve::what_if(&json)
}
