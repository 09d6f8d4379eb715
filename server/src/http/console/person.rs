//! `/users/{name}`: one user.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{FieldErrors, MadePassword, PersonPage};
use hearth_web::respond;
use jiff::Timestamp;

use crate::accounts::rules;
use crate::http::App;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::users;
use crate::model::{Right, Role, SessionOwner, UserPatch, UserView};
use crate::store::StoreError;

use super::account;
use super::accounts::{is_typed, row};
use super::confirm;
use super::form::Submitted;
use super::guard::{go, sentence};
use super::notice::Notice;
use super::session::Viewer;

/// `GET /users/{name}`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let mut page = view(&app, &viewer, &name).await?;
    page.chrome.notice = match query.key() {
        "role" => Some(format!("{name} is now {}.", in_words(page.person.role))),
        "password" => Some("Password set. All sessions with the old one have ended.".to_owned()),
        "disabled" => Some(format!("{name} is disabled. Their sessions have ended.")),
        "enabled" => Some(format!("{name} can log in again.")),
        "ended" => Some("Session ended.".to_owned()),
        "sessions" => Some("Sessions ended.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn in_words(role: &str) -> String {
    match role {
        "viewer" => "a viewer".to_owned(),
        role => format!("an {role}"),
    }
}

/// `POST /users/{name}/role`.
pub async fn role(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    let path = format!("/users/{name}/role");
    if let Some(question) = confirm::ask(&app, &path, &submitted).await? {
        return Ok(question);
    }
    let Some(role) = Role::by_name(&submitted.form.trimmed("role")) else {
        let mut page = view(&app, &submitted.viewer, &name).await?;
        page.errors = FieldErrors::one("role", "Choose a role.".to_owned());
        return Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let patch = UserPatch {
        role: Some(role),
        ..UserPatch::default()
    };
    change(&app, &submitted, &name, &patch, "role").await
}

/// `POST /users/{name}/disable`.
pub async fn disable(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    set_disabled(&app, &submitted, &name, true).await
}

/// `POST /users/{name}/enable`.
pub async fn enable(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    let path = format!("/users/{name}/enable");
    if let Some(question) = confirm::ask(&app, &path, &submitted).await? {
        return Ok(question);
    }
    set_disabled(&app, &submitted, &name, false).await
}

async fn set_disabled(
    app: &App,
    submitted: &Submitted,
    name: &str,
    disabled: bool,
) -> Result<Response, Problem> {
    let patch = UserPatch {
        disabled: Some(disabled),
        ..UserPatch::default()
    };
    let notice = if disabled { "disabled" } else { "enabled" };
    change(app, submitted, name, &patch, notice).await
}

/// `POST /users/{name}/password`.
pub async fn password(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Admin)?;
    let path = format!("/users/{name}/password");
    if let Some(question) = confirm::ask(&app, &path, &submitted).await? {
        return Ok(question);
    }
    let mut page = view(&app, viewer, &name).await?;
    let typed = match is_typed(&submitted.form) {
        true => Some(submitted.form.text("password")),
        false => None,
    };
    if let Some(Err(error)) = typed.map(|typed| rules::check_password("password", &name, typed)) {
        page.errors = FieldErrors::one("password", sentence(&error.rule));
        return Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let password = match typed {
        Some(typed) => typed.to_owned(),
        None => users::generated_password()?,
    };
    let patch = UserPatch {
        password: Some(app.accounts.passwords.hash(&password).await?),
        ..UserPatch::default()
    };
    // Who sets their own password stays where they are.
    let keep = page.person.is_you.then(|| viewer.session_id());
    app.store
        .update_user(&name, &patch, keep)
        .await?
        .ok_or_else(|| users::no_user(&name))?;
    if typed.is_some() {
        let target = format!("/users/{name}?notice=password");
        return Ok(go(&submitted.headers, &target));
    }
    let mut page = view(&app, viewer, &name).await?;
    page.made = Some(MadePassword { name, password });
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /users/{name}/delete`.
pub async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    match app.store.delete_user(&name).await {
        Ok(true) if is_self(&submitted.viewer, &name) => Ok(go(&submitted.headers, "/login")),
        Ok(true) => Ok(go(&submitted.headers, "/users?notice=deleted")),
        Ok(false) => Err(users::no_user(&name)),
        Err(error) => refused(&app, &submitted.viewer, &name, error).await,
    }
}

/// `POST /users/{name}/sessions/{id}/end`.
pub async fn end_session(
    State(app): State<App>,
    Path((name, id)): Path<(String, String)>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Admin)?;
    let user = find(&app, &name).await?;
    account::end_one(&app, SessionOwner::User(user.id), &id).await?;
    Ok(back(&submitted.headers, &name, "ended"))
}

/// `POST /users/{name}/sessions/end`: all of them except the current one.
pub async fn end_sessions(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Admin)?;
    let user = find(&app, &name).await?;
    let keep = is_self(viewer, &name).then(|| viewer.session_id());
    let ended = app
        .store
        .end_sessions(SessionOwner::User(user.id), keep)
        .await?;
    viewer.audit().detail(format!("{ended} ended"));
    Ok(back(&submitted.headers, &name, "sessions"))
}

async fn change(
    app: &App,
    submitted: &Submitted,
    name: &str,
    patch: &UserPatch,
    notice: &str,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    users::tell(viewer.audit(), patch);
    match app.store.update_user(name, patch, None).await {
        Ok(Some(user)) => {
            let lost = is_self(viewer, name) && (user.role != Role::Admin || user.disabled);
            Ok(match lost {
                // What the user may still see of the console.
                true => go(&submitted.headers, "/"),
                false => back(&submitted.headers, name, notice),
            })
        }
        Ok(None) => Err(users::no_user(name)),
        Err(error) => refused(app, viewer, name, error).await,
    }
}

fn back(headers: &HeaderMap, name: &str, notice: &str) -> Response {
    go(headers, &format!("/users/{name}?notice={notice}"))
}

fn is_self(viewer: &Viewer, name: &str) -> bool {
    viewer.caller().user().is_some_and(|you| you.name == name)
}

/// The page with the `last_admin` error; other errors stay problems.
async fn refused(
    app: &App,
    viewer: &Viewer,
    name: &str,
    error: StoreError,
) -> Result<Response, Problem> {
    let problem = Problem::from(error);
    if problem.code() != ProblemCode::LastAdmin {
        return Err(problem);
    }
    let mut page = view(app, viewer, name).await?;
    page.problem = sentence(problem.detail());
    Ok(respond::page(problem.code().status(), &page))
}

async fn find(app: &App, name: &str) -> Result<UserView, Problem> {
    let found = app.store.user(name).await?;
    found.ok_or_else(|| users::no_user(name))
}

async fn view(app: &App, viewer: &Viewer, name: &str) -> Result<PersonPage, Problem> {
    let user = find(app, name).await?;
    let owner = SessionOwner::User(user.id);
    Ok(PersonPage {
        chrome: viewer.chrome(),
        person: row(user, viewer, Timestamp::now()),
        sessions: account::sessions(app, owner, viewer.session_id()).await?,
        errors: FieldErrors::default(),
        problem: String::new(),
        made: None,
    })
}
