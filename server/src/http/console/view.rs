//! From the model's types to the console's view models.

use axum::http::{HeaderMap, header};
use hearth_web::chrome::{Badge, Tone};
use hearth_web::pages::{
    DecisionRow, ErrorView, FunctionHead, HistoryRow, ImageRow, InvocationDetails, LogRow, Moment,
    PayloadView, Percentile, RecentStats, StartRow,
};
use hearth_web::stage_bar::{StageBar, StageTimes};
use jiff::Timestamp;
use serde_json::Value;

use crate::history::RECENT_MINUTES;
use crate::http::App;
use crate::http::answer;
use crate::http::edge::is_https;
use crate::model::{
    DecisionCounts, FunctionError, FunctionState, FunctionView, ImageView, InvocationPayloads,
    InvocationRecord, LogLine, LogStream, Note, Payload, Revision, Runtime, Stages, StartKind,
    Status, Trigger, samples_needed,
};
use crate::store::StoreError;

/// Display name of a runtime.
pub fn runtime(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Python3 => "Python",
        Runtime::Node => "Node.js",
        Runtime::Native => "Native",
        Runtime::Provided => "Provided",
    }
}

/// A function's state.
pub fn state(state: FunctionState) -> Badge {
    match state {
        FunctionState::Ready => Badge::new("ready", Tone::Good),
        FunctionState::Starting => Badge::new("starting", Tone::Busy),
        FunctionState::Failed => Badge::new("failed", Tone::Bad),
        FunctionState::Asleep => Badge::new("asleep", Tone::Quiet),
    }
}

/// How an invocation ended.
pub fn status(status: Status) -> Badge {
    match status {
        Status::Queued => Badge::new("queued", Tone::Busy),
        Status::Running => Badge::new("running", Tone::Busy),
        Status::Succeeded => Badge::new("succeeded", Tone::Good),
        Status::Failed => Badge::new("failed", Tone::Bad),
        Status::TimedOut => Badge::new("timed out", Tone::Bad),
        Status::Crashed => Badge::new("crashed", Tone::Bad),
        Status::OutOfMemory => Badge::new("out of memory", Tone::Bad),
        Status::Cancelled => Badge::new("cancelled", Tone::Quiet),
        Status::Dead => Badge::new("dead", Tone::Bad),
    }
}

/// The API's name of a trigger.
pub fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Invoke => "invoke",
        Trigger::Http => "http",
        Trigger::Async => "async",
        Trigger::Schedule => "schedule",
        Trigger::Udp => "udp",
        Trigger::Tcp => "tcp",
        Trigger::Chain => "chain",
        Trigger::Coap => "coap",
        Trigger::Mqtt => "mqtt",
    }
}

/// The API's name of a start kind.
pub fn start_kind(start: StartKind) -> &'static str {
    answer::start_kind(start)
}

/// The drawn stages.
pub fn stages(stages: &Stages) -> StageBar {
    StageBar::new(StageTimes {
        queue: stages.queue,
        start: stages.start,
        send: stages.send,
        run: stages.run,
        recv: stages.recv,
        total: stages.total,
    })
}

/// An exception.
pub fn error(error: FunctionError) -> ErrorView {
    ErrorView {
        error_type: error.error_type,
        message: error.error_message,
        stack_trace: error.stack_trace,
    }
}

/// What a version's author should know of it.
pub fn messages(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| note.message.clone()).collect()
}

/// Log lines.
pub fn logs(lines: Vec<LogLine>) -> Vec<LogRow> {
    lines.into_iter().map(log).collect()
}

/// A log line.
pub fn log(line: LogLine) -> LogRow {
    LogRow {
        time: line.time,
        stream: match line.stream {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
        },
        text: line.text,
    }
}

/// The last five minutes of a function; nothing when it was deleted meanwhile.
pub async fn recent(app: &App, name: &str) -> Result<RecentStats, StoreError> {
    let Some(id) = app.engine.id_of(name) else {
        return Ok(RecentStats::default());
    };
    Ok(recent_of(app, id))
}

/// The last five minutes of what the history knows by this id.
pub fn recent_of(app: &App, id: i64) -> RecentStats {
    let minute = Timestamp::now().as_second().div_euclid(60);
    let recent = app.history.recent_of(id, minute - RECENT_MINUTES);
    RecentStats {
        count: recent.count,
        errors: recent.errors,
        p50: percentile(500, recent.count, recent.p50_us),
        p99: percentile(990, recent.count, recent.p99_us),
    }
}

/// A percentile (in thousandths) of this many samples.
pub fn percentile(per_mille: u64, samples: u64, us: Option<u64>) -> Percentile {
    Percentile {
        us,
        needs: samples_needed(per_mille),
        has: samples,
    }
}

/// The head of a function's pages.
pub async fn head(app: &App, function: &FunctionView) -> Result<FunctionHead, StoreError> {
    Ok(FunctionHead {
        name: function.name.clone(),
        runtime: runtime(function.runtime),
        version: function.active_version,
        revision: Revision::of_function(function.id, function.active_version).to_string(),
        state: state(function.state),
        state_reason: function.state_reason.clone(),
        notes: messages(&function.notes),
        idle: function.instances.idle,
        busy: function.instances.busy,
        starting: function.instances.starting,
        queued: function.queued,
        recent: recent(app, &function.name).await?,
    })
}

/// What the scheduler decided.
pub fn decisions(counts: &DecisionCounts) -> Vec<DecisionRow> {
    let row = |(name, count, meaning)| DecisionRow {
        name,
        count,
        meaning,
    };
    counts.entries().map(row).to_vec()
}

/// How instances start, and why.
pub fn starts(by: StartKind, reason: Option<&String>) -> StartRow {
    StartRow {
        by: crate::http::answer::start_kind(by).to_owned(),
        reason: reason.cloned(),
    }
}

/// The template's image on disk.
pub fn image(image: &ImageView) -> ImageRow {
    ImageRow {
        bytes: image.bytes,
        restores: image.restores,
        failures: image.restore_failures,
        note: image.note.clone(),
    }
}

/// A row of the history.
pub fn history_row(record: InvocationRecord, now: Timestamp) -> HistoryRow {
    HistoryRow {
        id: record.id.to_string(),
        received: Moment {
            at: record.received_at,
            now,
        },
        status: status(record.status),
        start_kind: record.start.map_or("–", start_kind),
        version: record.version,
        trigger: trigger(record.trigger),
        total_us: record.stages_us.total,
        run_us: record.stages_us.run,
        request_bytes: record.request_bytes,
        response_bytes: record.response_bytes,
    }
}

/// All of an invocation. `base` is this server's address.
pub fn invocation(
    record: InvocationRecord,
    payloads: &InvocationPayloads,
    base: &str,
    now: Timestamp,
) -> InvocationDetails {
    const NOT_KEPT: &str = "Not stored. Each second, only the first few invocations of a function are stored, or \
                            none if retention is 0.";
    let shown = |payload: &Option<Payload>, bytes, without: &str| match payload {
        Some(kept) => PayloadView::kept(kept.text.as_deref(), kept.truncated, bytes),
        None => PayloadView::none(without),
    };
    let no_result = match record.status {
        Status::Succeeded => NOT_KEPT,
        _ => "None: the invocation did not succeed.",
    };
    InvocationDetails {
        event: shown(&payloads.event, record.request_bytes, NOT_KEPT),
        result: shown(&payloads.result, record.response_bytes, no_result),
        curl: format!(
            "curl {base}/api/v1/invocations/{} -H \"Authorization: Bearer $HEARTH_TOKEN\"",
            record.id
        ),
        id: record.id.to_string(),
        function: record.function,
        version: record.version,
        trigger: trigger(record.trigger),
        status: status(record.status),
        start_kind: record.start.map(start_kind),
        received: Moment {
            at: record.received_at,
            now,
        },
        finished: record.finished_at.map(|at| Moment { at, now }),
        stages: stages(&record.stages_us),
        request_bytes: record.request_bytes,
        response_bytes: record.response_bytes,
        attempts: record.attempts,
        error: record.error.map(error),
        logs: logs(record.logs),
    }
}

/// Why this node lacks the capability at `path` of what `GET /api/v1/node` says; empty when it has it.
pub fn unavailable(app: &App, path: &[&str]) -> String {
    let capabilities = Value::Object(app.engine.capabilities());
    let found = path
        .iter()
        .try_fold(&capabilities, |value, name| value.get(name));
    let field = |name| found.and_then(|capability| capability.get(name));
    match field("available").and_then(Value::as_bool) {
        Some(true) => String::new(),
        _ => field("reason")
            .and_then(Value::as_str)
            .unwrap_or("not available on this host")
            .to_owned(),
    }
}

/// `http://host:port` as the browser sees this server. A `Host` that could break out of the shell command it is shown
/// in is replaced.
pub fn base_url(headers: &HeaderMap) -> String {
    let scheme = if is_https(headers) { "https" } else { "http" };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .filter(|host| {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b))
        })
        .unwrap_or("127.0.0.1:8080");
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn urls_name_the_host_the_browser_asked() {
        let with = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            base_url(&headers)
        };
        assert_eq!(with("hearth.example:8443"), "http://hearth.example:8443");
        assert_eq!(with("[::1]:8080"), "http://[::1]:8080");
        assert_eq!(with("x' ; rm -rf ~"), "http://127.0.0.1:8080");
    }
}
