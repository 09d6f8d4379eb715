//! `/functions/{name}/settings`: change settings, delete.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hearth_web::pages::{DeleteState, GateForm, SettingsForm, SettingsPage};
use hearth_web::respond;

use crate::catalog::CatalogError;
use crate::engine::EngineError;
use crate::http::App;
use crate::http::functions::gate;
use crate::http::problem::Problem;
use crate::lab::Deployed;
use crate::model::{FunctionView, Meant, Revision, Right, VersionView};

use super::form::{Form, Submitted};
use super::function::{FunctionNotice, notice};
use super::guard::{go, is_htmx};
use super::meanwhile::{self, Meanwhile};
use super::outcome::Failure;
use super::session::Viewer;
use super::settings_form::{present, read, typed};
use super::{commands, gate_form, ports_form, view};

/// `GET /functions/{name}/settings`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FunctionNotice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let form = present(&function);
    let shown = Shown {
        notice: notice(&query.notice, &function),
        ..Shown::default()
    };
    show(&app, &viewer, &headers, &function, form, shown).await
}

/// `POST /functions/{name}/settings`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = app.engine.get(&name)?;
    let filled_in = FilledIn::on(&app, &form, &function).await?;
    let failure = match read(&form, &filled_in.shown) {
        Err(error) => Failure::field(error, SettingsForm::FIELDS),
        Ok(None) => {
            viewer.audit().nothing_changed();
            return Ok(go(&headers, &with_notice(&name, "unchanged")));
        }
        Ok(Some(patch)) => {
            viewer.audit().detail(patch.fields().join(", "));
            let meant = Meant::only(filled_in.known.clone());
            let deployed = app.lab.deploy(&name, patch, None, meant, viewer.caller());
            let deployed = deployed.await;
            if let Ok(deployed) = &deployed {
                viewer.audit().detail(gate::detail(deployed));
            }
            let done = match deployed {
                Ok(Deployed::Active { .. }) => Ok(with_notice(&name, "saved")),
                Ok(Deployed::Gated(_)) => Ok(format!("/functions/{name}/versions?notice=gated")),
                Err(error) => Err(gate::engine_error(error)?),
            };
            match done {
                Ok(next) => return Ok(go(&headers, &next)),
                Err(EngineError::Changed(_)) => overtaken(&app, &name, &filled_in.known).await?,
                Err(error) => Failure::engine(error, SettingsForm::FIELDS, &viewer.request_id)?,
            }
        }
    };
    if is_htmx(&headers) {
        return Ok(failure.partial(SettingsForm::FIELDS));
    }
    let typed = typed(&form, &function);
    let shown = Shown {
        based_on: Some((filled_in.shown.active_version, filled_in.known)),
        failure,
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..Shown::default()
    };
    show(&app, &viewer, &headers, &function, typed, shown).await
}

/// What a form was filled in on.
struct FilledIn {
    /// The function as the form showed it: only what differs from this was changed by hand.
    shown: FunctionView,
    /// The revision that the client knows.
    known: Revision,
}

impl FilledIn {
    /// As the form says. One that says nothing means what there is.
    async fn on(app: &App, form: &Form, function: &FunctionView) -> Result<Self, Problem> {
        let known = meanwhile::drawn_from(form).unwrap_or_else(|| revision(function));
        let loaded = form.trimmed("loaded").parse().ok();
        let loaded = loaded
            .or(known.version_of(function.id))
            .unwrap_or(function.active_version);
        let mut shown = function.clone();
        if loaded != function.active_version {
            let versions = app.engine.versions(&function.name).await?;
            let version = versions
                .into_iter()
                .find(|version| version.version == loaded);
            shown = version.map_or(shown.clone(), |version| as_of(shown, version));
        }
        Ok(Self { shown, known })
    }
}

/// The function as it was with this version.
fn as_of(function: FunctionView, version: VersionView) -> FunctionView {
    FunctionView {
        active_version: version.version,
        handler: version.handler,
        memory_mb: version.memory_mb,
        timeout_ms: version.timeout_ms,
        max_concurrency: version.max_concurrency,
        idle_timeout_s: version.idle_timeout_s,
        min_instances: version.min_instances,
        keep_warm: version.keep_warm,
        template_idle_timeout_s: version.template_idle_timeout_s,
        start: version.start,
        body: version.body,
        network: version.network,
        public: version.public,
        triggers: version.triggers,
        port_limits: version.port_limits,
        cors: version.cors,
        secrets: version.secrets,
        env: version.env,
        ..function
    }
}

/// The function has changed since `known`: describes the changes.
async fn overtaken(app: &App, name: &str, known: &Revision) -> Result<Failure, Problem> {
    let now = app.engine.get(name)?;
    let Meanwhile { title, changes } = Meanwhile::since(app, known, &now).await?;
    let title = format!("{title} Nothing was saved.");
    Ok(Failure::overtaken(
        title,
        &changes,
        revision(&now).to_string(),
    ))
}

fn revision(function: &FunctionView) -> Revision {
    Revision::of_function(function.id, function.active_version)
}

/// The page again, with what was done.
fn with_notice(name: &str, notice: &str) -> String {
    format!("/functions/{name}/settings?notice={notice}")
}

/// `POST /functions/{name}/delete`.
pub async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let mut shown = form.trimmed("revision");
    let error = if form.trimmed("confirm") == name {
        let deleted = app.catalog.delete_function(&name, meanwhile::meant(&form));
        match deleted.await {
            Ok(()) => return Ok(go(&headers, "/functions?notice=deleted")),
            Err(CatalogError::Engine(EngineError::Changed(changed))) => {
                let now = app.engine.get(&name)?;
                let known = Revision::named(&shown);
                let Meanwhile { title, changes } = Meanwhile::since(&app, &known, &now).await?;
                shown = changed.present.to_string();
                format!(
                    "{title} Nothing was deleted. {changes} Press Delete again to delete it anyway."
                )
            }
            Err(error @ CatalogError::FunctionInUse { .. }) => {
                format!("Nothing was deleted: {error}.")
            }
            Err(error) => return Err(error.into()),
        }
    } else {
        "Type the function's name to confirm.".to_owned()
    };
    if is_htmx(&headers) {
        let state = DeleteState {
            delete_error: error,
            delete_revision: shown,
        };
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Ok((status, respond::partial(&state)).into_response());
    }
    let function = app.engine.get(&name)?;
    let form = present(&function);
    let shown = Shown {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        delete_error: error,
        ..Shown::default()
    };
    show(&app, &viewer, &headers, &function, form, shown).await
}

/// What the page says about the last attempt.
#[derive(Default)]
struct Shown {
    /// The version that the form shows and the state that it is based on, where that is not the present one.
    based_on: Option<(u32, Revision)>,
    failure: Failure,
    status: StatusCode,
    delete_error: String,
    /// The gate's form, where it is not what there is.
    gate: Option<GateForm>,
    notice: Option<String>,
}

/// The page with a gate that was not set.
pub(super) async fn with_gate(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    name: &str,
    gate: GateForm,
) -> Result<Response, Problem> {
    let function = app.engine.get(name)?;
    let shown = Shown {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        gate: Some(gate),
        ..Shown::default()
    };
    show(app, viewer, headers, &function, present(&function), shown).await
}

async fn show(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    function: &FunctionView,
    form: SettingsForm,
    shown: Shown,
) -> Result<Response, Problem> {
    let mut chrome = viewer.chrome();
    chrome.notice = shown.notice;
    let (loaded, known) = shown
        .based_on
        .unwrap_or_else(|| (function.active_version, revision(function)));
    let page = SettingsPage {
        loaded,
        revision: shown.failure.revision.unwrap_or_else(|| known.to_string()),
        chrome,
        commands: commands::settings(headers, function),
        head: view::head(app, function).await?,
        form,
        outbound_reason: view::unavailable(app, &["network_outbound"]),
        limits_reason: ports_form::limits_reason(app),
        gate: match shown.gate {
            Some(gate) => gate,
            None => gate_form::present(app.lab.gate(&function.name).await?.as_ref()),
        },
        errors: shown.failure.errors,
        problem: shown.failure.problem,
        delete_error: shown.delete_error,
    };
    Ok(respond::page(shown.status, &page))
}
