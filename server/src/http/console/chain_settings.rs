//! `/chains/{name}/settings` and `/new-chain`: a chain's settings as lines of text, with the API's rules.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{ChainForm, ChainSettingsPage, FieldErrors};
use hearth_web::respond;

use crate::catalog::CatalogError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::http::spec::{create_chain, replace_chain};
use crate::model::Right;
use crate::model::chain::Spec;

use super::chain_lines::{fields, present, typed};
use super::form::Submitted;
use super::guard::{go, sentence};
use super::session::Viewer;
use super::{meanwhile, ports_form};

/// `GET /new-chain`.
pub async fn new(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let form = ChainForm {
        transport: "auto".to_owned(),
        block_kb: "64".to_owned(),
        blocks: "1024".to_owned(),
        timeout_ms: "30000".to_owned(),
        cpu: "shared".to_owned(),
        ..ChainForm::default()
    };
    let page = page_of(&app, &viewer, String::new(), String::new(), form);
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /new-chain`.
pub async fn create(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    let form = typed(&submitted.form);
    submitted.viewer.audit().target(form.name.as_str());
    let made = async {
        let spec = create_chain(fields(&form, true)?)?;
        Ok(app.catalog.create(spec).await?.name)
    };
    match made.await {
        Ok(name) => {
            let next = format!("/chains/{name}?notice=created");
            Ok(go(&submitted.headers, &next))
        }
        Err(error) => again(&app, &submitted, String::new(), form, error),
    }
}

/// `GET /chains/{name}/settings`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let chain = app.catalog.get(&name)?;
    let revision = chain.revision().to_string();
    let page = page_of(&app, &viewer, name, revision, present(&chain.settings));
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /chains/{name}/settings`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    app.catalog.get(&name)?;
    let form = typed(&submitted.form);
    let meant = meanwhile::meant(&submitted.form);
    let changed = async {
        let spec: Spec = replace_chain(&name, fields(&form, false)?)?;
        let (_, view) = app.catalog.replace(spec, meant).await?;
        Ok(view.active_version)
    };
    match changed.await {
        Ok(version) => {
            let audit = submitted.viewer.audit();
            audit.detail(format!("version {version}"));
            let next = format!("/chains/{name}?notice=changed");
            Ok(go(&submitted.headers, &next))
        }
        Err(error) => again(&app, &submitted, name, form, error),
    }
}

/// The form as it was typed, with what is wrong about it.
fn again(
    app: &App,
    submitted: &Submitted,
    name: String,
    form: ChainForm,
    error: CatalogError,
) -> Result<Response, Problem> {
    let mut revision = submitted.form.trimmed("revision");
    let (mut errors, mut problem) = (FieldErrors::default(), String::new());
    match error {
        CatalogError::Invalid(wrong) => {
            let wrong = ports_form::at_input(wrong);
            let place = match wrong.field.split_once(['.', '[']) {
                // Which of the lines it is.
                Some(_) => format!("{}: {}", wrong.field, wrong.rule),
                None => wrong.rule.clone(),
            };
            let slot = wrong.field.split(['.', '[']).next().unwrap_or_default();
            errors = FieldErrors::one(slot, sentence(&place));
        }
        CatalogError::AlreadyExists(_) => {
            errors = FieldErrors::one("name", "There is a chain of this name.".to_owned());
        }
        CatalogError::Changed(changed) => {
            "The chain has changed since this page was loaded. Save again to replace its settings anyway."
                .clone_into(&mut problem);
            revision = changed.present.to_string();
        }
        CatalogError::NotStarted(_) | CatalogError::HostExhausted(_) => {
            problem = sentence(&error.to_string());
        }
        other => return Err(other.into()),
    }
    let mut page = page_of(app, &submitted.viewer, name, revision, form);
    page.errors = errors;
    page.problem = problem;
    Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

fn page_of(
    app: &App,
    viewer: &Viewer,
    name: String,
    revision: String,
    form: ChainForm,
) -> ChainSettingsPage {
    let functions = app.engine.list().into_iter();
    ChainSettingsPage {
        chrome: viewer.chrome(),
        name,
        revision,
        form,
        errors: FieldErrors::default(),
        problem: String::new(),
        functions: functions.map(|function| function.name).collect(),
        limits_reason: ports_form::limits_reason(app),
    }
}
