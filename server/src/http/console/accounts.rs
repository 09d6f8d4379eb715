//! `/users`: lists and adds users.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{AccountsPage, FieldErrors, MadePassword, Moment, NewPerson, PersonRow};
use hearth_web::respond;
use jiff::Timestamp;

use crate::accounts::rules;
use crate::http::App;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::spec::{Fields, Input};
use crate::http::users::{self, NewUser};
use crate::model::{InvalidField, Right, Role, UserView};

use super::confirm;
use super::form::{Form, Submitted};
use super::guard::{go, sentence};
use super::notice::Notice;
use super::session::Viewer;

/// `GET /users`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let mut page = view(&app, &viewer).await?;
    page.chrome.notice = match query.key() {
        "added" => Some("User added.".to_owned()),
        "deleted" => Some("User deleted.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /users`.
pub async fn create(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    if let Some(question) = confirm::ask(&app, "/users", &submitted).await? {
        return Ok(question);
    }
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    let made = match read(&form) {
        Err(error) => Err(FieldErrors::one(&error.field, sentence(&error.rule))),
        Ok(new) => {
            let name = new.name.clone();
            match users::make(&app, viewer.audit(), new).await {
                Ok((_, None)) => return Ok(go(&headers, "/users?notice=added")),
                Ok((_, Some(password))) => Ok(MadePassword { name, password }),
                Err(problem) => Err(at_a_field(problem)?),
            }
        }
    };
    let mut page = view(&app, &viewer).await?;
    let status = match made {
        Ok(made) => {
            page.made = Some(made);
            StatusCode::OK
        }
        Err(errors) => {
            page.errors = errors;
            page.form = NewPerson {
                name: form.trimmed("name"),
                role: form.trimmed("role"),
                typed: is_typed(&form),
            };
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    Ok(respond::page(status, &page))
}

/// Whether the form wants the typed password rather than a made one.
pub fn is_typed(form: &Form) -> bool {
    form.text("first") == "typed"
}

fn read(form: &Form) -> Result<NewUser, InvalidField> {
    let name = rules::normal_name(form.text("name"));
    let mut fields = Fields::default();
    fields.add("name".to_owned(), Input::Text(name))?;
    fields.add("role".to_owned(), Input::Text(form.trimmed("role")))?;
    if is_typed(form) {
        let password = Input::Text(form.text("password").to_owned());
        fields.add("password".to_owned(), password)?;
    }
    users::parse_new(&fields)
}

/// A refusal that belongs to a field of the form; any other stays a problem.
fn at_a_field(problem: Problem) -> Result<FieldErrors, Problem> {
    let field = match problem.code() {
        ProblemCode::AlreadyExists => "name",
        ProblemCode::LastAdmin => "role",
        _ => return Err(problem),
    };
    Ok(FieldErrors::one(field, sentence(problem.detail())))
}

/// One user as a row.
pub fn row(user: UserView, viewer: &Viewer, now: Timestamp) -> PersonRow {
    let moment = |at| Moment { at, now };
    PersonRow {
        is_you: viewer.caller().user().is_some_and(|you| you.id == user.id),
        role: user.role.name(),
        disabled: user.disabled,
        created: moment(user.created_at),
        last_login: user.last_login_at.map(moment),
        sessions: user.sessions,
        name: user.name,
    }
}

async fn view(app: &App, viewer: &Viewer) -> Result<AccountsPage, Problem> {
    let now = Timestamp::now();
    let users = app.store.users().await?;
    let first = if users.is_empty() {
        Role::Admin
    } else {
        Role::Viewer
    };
    Ok(AccountsPage {
        chrome: viewer.chrome(),
        accounts: users
            .into_iter()
            .map(|user| row(user, viewer, now))
            .collect(),
        form: NewPerson {
            role: first.name().to_owned(),
            ..NewPerson::default()
        },
        errors: FieldErrors::default(),
        made: None,
    })
}
