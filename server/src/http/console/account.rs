//! `/account`: one's own password and sessions.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{AccountPage, FieldErrors, Moment, SessionRow};
use hearth_web::respond;
use jiff::Timestamp;

use crate::accounts::rules;
use crate::http::App;
use crate::http::problem::{Problem, ProblemCode};
use crate::model::{Caller, SessionOwner, UserPatch};

use super::device;
use super::form::{Form, Submitted};
use super::guard::{go, sentence};
use super::login::{limited, too_many};
use super::notice::Notice;
use super::session::{Viewer, open};

/// `GET /account`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Notice>,
) -> Result<Response, Problem> {
    let mut page = view(&app, &viewer).await?;
    page.chrome.notice = match query.key() {
        "password" => Some("Password changed. Your other sessions have ended.".to_owned()),
        "ended" => Some("Session ended.".to_owned()),
        "others" => Some("Your other sessions have ended.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /account/password`. The session gets another cookie, the others end.
pub async fn password(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    let Some(user) = viewer.caller().user() else {
        let detail = "a token has no password; log in as a user to change yours";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    };
    let name = user.name.clone();
    let (status, errors) = match check(&form, &name) {
        Err(errors) => (StatusCode::UNPROCESSABLE_ENTITY, errors),
        Ok(()) => {
            let address = viewer.audit().origin().address;
            // Rate-limited separately from log-ins, so that failed log-ins by others do not block the user here.
            let attempts = format!("{name} (change)");
            if let Err(wait) = app.accounts.attempt(address, Some(&attempts)) {
                let mut page = view(&app, &viewer).await?;
                page.errors = FieldErrors::one("old", too_many(wait));
                let response = respond::page(StatusCode::TOO_MANY_REQUESTS, &page);
                return Ok(limited(response, Some(wait)));
            }
            let found = app.store.user_with_password(&name).await?;
            let hash = found.map(|(_, hash)| hash);
            if app
                .accounts
                .passwords
                .verify(form.text("old"), hash)
                .await?
            {
                app.accounts.succeeded(address, Some(&attempts));
                let hash = app.accounts.passwords.hash(form.text("password")).await?;
                let patch = UserPatch {
                    password: Some(hash),
                    ..UserPatch::default()
                };
                app.store.update_user(&name, &patch, None).await?;
                viewer.audit().target(name);
                let (caller, audit) = (viewer.caller(), viewer.audit());
                return open(&app, caller, audit, &headers, "/account?notice=password").await;
            }
            let message = "Wrong current password.".to_owned();
            (StatusCode::FORBIDDEN, FieldErrors::one("old", message))
        }
    };
    let mut page = view(&app, &viewer).await?;
    page.errors = errors;
    Ok(respond::page(status, &page))
}

fn check(form: &Form, name: &str) -> Result<(), FieldErrors> {
    let new = form.text("password");
    let wrong = |field: &str, message: &str| Err(FieldErrors::one(field, message.to_owned()));
    if form.text("old").is_empty() {
        return wrong("old", "Enter your current password.");
    }
    if let Err(error) = rules::check_password("password", name, new) {
        return wrong("password", &sentence(&error.rule));
    }
    if new == form.text("old") {
        return wrong(
            "password",
            "Choose a password that differs from the current one.",
        );
    }
    match new == form.text("repeat") {
        true => Ok(()),
        false => wrong("repeat", "The passwords do not match."),
    }
}

/// `POST /account/sessions/{id}/end`.
pub async fn end_session(
    State(app): State<App>,
    Path(id): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.audit().target(viewer.caller().name());
    end_one(&app, viewer.caller().owner(), &id).await?;
    Ok(go(&submitted.headers, "/account?notice=ended"))
}

/// `POST /account/sessions/end-others`.
pub async fn end_others(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.audit().target(viewer.caller().name());
    let ended = app
        .store
        .end_sessions(viewer.caller().owner(), Some(viewer.session_id()))
        .await?;
    viewer.audit().detail(format!("{ended} ended"));
    Ok(go(&submitted.headers, "/account?notice=others"))
}

/// Ends the session of this number, if it is the owner's.
pub async fn end_one(app: &App, owner: SessionOwner, id: &str) -> Result<(), Problem> {
    let missing = || Problem::not_found("such session; it may have ended already");
    let number = id.parse().map_err(|_| missing())?;
    match app.store.end_session(owner, number).await? {
        true => Ok(()),
        false => Err(missing()),
    }
}

/// An owner's sessions; `current` is the one of the page.
pub async fn sessions(
    app: &App,
    owner: SessionOwner,
    current: i64,
) -> Result<Vec<SessionRow>, Problem> {
    let now = Timestamp::now();
    let moment = |at| Moment { at, now };
    let rows = app.store.sessions(owner).await?;
    let rows = rows.into_iter().map(|session| SessionRow {
        id: session.id,
        device: device::in_words(&session.agent),
        agent: session.agent,
        address: session.address,
        created: moment(session.created_at),
        seen: moment(session.seen_at),
        current: session.id == current,
    });
    Ok(rows.collect())
}

async fn view(app: &App, viewer: &Viewer) -> Result<AccountPage, Problem> {
    let caller = viewer.caller();
    Ok(AccountPage {
        chrome: viewer.chrome(),
        rights: match caller {
            Caller::User(user) => match user.role.name() {
                "viewer" => "a viewer".to_owned(),
                role => format!("an {role}"),
            },
            Caller::Token(token) => {
                let names: Vec<&str> = token.rights.iter().map(|right| right.name()).collect();
                names.join(", ")
            }
        },
        sessions: sessions(app, caller.owner(), viewer.session_id()).await?,
        errors: FieldErrors::default(),
    })
}
