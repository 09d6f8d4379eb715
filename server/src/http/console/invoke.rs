//! The test panel: invokes the function and shows the result, the stages and the output.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Redirect, Response};
use bytes::Bytes;
use hearth_web::chrome::{Badge, Tone};
use hearth_web::json::JsonText;
use hearth_web::pages::{HttpForm, InvokeOutcome, InvokeOutcomePartial};
use hearth_web::respond;

use crate::engine::{Invocation, InvokeError, InvokeReply, Receipt};
use crate::http::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::model::{InvocationRecord, Right, StartKind, Trigger};

use super::form::{self, Submitted};
use super::function::{self, FunctionQuery};
use super::guard::{is_htmx, sentence};
use super::session::Viewer;
use super::view;

/// How often, and at which interval, to poll the history for a record that is not written yet. It has the output shown
/// with the result.
const RECORD_ATTEMPTS: u32 = 20;
const RECORD_WAIT: Duration = Duration::from_millis(10);

/// `GET /functions/{name}/invoke`: the address of an answered form, reloaded.
pub async fn back(Path(name): Path<String>) -> Redirect {
    Redirect::to(&format!("/functions/{name}"))
}

/// `POST /functions/{name}/invoke`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::Event>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Invoke)?;
    let event = form.lines("event");
    let outcome = match body::check_json(event.as_bytes()) {
        Err(problem) => refused(&name, &problem),
        Ok(()) => run(&app, &name, event.clone()).await?,
    };
    let answered = Answered {
        event: Some(event),
        http: None,
        outcome,
    };
    answer(&app, &viewer, &name, &headers, answered).await
}

/// The outcome of a call and its input.
pub struct Answered {
    /// The event, when it was called with one.
    pub event: Option<String>,
    /// The request, when it was called by its URL.
    pub http: Option<HttpForm>,
    /// What came of it.
    pub outcome: InvokeOutcome,
}

/// Shows it: in the page that asked, or as a page of its own.
pub async fn answer(
    app: &App,
    viewer: &Viewer,
    name: &str,
    headers: &HeaderMap,
    answered: Answered,
) -> Result<Response, Problem> {
    if is_htmx(headers) {
        let outcome = answered.outcome;
        let mut response = respond::partial(&InvokeOutcomePartial { outcome });
        // The history and the head listen to it.
        response
            .headers_mut()
            .insert("hx-trigger", HeaderValue::from_static("invoked"));
        return Ok(response);
    }
    viewer.needs(Right::Read)?;
    let function = app.engine.get(name)?;
    let wanted = FunctionQuery::default();
    function::show(app, viewer, &function, wanted, headers, Some(answered)).await
}

async fn run(app: &App, name: &str, event: String) -> Result<InvokeOutcome, Problem> {
    let (receipt, answer) = app
        .engine
        .invoke(Invocation::new(name, Trigger::Invoke, Bytes::from(event)))
        .await;
    if let Err(error @ InvokeError::NotFound(_)) = answer {
        return Err(error.into());
    }
    let record = record(app, &receipt).await?;
    Ok(outcome(name, &receipt, Some(answer), record))
}

/// The finished record with its log lines.
pub async fn record(app: &App, receipt: &Receipt) -> Result<Option<InvocationRecord>, Problem> {
    if receipt.version == 0 {
        return Ok(None);
    }
    for _ in 0..RECORD_ATTEMPTS {
        if let Some(record) = app.history.get(receipt.id).await? {
            return Ok(Some(record));
        }
        tokio::time::sleep(RECORD_WAIT).await;
    }
    Ok(None)
}

/// The view of a response, or of a successful call without one.
pub fn outcome(
    name: &str,
    receipt: &Receipt,
    answer: Option<Result<InvokeReply, InvokeError>>,
    record: Option<InvocationRecord>,
) -> InvokeOutcome {
    let admitted = receipt.version != 0;
    let id = receipt.id.to_string();
    let mut headers = Vec::new();
    if admitted {
        let mut push = |name: &str, value| headers.push((name.to_owned(), value));
        push("X-Hearth-Invocation-Id", id.clone());
        if let Some(start) = receipt.start {
            push("X-Hearth-Start", view::start_kind(start).to_owned());
        }
        push("X-Hearth-Version", receipt.version.to_string());
    }
    let stages = record.as_ref().map_or(&receipt.stages, |r| &r.stages_us);
    let mut outcome = InvokeOutcome {
        http_status: StatusCode::OK.as_u16(),
        badge: Badge::new("succeeded", Tone::Good),
        result: None,
        image: None,
        message: String::new(),
        error: None,
        // Refused before it became an invocation: there is nothing to look at.
        invocation: record.is_some().then_some(id),
        function: name.to_owned(),
        headers,
        start_kind: receipt.start.map(view::start_kind),
        started: receipt
            .start
            .map(|start| started(start, stages.start))
            .unwrap_or_default(),
        stages: admitted.then(|| view::stages(stages)),
        logs: Vec::new(),
    };
    if let Some(record) = record {
        outcome.logs = view::logs(record.logs);
    }
    match answer {
        None => {}
        Some(Ok(InvokeReply::Json(bytes))) => outcome.result = Some(JsonText::new(&bytes)),
        // Only the HTTP trigger is answered so.
        Some(Ok(InvokeReply::Http { status, .. })) => {
            outcome.message = format!("The function responded with HTTP status {status}.");
        }
        Some(Err(InvokeError::Function(error))) => {
            outcome.http_status = StatusCode::BAD_GATEWAY.as_u16();
            outcome.badge = Badge::new("function_error", Tone::Bad);
            outcome.error = Some(view::error(error));
        }
        Some(Err(error)) => {
            let problem = Problem::from(error);
            outcome.http_status = problem.code().status().as_u16();
            outcome.badge = Badge::new(problem.code().name(), Tone::Bad);
            outcome.message = sentence(problem.detail());
        }
    }
    outcome
}

/// What having an instance cost.
fn started(start: StartKind, start_us: u64) -> String {
    let time = hearth_web::format::duration_us(start_us);
    match start {
        StartKind::Warm => "on a warm instance".to_owned(),
        StartKind::Fork => format!("started by fork in {time}"),
        StartKind::Restore => format!("restored from an image in {time}"),
        StartKind::Boot => format!("booted in {time}"),
    }
}

/// What cannot be called with: it never became an invocation.
pub fn refused(name: &str, problem: &Problem) -> InvokeOutcome {
    InvokeOutcome {
        http_status: problem.code().status().as_u16(),
        badge: Badge::new(problem.code().name(), Tone::Bad),
        result: None,
        image: None,
        message: sentence(&problem.detail().replace("the body is", "the event is")),
        error: None,
        invocation: None,
        function: name.to_owned(),
        headers: Vec::new(),
        start_kind: None,
        started: String::new(),
        stages: None,
        logs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FunctionError, InvocationId, Stages, StartKind};

    fn receipt(version: u32) -> Receipt {
        Receipt {
            id: InvocationId::new(),
            version,
            start: Some(StartKind::Fork),
            stages: Stages {
                run: 10,
                total: 12,
                ..Stages::default()
            },
        }
    }

    #[test]
    fn an_answer_is_shown_with_its_headers() {
        let receipt = receipt(3);
        let reply = Ok(InvokeReply::Json(Bytes::from_static(b"{\"a\":1}")));
        let shown = outcome("hello", &receipt, Some(reply), None);
        assert_eq!(shown.http_status, 200);
        assert_eq!(shown.result.expect("a result").shown, "{\n  \"a\": 1\n}");
        assert_eq!(shown.headers[0].1, receipt.id.to_string());
        assert_eq!(shown.headers[1], ("X-Hearth-Start".into(), "fork".into()));
        assert_eq!(shown.started, "started by fork in 0 µs");
        assert!(shown.stages.is_some());
        assert!(shown.invocation.is_none());
    }

    #[test]
    fn errors_carry_the_apis_status_and_code() {
        let raised = InvokeError::Function(FunctionError {
            error_type: "ValueError".into(),
            error_message: "no".into(),
            stack_trace: Vec::new(),
        });
        let shown = outcome("f", &receipt(1), Some(Err(raised)), None);
        assert_eq!(
            (shown.http_status, shown.badge.label),
            (502, "function_error")
        );
        assert_eq!(shown.error.expect("an error").error_type, "ValueError");

        let shown = outcome("f", &receipt(1), Some(Err(InvokeError::Timeout(50))), None);
        assert_eq!(
            (shown.http_status, shown.badge.label),
            (504, "function_timeout")
        );
        assert!(
            shown
                .message
                .starts_with("The handler did not answer within 50 ms")
        );
    }

    #[test]
    fn what_was_never_admitted_has_nothing_to_look_at() {
        let shown = outcome("f", &receipt(0), Some(Err(InvokeError::ShuttingDown)), None);
        assert!(shown.headers.is_empty() && shown.stages.is_none() && shown.invocation.is_none());
        let problem = body::check_json(b"{").expect_err("not JSON");
        let shown = refused("f", &problem);
        assert_eq!(shown.http_status, 400);
        assert!(
            shown.message.starts_with("The event is not valid JSON"),
            "{}",
            shown.message
        );
    }
}
