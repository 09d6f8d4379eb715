//! An experiment as the console shows it.

use std::fmt::Write as _;

use hearth_lab::job::Progress;
use hearth_lab::overhead::layers::{LAYERS, TITLES};
use hearth_lab::plot::forest::percent;
use hearth_lab::plot::format::time;
use hearth_web::chrome::{Badge, Tone};
use hearth_web::format::{bytes, uptime};
use hearth_web::pages::{ExperimentCard, ExperimentLive, Moment, ResultTable};
use jiff::Timestamp;
use serde_json::Value;

use crate::model::{ExperimentState, ExperimentView};

use super::live_distribution::distribution;

/// Most bytes of a configuration on a page.
const CONFIG_MAX: usize = 64 << 10;

/// What a state is called.
fn badge(view: &ExperimentView) -> Badge {
    match view.state {
        ExperimentState::Queued => Badge::new("queued", Tone::Quiet),
        ExperimentState::Running if view.cancelling => Badge::new("cancelling", Tone::Busy),
        ExperimentState::Running => Badge::new("running", Tone::Busy),
        ExperimentState::Succeeded => Badge::new("done", Tone::Good),
        ExperimentState::FellShort => Badge::new("fell short", Tone::Bad),
        ExperimentState::Failed => Badge::new("failed", Tone::Bad),
        ExperimentState::Cancelled => Badge::new("cancelled", Tone::Quiet),
    }
}

/// An experiment in the list.
pub(super) fn card(view: &ExperimentView) -> ExperimentCard {
    ExperimentCard {
        id: view.id,
        kind: match view.kind.as_str() {
            "load" => "Load",
            "tail" => "Tail latency",
            "overhead" => "Overhead",
            "duet" => "Duet",
            "replay" => "Replay",
            "suite" => "Suite",
            "whatif" => "What if",
            _ => "STeLLAR",
        },
        title: view.title.clone(),
        state: badge(view),
        summary: summary(view),
        by: view.created_by.clone(),
        created: Moment {
            at: view.created_at,
            now: Timestamp::now(),
        },
    }
}

fn summary(view: &ExperimentView) -> String {
    if let Some(error) = &view.error {
        return error.clone();
    }
    if let Some(progress) = progress(view) {
        return format!("{}: {} of {}", progress.what, progress.done, progress.total);
    }
    let Some(result) = &view.result else {
        return String::new();
    };
    if let Some(benchmarks) = result["benchmarks"].as_array() {
        let lines = benchmarks.iter().take(3).map(|one| {
            let title = one["title"].as_str().unwrap_or_default();
            format!("{title}: {}", verdict(one, result))
        });
        return lines.collect::<Vec<_>>().join("; ");
    }
    if let Some(rows) = result["overhead"].as_array() {
        let lines = rows.iter().take(3).map(|row| {
            let title = row["title"].as_str().unwrap_or_default();
            format!("{title}: {}", ns(&row["total_ns"]["median"]))
        });
        return lines.collect::<Vec<_>>().join("; ");
    }
    let rows = result["rows"].as_array().into_iter().flatten().take(3);
    let lines = rows.map(|row| {
        let title = row["title"].as_str().unwrap_or_default();
        let tail = &row["latency_ns"];
        format!("{title} {} / {}", ns(&tail["median"]), ns(&tail["p99"]))
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// What its agent last said.
fn progress(view: &ExperimentView) -> Option<Progress> {
    serde_json::from_value(view.progress.clone()?).ok()
}

/// How far one is.
pub(super) fn live(view: &ExperimentView) -> ExperimentLive {
    let progress = progress(view).unwrap_or_default();
    ExperimentLive {
        id: view.id,
        state: badge(view),
        is_open: !view.state.is_over(),
        cancelling: view.cancelling,
        left: progress.left_s.map_or_else(String::new, |left| {
            format!("about {}", uptime(left.max(0.0) as u64))
        }),
        done: progress.done,
        total: progress.total.max(progress.done).max(1),
        what: progress.what,
        error: view.error.clone().unwrap_or_default(),
        measured: latencies(&progress.rows, false),
        distribution: distribution(&progress.latencies),
    }
}

/// What came of it.
pub(super) fn result(view: &ExperimentView) -> ResultTable {
    let Some(result) = &view.result else {
        return ResultTable::default();
    };
    if let Some(rows) = result["overhead"].as_array() {
        return overhead(rows);
    }
    match result["benchmarks"].as_array() {
        Some(benchmarks) => comparisons(benchmarks, result),
        None => latencies(result["rows"].as_array().map_or(&[], Vec::as_slice), true),
    }
}

/// Rows with the latency of something. `whole` has what is known only at the end.
fn latencies(rows: &[Value], whole: bool) -> ResultTable {
    let is_table = rows.iter().any(|row| !row["ratios"].is_null());
    let mut headings = vec![
        "", "Samples", "p50", "p90", "p99", "p99.9", "Maximum", "TMR",
    ];
    if whole {
        headings.push("Failed");
    }
    if is_table {
        headings.extend(["MR", "TR", "Cold", "TMR in the paper"]);
    }
    let row = |row: &Value| {
        let tail = &row["latency_ns"];
        let mut cells = vec![tail["count"].to_string()];
        cells.extend(["median", "p90", "p99", "p999", "max"].map(|field| ns(&tail[field])));
        cells.push(ratio(&tail["tmr"]));
        if whole {
            cells.push(row["failed"].to_string());
        }
        if is_table {
            cells.push(ratio(&row["ratios"]["mr"]));
            cells.push(ratio(&row["ratios"]["tr"]));
            let cold = row["cold_share"].as_f64();
            cells.push(
                cold.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            );
            cells.push(in_the_paper(&row["paper_tmr"]));
        }
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        (text("title"), text("means"), cells)
    };
    ResultTable {
        headings,
        rows: rows.iter().map(row).collect(),
    }
}

/// By cloud: `AWS 1.7`.
fn in_the_paper(clouds: &Value) -> String {
    let clouds = clouds.as_object().into_iter().flatten();
    let clouds: Vec<String> = clouds
        .map(|(cloud, tmr)| format!("{cloud} {tmr}"))
        .collect();
    match clouds.is_empty() {
        true => "–".to_owned(),
        false => clouds.join(", "),
    }
}

/// What each layer has of its own in the mean, and its share of the whole.
fn overhead(rows: &[Value]) -> ResultTable {
    let mut headings = vec!["", "Samples"];
    headings.extend(TITLES);
    headings.extend(["Mean", "p50", "p99", "Failed"]);
    let row = |row: &Value| {
        let layers = row["layers"].as_array().into_iter().flatten();
        let mut cells = vec![row["samples"].to_string()];
        cells.extend(layers.map(|layer| {
            let share = layer["share"].as_f64().unwrap_or_default();
            format!("{} ({:.0} %)", ns(&layer["own"]["mean_ns"]), share * 100.0)
        }));
        let client = &row["layers"][LAYERS - 1]["through"];
        cells.extend(["mean_ns", "p50_ns", "p99_ns"].map(|field| ns(&client[field])));
        cells.push(row["uncounted"]["failed"].to_string());
        let title = row["title"].as_str().unwrap_or_default().to_owned();
        (title, String::new(), cells)
    };
    ResultTable {
        headings,
        rows: rows.iter().map(row).collect(),
    }
}

fn comparisons(benchmarks: &[Value], result: &Value) -> ResultTable {
    let row = |one: &Value| {
        let change = &one["change"];
        let interval =
            |interval: &Value| match (interval["low"].as_f64(), interval["high"].as_f64()) {
                (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
                _ => "–".to_owned(),
            };
        let estimate = change["estimate"].as_f64();
        let cells = vec![
            one["trials"].to_string(),
            ns(&one["first_ns"]),
            ns(&one["second_ns"]),
            estimate.map_or_else(|| "–".to_owned(), percent),
            interval(&change["percentile"]),
            interval(&change["bca"]),
            verdict(one, result),
        ];
        let title = one["title"].as_str().unwrap_or_default().to_owned();
        (
            title,
            one["error"].as_str().unwrap_or_default().to_owned(),
            cells,
        )
    };
    let what = match result["suite"].is_object() {
        true => "Benchmark",
        false => "Event",
    };
    ResultTable {
        headings: vec![
            what, "Trials", "First", "Second", "Change", "Interval", "BCa", "Verdict",
        ],
        rows: benchmarks.iter().map(row).collect(),
    }
}

pub(super) fn verdict(one: &Value, result: &Value) -> String {
    // Where the first version differs from itself, what differs from it says nothing.
    if result["control_changes"].as_u64() > Some(0) {
        return "–".to_owned();
    }
    let word = match one["verdict"].as_str() {
        Some("faster") => "faster",
        Some("slower") => "slower",
        Some("possible") => "possible change",
        Some(_) => "no change",
        None => "left out",
    };
    match one["doubtful"].as_bool() {
        Some(true) => format!("{word}, perhaps noise"),
        _ => word.to_owned(),
    }
}

pub(super) fn ns(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), time)
}

fn ratio(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// A configuration as it is shown: it may have megabytes of events.
pub(super) fn cut(id: i64, mut config: String) -> String {
    if config.len() > CONFIG_MAX {
        let all = config.len();
        config.truncate(config.floor_char_boundary(CONFIG_MAX));
        let left = bytes((all - config.len()) as u64);
        let _ = write!(
            config,
            "\n… {left} more: GET /api/v1/experiments/{id} has all of it"
        );
    }
    config
}
