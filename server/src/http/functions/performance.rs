//! `GET /api/v1/functions/{name}/performance`.

use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use hearth_lab::plot::versions::{Line, Mark, Point, draw};

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::model::{Change, Performance};

/// Days when none are named.
pub const DEFAULT_DAYS: u32 = 30;
/// Longest window.
const DAYS_MAX: u32 = 365;

/// Get how fast a function's versions run, over time.
///
/// Median and 99th percentile of the handler's time in warm instances, for each version and in sixty parts of the window, from the
/// history; and what duets, gates and replays said of two versions.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/performance",
    tag = "history",
    operation_id = "function_performance",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("days" = Option<u32>, Query, minimum = 1, maximum = 365, description = "Length of the window; 30 by default"),
    ),
    responses((status = 200, description = "Versions, points and comparisons", body = Performance)),
    extensions(("x-errors" = json!(["not_found", "invalid_field"]))),
)]
pub async fn performance(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Performance>, Problem> {
    id_of(&app, &name)?;
    let query = Query::parse(query.as_deref(), &["days"])?;
    let days = query.number("days", 1, DAYS_MAX, DEFAULT_DAYS)?;
    Ok(Json(app.lab.performance(&name, window(days)).await?))
}

/// So many days.
pub fn window(days: u32) -> Duration {
    Duration::from_hours(24 * u64::from(days))
}

/// The chart: medians and 99th percentiles over time, where versions became active, and which changes were found.
pub fn plot(found: &Performance) -> String {
    let second = |at: jiff::Timestamp| at.as_millisecond() as f64 / 1e3;
    let mut lines: Vec<Line> = Vec::new();
    for point in &found.points {
        let (at, ns) = (second(point.at) + found.part_s as f64 / 2.0, 1e3);
        let point_of = |us: u64| Point {
            at,
            ns: us as f64 * ns,
        };
        let index = lines.iter().position(|line| line.version == point.version);
        let index = index.unwrap_or_else(|| {
            lines.push(Line {
                version: point.version,
                medians: Vec::new(),
                tails: Vec::new(),
            });
            lines.len() - 1
        });
        lines[index].medians.push(point_of(point.median_us));
        lines[index].tails.extend(point.p99_us.map(point_of));
    }
    let marks = found.versions.iter().filter_map(|one| {
        let at = one.activated_at.filter(|at| *at >= found.from)?;
        let (change, by) = flagged(found, one.version, one.change);
        Some(Mark {
            at: second(at),
            version: one.version,
            change: change.map(|change| (change.estimate, change.low, change.high)),
            by,
        })
    });
    let title = format!("{}: time in the handler, warm, by version", found.function);
    let window = (second(found.from), second(found.to));
    draw(&title, window, &lines, &marks.collect::<Vec<_>>())
}

/// The change to a version that is flagged: the largest that a duet has found, or else the one that was observed.
pub fn flagged(
    found: &Performance,
    version: u32,
    observed: Option<Change>,
) -> (Option<Change>, &'static str) {
    let judged = found
        .comparisons
        .iter()
        .find(|comparison| comparison.second == version);
    let Some(judged) = judged else {
        return (observed.filter(Change::is_found), "observed");
    };
    let changes = judged.events.iter().filter(|event| {
        let verdict = event.verdict.as_deref();
        matches!(verdict, Some("faster" | "slower"))
    });
    let changes = changes.filter_map(|event| event.change);
    let largest = changes.max_by(|a, b| a.estimate.abs().total_cmp(&b.estimate.abs()));
    (largest, "duet")
}
