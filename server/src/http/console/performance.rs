//! `/functions/{name}/performance`: how fast versions run, over time.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hearth_lab::plot::forest::percent;
use hearth_web::format::{count, duration_us, percent as share};
use hearth_web::pages::{
    ComparisonRow, Moment, PERIODS, PerformancePage, PlotView, VersionFigures,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::http::App;
use crate::http::functions::performance::{flagged, plot, window};
use crate::http::problem::Problem;
use crate::model::{
    Change, ComparedEvent, GateState, Performance, Right, VersionComparison, VersionPerformance,
};

use super::session::Viewer;
use super::view;

/// The window that is shown when none is asked for, in days.
const FIRST: u32 = 30;

/// `?days=…`
#[derive(Debug, Default, Deserialize)]
pub struct PerformanceQuery {
    #[serde(default)]
    days: String,
}

/// `GET /functions/{name}/performance`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<PerformanceQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    // Unknown values fall back to the first option.
    let days = PERIODS
        .iter()
        .map(|(days, _)| *days)
        .find(|days| days.to_string() == query.days)
        .unwrap_or(FIRST);
    let found = app.lab.performance(&name, window(days)).await?;
    let is_empty = found.points.is_empty() && found.comparisons.is_empty();
    let page = PerformancePage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        days,
        plot: (!is_empty).then(|| {
            let svg = BASE64_STANDARD.encode(plot(&found));
            let data = format!("data:image/svg+xml;base64,{svg}");
            PlotView {
                name: "Time in the handler, warm, by version".to_owned(),
                address: data.clone(),
                data,
                file: format!("{name}-versions"),
            }
        }),
        versions: found
            .versions
            .iter()
            .map(|one| figures(&found, one))
            .collect(),
        comparisons: found.comparisons.iter().flat_map(rows).collect(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn figures(found: &Performance, one: &VersionPerformance) -> VersionFigures {
    let dash = || "–".to_owned();
    let now = Timestamp::now();
    let (flag, by) = flagged(found, one.version, one.change);
    VersionFigures {
        version: one.version,
        active_since: one.activated_at.map(|at| Moment { at, now }),
        runs: count(one.runs),
        median: one.median_us.map_or_else(dash, duration_us),
        p99: one.p99_us.map_or_else(dash, duration_us),
        observed: one.change.map_or_else(dash, change),
        flag: match flag {
            Some(found) if found.estimate > 0.0 => "slower",
            Some(_) => "faster",
            None => "",
        },
        flagged_by: by,
    }
}

fn change(change: Change) -> String {
    let Change {
        estimate,
        low,
        high,
    } = change;
    format!(
        "{} ({} to {})",
        percent(estimate),
        percent(low),
        percent(high)
    )
}

/// A row for each event.
fn rows(one: &VersionComparison) -> Vec<ComparisonRow> {
    let row = |event: &ComparedEvent| ComparisonRow {
        experiment: one.experiment,
        kind: match (one.kind.as_str(), one.gate) {
            (_, Some(GateState::Passed)) => "gate, passed",
            (_, Some(GateState::Refused)) => "gate, refused",
            (_, Some(GateState::Overridden)) => "gate, overridden",
            (_, Some(GateState::Pending | GateState::NotJudged)) => "gate, not judged",
            ("replay", None) => "replay",
            (_, None) => "duet",
        },
        first: one.first,
        second: one.second,
        event: event.name.clone(),
        change: event.change.map_or_else(|| "–".to_owned(), change),
        verdict: match event.verdict.as_deref() {
            Some("faster") => "faster",
            Some("slower") => "slower",
            Some("possible") => "possible change",
            Some(_) => "no change",
            None => "not judged",
        },
        ended: Moment {
            at: one.ended_at,
            now: Timestamp::now(),
        },
        confidence: share(one.confidence),
    };
    one.events.iter().map(row).collect()
}
