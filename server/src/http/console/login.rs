//! `/login`: with a name and a password, or with an API token.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::pages::LoginPage;
use hearth_web::respond;
use serde::Deserialize;

use crate::accounts::{PasswordError, rules};
use crate::http::App;
use crate::http::audit::Audit;
use crate::http::cookies;
use crate::http::problem::Problem;
use crate::model::{Caller, UserView};
use crate::store::StoreError;

use super::form::{self, Form};
use super::guard::is_htmx;
use super::session::{local_path, open};

/// The same message for a wrong name and a wrong password, so that names cannot be probed.
const WRONG: &str = "Wrong name or password.";
/// When to come back if too many passwords are being checked: the queue is worked off by then.
const BUSY: Duration = Duration::from_secs(2);

/// `?next=…`.
#[derive(Debug, Default, Deserialize)]
pub struct Next {
    #[serde(default)]
    next: String,
    /// Set after a logout.
    #[serde(default)]
    bye: String,
}

/// `GET /login`.
pub async fn page(
    State(app): State<App>,
    Query(query): Query<Next>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(secret) = cookies::session(&headers)
        && app.store.find_session(secret).await?.is_some()
    {
        return Ok(Redirect::to(local_path(&query.next)).into_response());
    }
    let page = LoginPage {
        next: local_path(&query.next).to_owned(),
        notice: match query.bye.as_str() {
            "" => String::new(),
            _ => "You are logged out.".to_owned(),
        },
        has_users: app.store.has_users().await?,
        ..LoginPage::default()
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /login`: the form with a field `password`, or the one with a field `token`.
pub async fn login(
    State(app): State<App>,
    audit: Audit,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let form = form::read(request, &form::LOGIN, &app.uploads).await?;
    let attempt = match form.all("password").next() {
        Some(password) => with_password(&app, &audit, &form, password).await,
        None => with_token(&app, &audit, &form),
    };
    match attempt {
        Ok(caller) => {
            audit.by(&caller);
            let next = local_path(form.text("next"));
            open(&app, &caller, &audit, &headers, next).await
        }
        Err(refusal) if is_htmx(&headers) => refuse_briefly(refusal),
        Err(refusal) => refuse(&app, &form, refusal).await,
    }
}

/// Why the log-in failed.
enum Refusal {
    /// Something else than a wrong guess: a page of its own.
    Problem(Problem),
    /// At the password's form.
    Password(StatusCode, String),
    /// At the token's form.
    Token(StatusCode, String),
    /// Too many attempts; the wait until the next.
    Wait(Duration),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Problem(error.into())
    }
}

impl From<PasswordError> for Refusal {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => Self::Wait(BUSY),
            PasswordError::Failed(_) => Self::Problem(error.into()),
        }
    }
}

async fn with_password(
    app: &App,
    audit: &Audit,
    form: &Form,
    password: &str,
) -> Result<Caller, Refusal> {
    let name = rules::normal_name(form.text("name"));
    if name.is_empty() || password.is_empty() {
        let message = "Enter your name and password.".to_owned();
        return Err(Refusal::Password(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let address = audit.origin().address;
    app.accounts
        .attempt(address, Some(&name))
        .map_err(Refusal::Wait)?;
    let found = app.store.user_with_password(&name).await?;
    let hash = found.as_ref().map(|(_, hash)| hash.clone());
    let fits = app.accounts.passwords.verify(password, hash).await?;
    let failed = |reason: &str, message: &str| {
        audit.action("session.login_failed");
        audit.by_unauthenticated(&name);
        audit.detail(reason);
        audit.even_if_refused();
        Refusal::Password(StatusCode::UNAUTHORIZED, message.to_owned())
    };
    match found {
        Some((user, _)) if fits && user.disabled => Err(failed(
            "the user is disabled",
            "This user is disabled. Ask an admin to enable you again.",
        )),
        Some((user, _)) if fits => {
            app.accounts.succeeded(address, Some(&name));
            Ok(Caller::User(Arc::<UserView>::new(user)))
        }
        Some(_) => Err(failed("wrong password", WRONG)),
        None => Err(failed("no such user", WRONG)),
    }
}

fn with_token(app: &App, audit: &Audit, form: &Form) -> Result<Caller, Refusal> {
    let secret = form.text("token").trim();
    if secret.is_empty() {
        let message = "Enter an API token.".to_owned();
        return Err(Refusal::Token(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let address = audit.origin().address;
    app.accounts.attempt(address, None).map_err(Refusal::Wait)?;
    let failed = |reason: &str, name: &str, status, message: &str| {
        audit.action("session.login_failed");
        audit.by_unauthenticated(name);
        audit.detail(reason);
        audit.even_if_refused();
        Refusal::Token(status, message.to_owned())
    };
    let Some(token) = app.store.find_token(secret) else {
        return Err(failed(
            "unknown token",
            "",
            StatusCode::UNAUTHORIZED,
            "Unknown token. Copy all of it, without quotes.",
        ));
    };
    app.accounts.succeeded(address, None);
    // The console's pages are about all functions: there is no view of it for such a token.
    if token.scope.is_some() {
        return Err(failed(
            "the token is scoped to some functions",
            &token.name,
            StatusCode::FORBIDDEN,
            "This token is scoped to some functions and works with the API only.",
        ));
    }
    Ok(Caller::Token(token))
}

/// The same for the dialog over a page.
fn refuse_briefly(refusal: Refusal) -> Result<Response, Problem> {
    let (status, message, wait) = match refusal {
        Refusal::Problem(problem) => return Err(problem),
        Refusal::Password(status, message) | Refusal::Token(status, message) => {
            (status, message, None)
        }
        Refusal::Wait(wait) => (StatusCode::TOO_MANY_REQUESTS, too_many(wait), Some(wait)),
    };
    let body = Json(serde_json::json!({ "title": message }));
    Ok(limited((status, body).into_response(), wait))
}

async fn refuse(app: &App, form: &Form, refusal: Refusal) -> Result<Response, Problem> {
    let mut page = LoginPage {
        next: local_path(form.text("next")).to_owned(),
        name: form.trimmed("name"),
        has_users: app.store.has_users().await?,
        ..LoginPage::default()
    };
    let by_password = form.all("password").next().is_some();
    let (status, wait) = match refusal {
        Refusal::Problem(problem) => return Err(problem),
        Refusal::Password(status, message) => {
            page.password_error = message;
            (status, None)
        }
        Refusal::Token(status, message) => {
            page.error = message;
            (status, None)
        }
        Refusal::Wait(wait) => {
            let slot = match by_password {
                true => &mut page.password_error,
                false => &mut page.error,
            };
            *slot = too_many(wait);
            (StatusCode::TOO_MANY_REQUESTS, Some(wait))
        }
    };
    Ok(limited(respond::page(status, &page), wait))
}

/// The message of a refused attempt.
pub fn too_many(wait: Duration) -> String {
    match seconds(wait) {
        1 => "Too many attempts. Try again in a second.".to_owned(),
        seconds => format!("Too many attempts. Try again in {seconds} seconds."),
    }
}

/// Adds `Retry-After` to the answer to a refused attempt.
pub fn limited(mut response: Response, wait: Option<Duration>) -> Response {
    if let Some(wait) = wait {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds(wait)));
    }
    response
}

/// Whole seconds, rounded up: one who comes back after them is looked at.
fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000))
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        assert_eq!(
            too_many(Duration::from_millis(1)),
            "Too many attempts. Try again in a second."
        );
        assert_eq!(
            too_many(Duration::from_millis(1001)),
            "Too many attempts. Try again in 2 seconds."
        );
        let response = limited(
            StatusCode::OK.into_response(),
            Some(Duration::from_millis(29_001)),
        );
        assert_eq!(response.headers()["retry-after"], "30");
    }
}
