//! Asks for the password again before changes that outlast the session: tokens, users, their roles and passwords.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::ConfirmPage;
use hearth_web::respond;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::Caller;

use super::form::{CSRF_FIELD, Submitted};
use super::login::{limited, too_many};

/// The confirmation field.
const FIELD: &str = "confirm";

/// The page that asks, when the last entry is too long ago and the form brings none that is right. The page holds all
/// that was submitted, so that nothing is typed twice.
pub async fn ask(
    app: &App,
    path: &str,
    submitted: &Submitted,
) -> Result<Option<Response>, Problem> {
    let viewer = &submitted.viewer;
    if app.accounts.is_fresh(viewer.session_id()) {
        return Ok(None);
    }
    let Some(typed) = submitted.form.all(FIELD).next() else {
        return Ok(Some(page(path, submitted, "", None)));
    };
    let caller = viewer.caller();
    let address = viewer.audit().origin().address;
    // Rate-limited separately from log-ins, so that failed log-ins by others do not block the user here.
    let attempts = format!("{} (confirm {})", caller.name(), viewer.session_id());
    if let Err(wait) = app.accounts.attempt(address, Some(&attempts)) {
        return Ok(Some(page(path, submitted, &too_many(wait), Some(wait))));
    }
    let fits = match caller {
        Caller::User(user) => {
            let found = app.store.user_with_password(&user.name).await?;
            let hash = found.map(|(_, hash)| hash);
            app.accounts.passwords.verify(typed, hash).await?
        }
        Caller::Token(token) => app
            .store
            .find_token(typed.trim())
            .is_some_and(|found| found.id == token.id),
    };
    if !fits {
        viewer.audit().action("session.confirm_failed");
        viewer.audit().even_if_refused();
        let message = match caller {
            Caller::User(_) => "Wrong password.",
            Caller::Token(_) => "That is not the token you logged in with.",
        };
        return Ok(Some(page(path, submitted, message, None)));
    }
    app.accounts.succeeded(address, Some(&attempts));
    app.accounts.proved(viewer.session_id());
    Ok(None)
}

fn page(path: &str, submitted: &Submitted, error: &str, wait: Option<Duration>) -> Response {
    let fields = submitted
        .form
        .fields()
        .filter(|(name, _)| ![FIELD, CSRF_FIELD].contains(name));
    let page = ConfirmPage {
        chrome: submitted.viewer.chrome(),
        action: path.to_owned(),
        fields: fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        by_token: submitted.viewer.caller().user().is_none(),
        error: error.to_owned(),
    };
    let status = match wait {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::FORBIDDEN,
    };
    limited(respond::page(status, &page), wait)
}
