//! An experiment as the console shows it.

use std::fmt::Write as _;

use hearth_lab::job::Progress;
use hearth_web::chrome::{Badge, Tone};
use hearth_web::format::{bytes, uptime};
use hearth_web::pages::{ExperimentCard, ExperimentLive, Moment};
use jiff::Timestamp;

use crate::model::{ExperimentState, ExperimentView};

use super::experiment_table::{latencies, ns, verdict};
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
        distribution: distribution(&view.kind, &progress.latencies),
    }
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
