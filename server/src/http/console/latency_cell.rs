//! `/functions/{name}/latency/cell`: the invocations of a cell of the heat map.

use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::format::{duration_us, time_of_day};
use hearth_web::pages::LatencyCellPage;
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::http::App;
use crate::http::functions::no_function;
use crate::http::problem::Problem;
use crate::model::{InvocationFilter, InvocationId, InvocationRecord, Right};

use super::session::Viewer;
use super::view;

/// Rows of a page.
const ROWS: usize = 100;
/// Rows that are asked of the history at a time, and how often: bounds what a page costs.
const PAGE: u32 = 500;
const PAGES: usize = 6;
/// The histograms know a latency to two digits.
const SLACK_PERCENT: u64 = 2;

/// A cell: `at` in seconds since 1970, `seconds` wide, latencies in µs; and where to go on.
#[derive(Debug, Clone, Deserialize)]
pub struct Cell {
    at: i64,
    seconds: i64,
    above: u64,
    up_to: u64,
    before: Option<String>,
}

/// `GET /functions/{name}/latency/cell`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(cell): Query<Cell>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let id = app.engine.id_of(&name).ok_or_else(|| no_function(&name))?;
    let none = || Problem::not_found("such time");
    let end = cell.at.checked_add(cell.seconds).ok_or_else(none)?;
    let from = Timestamp::from_second(cell.at).map_err(|_| none())?;
    let to = Timestamp::from_second(end).map_err(|_| none())?;
    let (found, next) = find(&app, id, &cell, from, to).await?;
    let stats = app.history.stats(id, Duration::from_hours(1)).await?;
    let now = Timestamp::now();
    let page = LatencyCellPage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        times: format!("{} to {}", time_of_day(from), time_of_day(to)),
        latencies: format!("{} to {}", duration_us(cell.above), duration_us(cell.up_to)),
        usual: match (stats.total_us.p50, stats.total_us.p99) {
            (Some(p50), Some(p99)) => format!(
                "In the last hour the median was {}, the 99th percentile {}.",
                duration_us(p50),
                duration_us(p99)
            ),
            (Some(p50), None) => format!("In the last hour the median was {}.", duration_us(p50)),
            _ => String::new(),
        },
        missing: match next.is_some() {
            true => "None of the invocations that were searched so far.",
            false => {
                "The history has none of them any more: counts are kept for longer than invocations."
            }
        },
        more: next.map_or_else(String::new, |next| cell.address(&name, &next)),
        rows: found
            .into_iter()
            .map(|record| view::history_row(record, now))
            .collect(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

impl Cell {
    fn address(&self, name: &str, before: &str) -> String {
        let name = hearth_web::format::encode(name);
        let Self {
            at,
            seconds,
            above,
            up_to,
            ..
        } = self;
        format!(
            "/functions/{name}/latency/cell?at={at}&seconds={seconds}&above={above}&up_to={up_to}&before={before}"
        )
    }
}

/// Invocations that ended in a cell, and where the search stopped before it was over.
async fn find(
    app: &App,
    function: i64,
    cell: &Cell,
    from: Timestamp,
    to: Timestamp,
) -> Result<(Vec<InvocationRecord>, Option<String>), Problem> {
    let slack = |us: u64| us / 100 * SLACK_PERCENT;
    let longest = cell.up_to.saturating_add(slack(cell.up_to));
    let filter = InvocationFilter {
        min_us: Some(cell.above.saturating_sub(slack(cell.above))),
        max_us: Some(longest),
        ..InvocationFilter::default()
    };
    // What ended in the cell was admitted no sooner than this.
    let oldest = InvocationId::first_of(
        from.as_microsecond()
            .saturating_sub(i64::try_from(longest).unwrap_or(i64::MAX)),
    );
    let newest = InvocationId::first_of(to.as_microsecond().saturating_add(1_000));
    let mut before = cell.before.clone().unwrap_or_else(|| newest.to_string());
    let mut found = Vec::new();
    for _ in 0..PAGES {
        let page = app
            .history
            .list(function, &filter, Some(&before), PAGE)
            .await?;
        let page = page.ok_or_else(|| Problem::not_found("such page"))?;
        for record in page.items {
            if record.id < oldest {
                return Ok((found, None));
            }
            let ended = record.finished_at.unwrap_or(record.received_at);
            if from <= ended && ended < to {
                let id = record.id;
                found.push(record);
                if found.len() >= ROWS {
                    return Ok((found, Some(id.to_string())));
                }
            }
        }
        let Some(next) = page.next else {
            return Ok((found, None));
        };
        // A page that ends early says only how far it came.
        if Uuid::parse_str(&next).is_ok_and(|next| next < oldest.0) {
            return Ok((found, None));
        }
        before = next;
    }
    Ok((found, Some(before)))
}
