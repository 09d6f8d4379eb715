//! `/secrets`: values that functions use.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{FieldErrors, Moment, SecretRow, SecretsPage};
use hearth_web::respond;
use jiff::Timestamp;

use crate::engine::EngineError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::http::secrets;
use crate::http::spec::{self, Fields, Input, invalid};
use crate::model::{InvalidField, Right, SecretChange, SecretView};

use super::form::{Form, Submitted};
use super::guard::{go, sentence};
use super::notice::Notice;
use super::session::Viewer;

/// `GET /secrets`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut page = view(&app, &viewer);
    page.chrome.notice = match query.key() {
        "added" => Some("Secret added.".to_owned()),
        "replaced" => Some("Value replaced.".to_owned()),
        "deleted" => Some("Secret deleted.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /secrets`.
pub async fn create(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Write)?;
    let name = submitted.form.trimmed("name");
    viewer.audit().target(name.as_str());
    let fresh = match app.engine.secrets().iter().any(|known| known.name == name) {
        true => Err(invalid(
            "name",
            &name.as_str().into(),
            "is taken; replace its value in the list",
        )
        .into()),
        false => put(&app, &submitted, &name).await,
    };
    match fresh {
        Ok(_) => Ok(go(&submitted.headers, "/secrets?notice=added")),
        Err(EngineError::Invalid(error)) => {
            let mut page = view(&app, viewer);
            page.errors = FieldErrors::one(&error.field, sentence(&error.rule));
            page.name = name;
            Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /secrets/{name}/replace`.
pub async fn replace(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Write)?;
    if !app.engine.secrets().iter().any(|known| known.name == name) {
        return Err(Problem::not_found("secret of this name"));
    }
    match put(&app, &submitted, &name).await {
        Ok(change) if change.not_restarted.is_empty() => {
            Ok(go(&submitted.headers, "/secrets?notice=replaced"))
        }
        Ok(change) => {
            let mut page = view(&app, viewer);
            let failed = change.not_restarted.iter();
            let failed: Vec<String> = failed
                .map(|not| format!("{} ({})", not.function, not.reason))
                .collect();
            page.problem = format!(
                "The value was replaced. These functions did not start with it and run with the former one: {}",
                failed.join("; ")
            );
            Ok(respond::page(StatusCode::OK, &page))
        }
        Err(EngineError::Invalid(error)) => {
            let mut page = view(&app, viewer);
            page.problem = format!("{name}: {}", sentence(&error.rule));
            Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /secrets/{name}/delete`.
pub async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Write)?;
    match app.engine.delete_secret(&name).await {
        Ok(()) => Ok(go(&submitted.headers, "/secrets?notice=deleted")),
        Err(error @ EngineError::SecretInUse { .. }) => {
            let mut page = view(&app, viewer);
            page.problem = sentence(&error.to_string());
            Ok(respond::page(StatusCode::CONFLICT, &page))
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives a secret the value of the form, as the API would.
async fn put(app: &App, submitted: &Submitted, name: &str) -> Result<SecretChange, EngineError> {
    let value = typed(&submitted.form)?;
    spec::secret_name(name)?;
    let (is_new, change) = app
        .engine
        .put_secret(name, spec::secret_value(value)?)
        .await?;
    secrets::tell(submitted.viewer.audit(), is_new, &change);
    Ok(change)
}

fn typed(form: &Form) -> Result<Fields, InvalidField> {
    let mut fields = Fields::default();
    fields.add("value".to_owned(), Input::Text(form.lines("value")))?;
    Ok(fields)
}

fn view(app: &App, viewer: &Viewer) -> SecretsPage {
    let now = Timestamp::now();
    SecretsPage {
        chrome: viewer.chrome(),
        secrets: app
            .engine
            .secrets()
            .into_iter()
            .map(|secret| row(secret, now))
            .collect(),
        name: String::new(),
        errors: FieldErrors::default(),
        problem: String::new(),
    }
}

fn row(secret: SecretView, now: Timestamp) -> SecretRow {
    let moment = |at| Moment { at, now };
    SecretRow {
        name: secret.name,
        functions: secret.functions,
        created: moment(secret.created_at),
        updated: moment(secret.updated_at),
        used: secret.last_used_at.map(moment),
    }
}
