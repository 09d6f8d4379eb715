//! `/setup`: creates the first admin, with the code from the server's log.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{FieldErrors, SetupPage};
use hearth_web::respond;

use crate::accounts::rules;
use crate::http::App;
use crate::http::audit::Audit;
use crate::http::problem::Problem;
use crate::model::{Caller, InvalidField};

use super::form::{self, Form};
use super::guard::sentence;
use super::login::{limited, too_many};
use super::session::open;

/// What the limit on attempts counts them under: there is one code.
const ACCOUNT: &str = "(set-up)";

/// `GET /setup`.
pub async fn page(State(app): State<App>) -> Result<Response, Problem> {
    let page = SetupPage {
        done: is_done(&app).await?,
        ..SetupPage::default()
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /setup`.
pub async fn submit(
    State(app): State<App>,
    audit: Audit,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let form = form::read(request, &form::LOGIN, &app.uploads).await?;
    if is_done(&app).await? {
        return Ok(done());
    }
    let address = audit.origin().address;
    if let Err(wait) = app.accounts.attempt(address, Some(ACCOUNT)) {
        let errors = FieldErrors::one("code", too_many(wait));
        let response = refused(&form, StatusCode::TOO_MANY_REQUESTS, errors);
        return Ok(limited(response, Some(wait)));
    }
    if !app.accounts.setup.accepts(form.text("code")) {
        audit.action("session.login_failed");
        audit.detail("wrong set-up code");
        audit.even_if_refused();
        let message = "That code is wrong. It is in the server log and changes at every start.";
        let errors = FieldErrors::one("code", message.to_owned());
        return Ok(refused(&form, StatusCode::UNAUTHORIZED, errors));
    }
    app.accounts.succeeded(address, Some(ACCOUNT));
    let name = form.trimmed("name");
    if let Err(error) = check(&form, &name) {
        let errors = FieldErrors::one(&error.field, sentence(&error.rule));
        return Ok(refused(&form, StatusCode::UNPROCESSABLE_ENTITY, errors));
    }
    let hash = app.accounts.passwords.hash(form.text("password")).await?;
    // Of two who have the code, one is first.
    let Some(user) = app.store.create_first_user(&name, &hash).await? else {
        return Ok(done());
    };
    app.accounts.setup.close();
    audit.target(user.name.as_str());
    audit.detail("role admin, by the set-up's code");
    let caller = Caller::User(Arc::new(user));
    audit.by(&caller);
    open(&app, &caller, &audit, &headers, "/").await
}

fn check(form: &Form, name: &str) -> Result<(), InvalidField> {
    if !rules::is_name(name) {
        return Err(InvalidField {
            field: "name".to_owned(),
            value: format!("{name:?}"),
            rule: rules::NAME_RULE.to_owned(),
        });
    }
    rules::check_password("password", name, form.text("password"))?;
    match form.text("password") == form.text("repeat") {
        true => Ok(()),
        false => Err(rules::refused("repeat", "must match the password")),
    }
}

async fn is_done(app: &App) -> Result<bool, Problem> {
    Ok(!app.accounts.setup.is_open() || app.store.has_users().await?)
}

fn done() -> Response {
    let page = SetupPage {
        done: true,
        ..SetupPage::default()
    };
    respond::page(StatusCode::CONFLICT, &page)
}

fn refused(form: &Form, status: StatusCode, errors: FieldErrors) -> Response {
    let page = SetupPage {
        done: false,
        code: form.trimmed("code"),
        name: form.trimmed("name"),
        errors,
    };
    respond::page(status, &page)
}
