//! `/functions/{name}/gate`: the form of a function's gate.

use axum::extract::{Path, State};
use axum::response::Response;
use hearth_web::pages::GateForm;

use crate::engine::EngineError;
use crate::http::App;
use crate::http::functions::gate;
use crate::http::problem::Problem;
use crate::lab::LabError;
use crate::model::{Gate, InvalidField, Right};

use super::form::{Form, Submitted};
use super::guard::go;
use super::settings;

/// A gate as its form shows it; what it begins with where there is none.
pub(super) fn present(gate: Option<&Gate>) -> GateForm {
    let shown = gate.cloned().unwrap_or_default();
    GateForm {
        on: gate.is_some(),
        threshold: shown.threshold_percent.to_string(),
        confidence: shown.confidence_percent.to_string(),
        events: shown.events.join("\n"),
        recorded: shown.recorded.to_string(),
        error: String::new(),
    }
}

/// What was typed, and what is wrong with it.
fn refused(form: &Form, error: &InvalidField) -> GateForm {
    let label = match error.field.as_str() {
        "threshold_percent" => "Slower by",
        "confidence_percent" => "Confidence",
        "recorded" => "Recorded events",
        "events" => "Saved events",
        other => other,
    };
    GateForm {
        on: form.trimmed("on") == "true",
        threshold: form.trimmed("threshold"),
        confidence: form.trimmed("confidence"),
        events: form.lines("gate_events"),
        recorded: form.trimmed("gate_recorded"),
        error: format!("{label}: {} is not valid: {}", error.value, error.rule),
    }
}

/// `POST /functions/{name}/gate`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let (viewer, form) = (&submitted.viewer, &submitted.form);
    viewer.needs(Right::Write)?;
    app.engine.get(&name)?;
    let before = app.lab.gate(&name).await?;
    let then = match form.trimmed("on").as_str() {
        "true" => match read(form, before.as_ref()) {
            Ok(gate) => Some(gate),
            Err(error) => return again(&app, &name, &submitted, &error).await,
        },
        _ => None,
    };
    if then == before {
        viewer.audit().nothing_changed();
        return Ok(go(
            &submitted.headers,
            &format!("/functions/{name}/settings"),
        ));
    }
    gate::may_change(&app, viewer.caller(), &name, then.as_ref()).await?;
    viewer.audit().detail(match &then {
        Some(gate) => gate::words(gate),
        None => "taken away".to_owned(),
    });
    match app.lab.set_gate(&name, then).await {
        Err(LabError::Engine(EngineError::Invalid(error))) => {
            return again(&app, &name, &submitted, &error).await;
        }
        set => set?,
    };
    let next = format!("/functions/{name}/settings?notice=gate");
    Ok(go(&submitted.headers, &next))
}

/// The page with the form as it was sent.
async fn again(
    app: &App,
    name: &str,
    submitted: &Submitted,
    error: &InvalidField,
) -> Result<Response, Problem> {
    let typed = refused(&submitted.form, error);
    settings::with_gate(app, &submitted.viewer, &submitted.headers, name, typed).await
}

/// What the form says; what it has no field for stays.
fn read(form: &Form, before: Option<&Gate>) -> Result<Gate, InvalidField> {
    let number = |name: &str, field: &str| {
        let text = form.trimmed(name);
        text.parse::<f64>().map_err(|_| InvalidField {
            field: field.to_owned(),
            value: format!("{:?}", text.chars().take(100).collect::<String>()),
            rule: "must be a number".to_owned(),
        })
    };
    let events = form.lines("gate_events");
    let events = events
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    Ok(Gate {
        threshold_percent: number("threshold", "threshold_percent")?,
        confidence_percent: number("confidence", "confidence_percent")?,
        events: events.map(str::to_owned).collect(),
        // Whatever is no whole number breaks the rule that follows.
        recorded: number("gate_recorded", "recorded")? as u32,
        ..before.cloned().unwrap_or_default()
    })
}
