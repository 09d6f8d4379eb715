//! `/`: the state of the node and its functions.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::format;
use hearth_web::live::Values;
use hearth_web::pages::{
    CapabilityRow, FailureRow, FailuresPartial, Moment, OverviewPage, SlowRow, SlowestPartial,
};
use hearth_web::respond::{self, fragment};
use hearth_web::sparkline::Sparkline;
use jiff::Timestamp;
use serde_json::Value;

use crate::http::App;
use crate::http::problem::Problem;
use crate::live::{Board, Sample};
use crate::model::{FunctionState, Right};

use super::functions::DeletedNotice;
use super::session::Viewer;
use super::view;

/// The states in the order they are shown in, with the key of their count and their value in the list's filter.
const STATES: [(FunctionState, &str, &str); 4] = [
    (FunctionState::Ready, "state-ready", "ready"),
    (FunctionState::Starting, "state-starting", "starting"),
    (FunctionState::Asleep, "state-asleep", "asleep"),
    (FunctionState::Failed, "state-failed", "failed"),
];

/// Rows of the slowest functions and of the last failures.
const ROWS: usize = 5;

/// `GET /`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(notice): Query<DeletedNotice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut chrome = viewer.chrome();
    chrome.notice = notice.in_words();
    let (sample, board) = (app.live.sample(), app.live.board_now());
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let page = OverviewPage {
        chrome,
        is_empty: board.rows.is_empty(),
        live: values(&app, &sample, &board),
        requests: Sparkline::new(&sample.seconds),
        states: STATES
            .iter()
            .map(|(state, key, filter)| (view::state(*state), *key, *filter))
            .collect(),
        capabilities: capabilities(&Value::Object(app.engine.capabilities())),
        host: format!(
            "{}, Linux {}",
            text(system.nodename()),
            text(system.release())
        ),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// What changes on the page.
pub fn values(app: &App, sample: &Sample, board: &Board) -> Values {
    let mut values = Values::default();
    values.set("rate", format::rate(sample.rate.requests));
    values.set("error-rate", format::rate(sample.rate.errors));
    values.set_count("invocations", sample.lifetime.0);
    let most = sample.seconds.iter().map(|(requests, _)| *requests).max();
    values.set("most", format::count(most.unwrap_or(0).into()));
    let instances = board.rows.iter().map(|row| row.summary.instances);
    let (idle, busy) = instances.fold((0_u64, 0_u64), |(idle, busy), instances| {
        (
            idle + u64::from(instances.idle),
            busy + u64::from(instances.busy),
        )
    });
    values.set(
        "instances",
        format!("{} busy, {} idle", format::count(busy), format::count(idle)),
    );
    for (state, key, _) in STATES {
        let count = board.rows.iter().filter(|row| row.summary.state == state);
        values.set(key, format::count(count.count() as u64));
    }
    host(app, sample, &mut values);
    values.set_html(
        "slowest",
        fragment(&SlowestPartial {
            rows: slowest(board),
        }),
    );
    values.set_html(
        "failures",
        fragment(&FailuresPartial {
            rows: failures(app),
        }),
    );
    values
}

fn host(app: &App, sample: &Sample, values: &mut Values) {
    let host = &sample.host;
    values.set_bar("cpu", host.cpu.unwrap_or(0.0), 1.0);
    let cpus = format::plural(host.cpus as u64, "processor");
    values.set(
        "cpu",
        match host.cpu {
            Some(cpu) => format!("{} of {cpus}", format::percent(cpu)),
            None => cpus,
        },
    );
    let used = host.memory_total.saturating_sub(host.memory_available);
    part(values, "memory", used, host.memory_total);
    let used = host.disk_total.saturating_sub(host.disk_available);
    part(values, "disk", used, host.disk_total);
    let kept = app.engine.memory_status();
    part(values, "kept", kept.used, kept.budget);
    let [one, five, fifteen] = host.load;
    values.set("load", format!("{one:.2}, {five:.2}, {fifteen:.2}"));
    values.set("resident", format::bytes(host.resident));
    values.set("uptime", format::uptime(app.started.elapsed().as_secs()));
}

fn part(values: &mut Values, key: &str, part: u64, whole: u64) {
    values.set(
        key,
        format!("{} of {}", format::bytes(part), format::bytes(whole)),
    );
    values.set_bar(key, part as f64, whole as f64);
}

/// The functions with the largest 99th percentile over the last five minutes.
fn slowest(board: &Board) -> Vec<SlowRow> {
    let mut rows: Vec<_> = board
        .rows
        .iter()
        .filter(|row| row.recent.count > 0)
        .collect();
    // Those with too few calls for a p99 come last, by their median.
    rows.sort_by_key(|row| std::cmp::Reverse((row.recent.p99_us, row.recent.p50_us)));
    rows.into_iter()
        .take(ROWS)
        .map(|row| SlowRow {
            name: row.summary.name.clone(),
            p50: view::percentile(500, row.recent.count, row.recent.p50_us),
            p99: view::percentile(990, row.recent.count, row.recent.p99_us),
            count: format::count(row.recent.count),
        })
        .collect()
}

/// The last failures of functions that are still there. Their times are relative to themselves: the page's script keeps
/// them fresh, and a fragment that says the same is not sent again.
fn failures(app: &App) -> Vec<FailureRow> {
    let now = Timestamp::now();
    app.history
        .failures()
        .into_iter()
        .filter(|failure| app.engine.id_of(&failure.function).is_some())
        .take(ROWS)
        .map(|failure| FailureRow {
            id: failure.id.to_string(),
            function: failure.function,
            status: view::status(failure.status),
            error_type: failure.error_type.unwrap_or_default(),
            at: Moment {
                at: failure.at,
                now,
            },
        })
        .collect()
}

/// What `GET /api/v1/node` says of the host's abilities, runtimes and their parts included, those that are missing last.
fn capabilities(all: &Value) -> Vec<CapabilityRow> {
    let mut rows = Vec::new();
    for (name, capability) in all.as_object().into_iter().flatten() {
        collect(name, capability, &mut rows);
    }
    rows.sort_by_key(|row| !row.available);
    rows
}

fn collect(name: &str, value: &Value, rows: &mut Vec<CapabilityRow>) {
    let Some(fields) = value.as_object() else {
        return;
    };
    let text = |field: &str| {
        let text = value.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let available = value.get("available").and_then(Value::as_bool);
    if let Some(available) = available {
        rows.push(CapabilityRow {
            name: name.to_owned(),
            available,
            version: text("version"),
            reason: text("reason"),
        });
    }
    for (part, value) in fields {
        let name = match available {
            Some(_) => format!("{name} {part}"),
            None => part.clone(),
        };
        collect(&name, value, rows);
    }
}

#[cfg(test)]
mod tests {
    use hearth_web::pages::STATE_FILTERS;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_state_has_a_filter() {
        for (state, _, filter) in STATES {
            assert_eq!(view::state(state).label, filter);
            assert!(STATE_FILTERS.iter().any(|(value, _)| *value == filter));
        }
        assert_eq!(STATES.len() + 1, STATE_FILTERS.len());
    }

    #[test]
    fn capabilities_are_flat_and_the_missing_ones_last() {
        let rows = capabilities(&json!({
            "criu": {"available": false, "reason": "not found", "version": null},
            "userns": {"available": true, "reason": null, "version": null},
            "runtimes": {"node": {"available": true, "reason": null, "version": "20",
                "fork": {"available": false, "reason": "no"}}},
        }));
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["node", "userns", "criu", "node fork"]);
        assert_eq!(rows[0].version, "20");
        assert_eq!(rows[2].reason, "not found");
    }
}
