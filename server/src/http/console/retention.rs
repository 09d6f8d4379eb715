//! `/retention`: retention settings, the space used and the progress of removal.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{
    AmountView, FieldErrors, Moment, PassView, RetentionForm, RetentionPage, RetentionPreview,
    RetentionPreviewPartial, RetentionState, RetentionStatePartial,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::http::App;
use crate::http::functions::to_the_end;
use crate::http::problem::Problem;
use crate::http::retention::changed;
use crate::http::spec::{Fields, Input};
use crate::model::{InvalidField, Meant, Retention, Revision, Right};
use crate::retention::{Amount, RetentionStatus, would_remove};

use super::form::{Form, Submitted};
use super::guard::{go, is_htmx};
use super::outcome::Failure;
use super::session::Viewer;

/// What the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct RetentionNotice {
    #[serde(default)]
    notice: String,
}

/// `GET /retention`: the page, or for htmx the current usage.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(notice): Query<RetentionNotice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let status = app.retention.status().await?;
    if is_htmx(&headers) {
        let state = state(&status);
        return Ok(respond::partial(&RetentionStatePartial { state }));
    }
    let mut chrome = viewer.chrome();
    chrome.notice = match notice.notice.as_str() {
        "saved" => Some("Saved. Entries past the new limits are being removed.".to_owned()),
        "unchanged" => Some("Nothing was changed.".to_owned()),
        _ => None,
    };
    let page = RetentionPage {
        chrome,
        form: form_of(&status.settings),
        loaded: to_text(&status.settings),
        revision: status.settings.revision().to_string(),
        problem: None,
        state: state(&status),
        preview: RetentionPreview::default(),
        errors: FieldErrors::default(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /retention/preview`: what a change would remove at once. Changes nothing.
pub async fn preview(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    let status = app.retention.status().await?;
    let Ok((settings, names)) = read(&submitted.form, &status.settings) else {
        return Ok(respond::partial(&RetentionPreviewPartial {
            preview: RetentionPreview::default(),
        }));
    };
    let removed = would_remove(&status, &settings, Timestamp::now());
    let preview = RetentionPreview {
        changed: !names.is_empty(),
        invocations: removed.invocations,
        logs: removed.logs,
    };
    Ok(respond::partial(&RetentionPreviewPartial { preview }))
}

/// `POST /retention`.
pub async fn submit(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Admin)?;
    let change = app.retention.change().await;
    let present = change.present();
    // A form that does not say what it showed means what there is.
    let loaded: Retention = serde_json::from_str(form.text("loaded")).unwrap_or(present);
    let known = Some(form.trimmed("revision")).filter(|known| !known.is_empty());
    let meant = known.map_or(Meant::Any, |known| Meant::only(Revision::named(&known)));
    let failure = match (
        read_changes(&form, &loaded, &present),
        meant.check(present.revision()),
    ) {
        (Err(error), _) => Failure::field(error, RetentionForm::FIELDS),
        (Ok((_, names)), _) if names.is_empty() => {
            viewer.audit().nothing_changed();
            return Ok(go(&headers, "/retention?notice=unchanged"));
        }
        (Ok(_), Err(_)) => overtaken(&loaded, &present),
        (Ok((settings, names)), Ok(())) => {
            viewer.audit().detail(names.join(", "));
            to_the_end(async move { change.save(settings).await }).await?;
            return Ok(go(&headers, "/retention?notice=saved"));
        }
    };
    if is_htmx(&headers) {
        return Ok(failure.partial(RetentionForm::FIELDS));
    }
    let page = RetentionPage {
        chrome: viewer.chrome(),
        form: typed(&form),
        loaded: to_text(&loaded),
        revision: failure.revision.unwrap_or_else(|| form.trimmed("revision")),
        state: state(&app.retention.status().await?),
        preview: RetentionPreview::default(),
        errors: failure.errors,
        problem: failure.problem,
    };
    Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// The current settings with the user's changes applied.
fn read_changes(
    form: &Form,
    loaded: &Retention,
    present: &Retention,
) -> Result<(Retention, Vec<&'static str>), InvalidField> {
    let shown = form_of(loaded);
    let mut fields = Fields::default();
    for name in RetentionForm::FIELDS {
        let typed = form.trimmed(name);
        if typed != shown.number(name) {
            fields.add((*name).to_owned(), Input::Text(typed))?;
        }
    }
    changed(fields, present)
}

/// Describes the changes that somebody else made after the form was rendered.
fn overtaken(loaded: &Retention, present: &Retention) -> Failure {
    let (before, after) = (form_of(loaded), form_of(present));
    let described: Vec<String> = RetentionForm::FIELDS
        .iter()
        .map(|name| (name, before.number(name), after.number(name)))
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name} from {before} to {after}"))
        .collect();
    let changes = match described.is_empty() {
        true => "They are the same as before.".to_owned(),
        false => format!("Changed: {}.", described.join(", ")),
    };
    let title =
        "Somebody else changed these settings in the meantime. Nothing was saved.".to_owned();
    Failure::overtaken(title, &changes, present.revision().to_string())
}

/// For the form to carry along.
fn to_text(settings: &Retention) -> String {
    // Plain values with names: they always serialise.
    serde_json::to_string(settings).unwrap_or_default()
}

fn read(form: &Form, now: &Retention) -> Result<(Retention, Vec<&'static str>), InvalidField> {
    let mut fields = Fields::default();
    for name in RetentionForm::FIELDS {
        fields.add((*name).to_owned(), Input::Text(form.trimmed(name)))?;
    }
    changed(fields, now)
}

fn form_of(settings: &Retention) -> RetentionForm {
    RetentionForm {
        invocations_days: settings.invocations_days.to_string(),
        invocations_mib: settings.invocations_mib.to_string(),
        logs_days: settings.logs_days.to_string(),
        logs_mib: settings.logs_mib.to_string(),
        statistics_days: settings.statistics_days.to_string(),
        audit_days: settings.audit_days.to_string(),
        event_bytes: settings.event_bytes.to_string(),
        result_bytes: settings.result_bytes.to_string(),
    }
}

fn typed(form: &Form) -> RetentionForm {
    RetentionForm {
        invocations_days: form.trimmed("invocations_days"),
        invocations_mib: form.trimmed("invocations_mib"),
        logs_days: form.trimmed("logs_days"),
        logs_mib: form.trimmed("logs_mib"),
        statistics_days: form.trimmed("statistics_days"),
        audit_days: form.trimmed("audit_days"),
        event_bytes: form.trimmed("event_bytes"),
        result_bytes: form.trimmed("result_bytes"),
    }
}

fn state(status: &RetentionStatus) -> RetentionState {
    let now = Timestamp::now();
    let moment = |at: Option<Timestamp>| at.map(|at| Moment { at, now });
    let amount = |amount: &Amount, mib: u32| AmountView {
        count: amount.count,
        bytes: amount.bytes,
        budget_bytes: u64::from(mib) << 20,
        oldest: moment(amount.oldest),
    };
    let settings = &status.settings;
    RetentionState {
        invocations: amount(&status.invocations, settings.invocations_mib),
        logs: amount(&status.logs, settings.logs_mib),
        statistics_oldest: moment(status.statistics_oldest),
        file_bytes: status.database.bytes,
        free_bytes: status.database.free_bytes,
        shrinks: status.database.shrinks,
        pass: PassView {
            running: status.pass.running,
            stage: status.pass.stage,
            removed: status.pass.removed,
            expected: status.pass.expected,
            finished: moment(status.pass.finished_at),
            error: status.pass.error.clone(),
        },
    }
}
