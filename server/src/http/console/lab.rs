//! `/lab` and `/lab/{id}`: the lab's experiments.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_lab::overhead::workloads::{RUNTIMES, WORKLOADS};
use hearth_lab::table::factors::FACTORS;
use hearth_web::pages::{
    ExperimentCards, ExperimentLivePartial, ExperimentPage, ExperimentsPartial, FieldErrors,
    LabForm, LabPage,
};
use hearth_web::respond;
use serde::Deserialize;

use crate::http::App;
use crate::http::experiments::create::check_settings;
use crate::http::experiments::id_of;
use crate::http::experiments::read::download;
use crate::http::problem::Problem;
use crate::lab::LabError;
use crate::model::{ExperimentDetail, ExperimentState, Right};

use super::experiment_files::{files, plots, shown};
use super::experiment_remarks::remarks;
use super::experiment_table::result;
use super::experiment_view::{card, cut, live};
use super::form::{Experiment, Submitted};
use super::guard::{go, is_htmx};
use super::lab_form::Refusal;
use super::session::Viewer;
use super::view;
use super::{lab_form, lab_suite};

/// Experiments of one page.
const PAGE: u32 = 30;
/// Most plots on a page.
const PLOTS_MAX: usize = 24;

/// Which part is refreshed, where the list begins, what the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct LabQuery {
    #[serde(default)]
    part: String,
    #[serde(default)]
    notice: String,
    before: Option<i64>,
}

/// `GET /lab`: the page, or for htmx its list.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<LabQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let before = query.before.unwrap_or(i64::MAX);
    if is_htmx(&headers) && query.part == "list" {
        let list = list(&app, &headers, before).await?;
        return Ok(respond::partial(&ExperimentsPartial { list }));
    }
    let mut page = view(&app, &viewer, &headers, before).await?;
    page.chrome.notice = match query.notice.as_str() {
        "created" => Some("Experiment created.".to_owned()),
        "deleted" => Some("Experiment deleted.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

async fn view(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    before: i64,
) -> Result<LabPage, Problem> {
    let functions = app.engine.list().into_iter();
    Ok(LabPage {
        chrome: viewer.chrome(),
        list: list(app, headers, before).await?,
        form: LabForm::default(),
        factors: FACTORS
            .iter()
            .map(|factor| (factor.name, factor.means, !factor.is_large))
            .collect(),
        workloads: WORKLOADS.iter().map(|one| (one.name, one.means)).collect(),
        runtimes: RUNTIMES.iter().map(|one| one.name).collect(),
        functions: functions.map(|function| function.name).collect(),
        tools: lab_suite::tools(),
        processors: lab_suite::parallel_max(),
        errors: FieldErrors::default(),
        problem: String::new(),
    })
}

async fn list(app: &App, headers: &HeaderMap, before: i64) -> Result<ExperimentCards, Problem> {
    let mut found = app.lab.list(before, PAGE + 1).await?;
    let has_older = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    let last = found.last().filter(|_| has_older);
    Ok(ExperimentCards {
        before: (before < i64::MAX).then_some(before),
        older: last.map_or_else(String::new, |last| format!("/lab?before={}", last.id)),
        has_agent: app.lab.has_agent(),
        waits: found.iter().any(|one| one.state == ExperimentState::Queued),
        server: view::base_url(headers),
        cards: found.iter().map(card).collect(),
    })
}

/// `POST /lab`.
pub async fn create(
    State(app): State<App>,
    submitted: Submitted<Experiment>,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Write)?;
    let config = match lab_form::config(&submitted.form) {
        Ok(config) => config,
        Err(refusal) => return refused(&app, &submitted, refusal).await,
    };
    let config = config.as_bytes();
    let made = async {
        check_settings(&app, config)?;
        app.lab.create(config, viewer.caller().name()).await
    };
    match made.await {
        Ok(made) => {
            viewer.audit().target(made.view.id.to_string());
            viewer.audit().detail(made.view.title);
            Ok(go(&submitted.headers, &format!("/lab/{}", made.view.id)))
        }
        Err(error) => match lab_form::refusal(&submitted.form, &error) {
            Some(refusal) => refused(&app, &submitted, refusal).await,
            None => Err(error.into()),
        },
    }
}

async fn refused(
    app: &App,
    submitted: &Submitted<Experiment>,
    refusal: Refusal,
) -> Result<Response, Problem> {
    let mut page = view(app, &submitted.viewer, &submitted.headers, i64::MAX).await?;
    page.form = lab_form::typed(&submitted.form);
    match refusal {
        Refusal::Problem(problem) => page.problem = problem,
        Refusal::Fields(errors) => page.errors = errors,
    }
    Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// `GET /lab/{id}`: the page, or for htmx its progress.
pub async fn one(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(id): Path<String>,
    Query(query): Query<LabQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let found = app.lab.get(id_of(&id)?).await?;
    let live = live(&found.view);
    if is_htmx(&headers) && query.part == "live" {
        if !live.is_open {
            // The page has more now.
            return Ok(go(&headers, &format!("/lab/{}", found.view.id)));
        }
        return Ok(respond::partial(&ExperimentLivePartial { live }));
    }
    let mut left = plots(&found.files);
    let first = left.drain(..left.len().min(PLOTS_MAX)).collect::<Vec<_>>();
    let (mut shown_plots, mut plots_left) = (Vec::new(), left.len());
    for plot in first {
        match shown(&app, found.view.id, plot).await? {
            Some(plot) => shown_plots.push(plot),
            None => plots_left += 1,
        }
    }
    let mut page = ExperimentPage {
        chrome: viewer.chrome(),
        card: card(&found.view),
        live,
        result: result(&found.view),
        remarks: remarks(&found.view),
        plots: shown_plots,
        plots_left,
        files: files(&found),
        others: others(&app, &found).await?,
        config: cut(
            found.view.id,
            serde_json::to_string_pretty(&found.config).unwrap_or_default(),
        ),
    };
    page.chrome.notice = (query.notice == "cancelled").then(|| "Experiment cancelled.".to_owned());
    Ok(respond::page(StatusCode::OK, &page))
}

/// The newest other experiments that have a result, if it has one: those of its kind first.
async fn others(app: &App, found: &ExperimentDetail) -> Result<Vec<(i64, String)>, Problem> {
    if found.view.result.is_none() {
        return Ok(Vec::new());
    }
    Ok(app.lab.others(&found.view, PAGE).await?)
}

/// `GET /lab/{id}/files/{path}`.
pub async fn file(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    download(&app, &id, &path).await
}

/// `POST /lab/{id}/cancel`. One that is over by now needs no cancel.
pub async fn cancel(
    State(app): State<App>,
    Path(id): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    let number = id_of(&id)?;
    let next = match app.lab.cancel(number).await {
        Ok(_) => format!("/lab/{number}?notice=cancelled"),
        Err(LabError::State(..)) => format!("/lab/{number}"),
        Err(error) => return Err(error.into()),
    };
    Ok(go(&submitted.headers, &next))
}

/// `POST /lab/{id}/delete`.
pub async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    app.lab.delete(id_of(&id)?).await?;
    Ok(go(&submitted.headers, "/lab?notice=deleted"))
}
