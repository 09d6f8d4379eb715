//! `/functions/{name}/gate`: the form of a function's gate.

use axum::extract::{Path, State};
use axum::response::Response;
use hearth_web::pages::GateForm;

use crate::http::App;
use crate::http::functions::gate;
use crate::http::problem::Problem;
use crate::model::{Gate, InvalidField, Right};

use super::form::{Form, Submitted};
use super::guard::go;

/// A gate as its form shows it; what it begins with where there is none.
pub(super) fn present(gate: Option<&Gate>) -> GateForm {
    let shown = gate.cloned().unwrap_or_default();
    GateForm {
        on: gate.is_some(),
        threshold: shown.threshold_percent.to_string(),
        confidence: shown.confidence_percent.to_string(),
        events: shown.events.join("\n"),
        recorded: shown.recorded.to_string(),
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
        "true" => Some(read(form, before.as_ref())?),
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
    app.lab.set_gate(&name, then).await?;
    let next = format!("/functions/{name}/settings?notice=gate");
    Ok(go(&submitted.headers, &next))
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
