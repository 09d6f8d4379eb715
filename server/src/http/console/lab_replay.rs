//! The form of `/lab` for a replay: its configuration, and errors at its fields.

use hearth_lab::replay::{Changes, Network};
use hearth_web::pages::{FieldErrors, ReplayForm};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::form::Form;
use super::guard::sentence;
use super::lab_form::{confidence, decimal, stage, whole, wrong};

/// Seconds of a minute.
const MINUTE: u64 = 60;

/// Where the requests are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The history up to now.
    Last,
    /// The history between two times.
    Window,
    /// A trace of Azure's.
    Trace,
}

fn source(form: &Form) -> Source {
    match form.trimmed("replay_source").as_str() {
        "window" => Source::Window,
        "trace" => Source::Trace,
        _ => Source::Last,
    }
}

/// The configuration that a form means; what is wrong with its fields otherwise. Only the fields of its source are read.
pub(super) fn config(form: &Form) -> Result<String, FieldErrors> {
    let mut config = json!({
        "kind": "replay",
        "first": form.trimmed("first"),
        "second": form.trimmed("second"),
        "settings": settings(form)?,
        "network": network(form),
        "speed": decimal(form, "speed")?,
        "stage": stage(form, "replay_stage")?,
        "confidence": confidence(form, "replay_confidence")?,
    });
    match source(form) {
        Source::Last => {
            let minutes = match whole(form, "last")? {
                0 => return Err(wrong(form, "last", "at least 1")),
                minutes => minutes,
            };
            config["last_s"] = json!(minutes.saturating_mul(MINUTE));
        }
        Source::Window => {
            config["from"] = json!(time(form, "replay_from")?);
            if !form.trimmed("replay_to").is_empty() {
                config["to"] = json!(time(form, "replay_to")?);
            }
        }
        Source::Trace => config["trace"] = trace(form)?,
    }
    Ok(config.to_string())
}

fn settings(form: &Form) -> Result<Changes, FieldErrors> {
    let mut changes = Changes::default();
    let lines = form.lines("settings");
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let set = changes.set(line);
        set.map_err(|rule| FieldErrors::one("replay-settings", format!("{rule}.")))?;
    }
    Ok(changes)
}

fn network(form: &Form) -> Network {
    let allow = form.trimmed("allow");
    let entries = allow.split([',', ' ']).filter(|entry| !entry.is_empty());
    Network::allowing(entries.map(str::to_owned).collect())
}

/// A date and time of day in UTC, as browsers write them.
fn time(form: &Form, name: &str) -> Result<Timestamp, FieldErrors> {
    let written = form.trimmed(name).parse::<DateTime>().ok();
    let time = written.and_then(|written| written.to_zoned(TimeZone::UTC).ok());
    let time = time.map(|time| time.timestamp());
    time.ok_or_else(|| wrong(form, name, "a time, such as 2026-01-02T03:04"))
}

fn trace(form: &Form) -> Result<Value, FieldErrors> {
    let from = decimal(form, "replay_from_s")?;
    if from < 0.0 {
        return Err(wrong(form, "replay_from_s", "at least 0"));
    }
    let length = match form.trimmed("replay_for_s").is_empty() {
        true => None,
        false => Some(decimal(form, "replay_for_s")?),
    };
    if length.is_some_and(|length| length <= 0.0) {
        return Err(wrong(form, "replay_for_s", "more than 0"));
    }
    let function = form.trimmed("replay_function");
    Ok(json!({
        "text": form.lines("replay_trace"),
        "function": (!function.is_empty()).then_some(function),
        "from_s": from,
        "for_s": length,
    }))
}

/// A refused setting, at the field of the form that it is about; none if it is about none of them.
pub(super) fn at_a_field(form: &Form, setting: &str, rule: &str) -> Option<FieldErrors> {
    let field = match (setting, source(form)) {
        ("first", _) => "replay-first",
        ("second", _) => "replay-second",
        ("speed", _) => "speed",
        ("from", Source::Last) => "last",
        ("from", Source::Window) => "replay_from",
        ("trace", Source::Trace) => "replay_trace",
        // These begin with a setting's name, which is no word of a sentence.
        ("settings", _) => return Some(FieldErrors::one("replay-settings", format!("{rule}."))),
        ("network", _) => return Some(FieldErrors::one("replay-allow", format!("{rule}."))),
        _ => return None,
    };
    Some(FieldErrors::one(field, sentence(rule)))
}

/// The form as typed.
pub(super) fn typed(form: &Form) -> ReplayForm {
    ReplayForm {
        first: form.trimmed("first"),
        second: form.trimmed("second"),
        settings: form.lines("settings"),
        allow: form.trimmed("allow"),
        source: match source(form) {
            Source::Last => "last",
            Source::Window => "window",
            Source::Trace => "trace",
        }
        .to_owned(),
        last: form.trimmed("last"),
        from: form.trimmed("replay_from"),
        to: form.trimmed("replay_to"),
        trace: form.lines("replay_trace"),
        function: form.trimmed("replay_function"),
        from_s: form.trimmed("replay_from_s"),
        for_s: form.trimmed("replay_for_s"),
        speed: form.trimmed("speed"),
        stage: form.trimmed("replay_stage"),
        confidence: form.trimmed("replay_confidence"),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;
    use hearth_lab::duet::report::Stage;
    use hearth_lab::job::replay::Replay;
    use hearth_lab::stellar::experiment::TEXT_MAX;

    use super::*;
    use crate::http::console::form::{self, Experiment, Kind};
    use crate::http::console::lab_form;
    use crate::uploads::Uploads;

    const TRACE: &str = "app,func,end_timestamp,duration\r\na,f,10.5,0.5\r\na,g,20,1\r\n";

    /// The form as its page begins, except for a first version and `others`.
    async fn sent(others: &[(&str, &str)]) -> Form {
        let begins = ReplayForm::default();
        let fields = [
            ("kind", "replay"),
            ("first", "f"),
            ("second", &begins.second),
            ("settings", &begins.settings),
            ("allow", &begins.allow),
            ("replay_source", &begins.source),
            ("last", &begins.last),
            ("replay_from", &begins.from),
            ("replay_to", &begins.to),
            ("replay_trace", &begins.trace),
            ("replay_function", &begins.function),
            ("replay_from_s", &begins.from_s),
            ("replay_for_s", &begins.for_s),
            ("speed", &begins.speed),
            ("replay_stage", &begins.stage),
            ("replay_confidence", &begins.confidence),
        ];
        lab_form::sent(&fields, others).await
    }

    fn read(config: &str) -> Replay {
        serde_json::from_str(config).expect("a replay")
    }

    #[tokio::test]
    async fn the_form_begins_with_the_defaults_of_the_lab() {
        let config = config(&sent(&[]).await).expect("a replay");
        let defaults = json!({"kind": "replay", "first": "f"}).to_string();
        assert_eq!(read(&config), read(&defaults));
    }

    #[tokio::test]
    async fn only_the_fields_of_the_chosen_source_are_read() {
        let all = |source| {
            [
                ("replay_source", source),
                ("last", "5"),
                ("replay_from", "2026-01-02T03:04"),
                ("replay_to", "2026-01-02T04:05:06"),
                ("replay_trace", TRACE),
                ("replay_function", " f "),
                ("replay_from_s", "1.5"),
                ("replay_for_s", "60"),
                ("replay_stage", "total"),
                ("replay_confidence", "95"),
            ]
        };
        let made = async |source| read(&config(&sent(&all(source)).await).expect(source));
        let last = made("last").await;
        assert_eq!((last.last_s, last.from, last.to), (300, None, None));
        assert_eq!((last.stage, last.confidence), (Stage::Total, 0.95));
        assert!(last.trace.is_none());

        let window = made("window").await;
        let times = [window.from, window.to].map(|time| time.expect("a time").to_string());
        assert_eq!(times, ["2026-01-02T03:04:00Z", "2026-01-02T04:05:06Z"]);
        assert!(window.trace.is_none());

        let traced = made("trace").await;
        assert_eq!((traced.from, traced.to), (None, None));
        let trace = traced.trace.expect("a trace");
        assert_eq!(trace.text, TRACE.replace('\r', ""));
        assert_eq!(trace.function.as_deref(), Some("f"));
        assert_eq!((trace.from_s, trace.for_s), (1.5, Some(60.0)));

        let open = [
            ("replay_source", "window"),
            ("replay_from", "2026-01-02T03:04"),
        ];
        let open = read(&config(&sent(&open).await).expect("a replay"));
        assert!(open.from.is_some() && open.to.is_none());

        let kept = typed(&sent(&all("window")).await);
        assert_eq!((kept.source.as_str(), kept.last.as_str()), ("window", "5"));
        assert_eq!(kept.trace, TRACE.replace('\r', ""));
    }

    #[tokio::test]
    async fn what_is_wrong_is_said_at_its_field() {
        let window = ("replay_source", "window");
        let traced = [("replay_source", "trace"), ("replay_trace", TRACE)];
        let [trace, lines] = traced;
        let late = ("replay_from", "2026-01-02T03:04");
        let early = ("replay_to", "2026-01-02T03:03");
        for (fields, field, expected) in [
            (vec![("first", "")], "replay-first", "A function is named"),
            (vec![("second", "f@x")], "replay-second", "A version is"),
            (vec![("settings", "x")], "replay-settings", "not NAME=VALUE"),
            (
                vec![("settings", "ports=1")],
                "replay-settings",
                "\"ports\" is none of memory_mb",
            ),
            (
                vec![("allow", "internet")],
                "replay-allow",
                "not for copies",
            ),
            (
                vec![("speed", "fast")],
                "speed",
                "\"fast\" is not a number.",
            ),
            (vec![("speed", "101")], "speed", "1 to 100."),
            (vec![("last", "")], "last", "\"\" is not a whole number."),
            (vec![("last", "0")], "last", "\"0\" is not at least 1."),
            (vec![("last", "99999999999999")], "last", "Must be before"),
            (vec![window], "replay_from", "\"\" is not a time, such as"),
            (
                vec![window, late, ("replay_to", "tomorrow")],
                "replay_to",
                "\"tomorrow\" is not a time",
            ),
            (vec![window, late, early], "replay_from", "Must be before"),
            (vec![trace], "replay_trace", "Line 1: a header"),
            (
                vec![trace, lines, ("replay_function", "h")],
                "replay_trace",
                "No invocation of that function",
            ),
            (
                vec![trace, lines, ("replay_from_s", "-1")],
                "replay_from_s",
                "\"-1\" is not at least 0.",
            ),
            (
                vec![trace, lines, ("replay_for_s", "0")],
                "replay_for_s",
                "\"0\" is not more than 0.",
            ),
            (vec![("replay_stage", "")], "replay_stage", "run or total"),
            (
                vec![("replay_confidence", "49")],
                "replay_confidence",
                "from 50 to below 100",
            ),
        ] {
            let said = lab_form::refused(&sent(&fields).await);
            assert!(said.of(field).contains(expected), "{fields:?}: {said:?}");
        }
    }

    #[tokio::test]
    async fn a_trace_that_an_experiment_cannot_have_is_refused_at_its_field() {
        let refused = async |text: String| {
            let fields = [
                ("kind", "replay"),
                ("first", "f"),
                ("replay_source", "trace"),
                ("replay_trace", &text),
                ("replay_from_s", "0"),
                ("speed", "1"),
                ("replay_stage", "run"),
                ("replay_confidence", "99"),
            ];
            let part = |(name, value)| {
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            };
            let request = Request::builder()
                .method("POST")
                .header("content-type", "multipart/form-data; boundary=b")
                .body(Body::from(fields.map(part).concat() + "--b--\r\n"))
                .expect("a request");
            let form = form::read(request, &Experiment::SHAPE, &Uploads::for_tests()).await;
            lab_form::refused(&form.expect("a form"))
        };
        let said = refused("x".repeat(TEXT_MAX)).await;
        assert_eq!(said.of("replay_trace"), "An experiment has at most 1 MiB.");
        // It is read, and only its lines are wrong.
        let said = refused("x".repeat(TEXT_MAX - 1024)).await;
        assert!(said.of("replay_trace").starts_with("Line 1"), "{said:?}");
    }
}
