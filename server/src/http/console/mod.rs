//! The console's routes: sessions, and one file per page that turns what engine, store and history answer into the
//! view models of `hearth_web`.
//!
//! A handler returns a page, or a [`Problem`](super::problem::Problem) as an API handler does; [`guard`] lets only
//! sessions in and turns problems into pages. Every changing request comes through [`form::Submitted`], which cannot
//! be had without the session's CSRF token.

mod account;
mod audit;
mod code;
mod create;
mod device;
mod form;
mod function;
mod functions;
mod guard;
mod invocation;
mod invoke;
mod login;
mod notice;
mod outcome;
mod people;
mod person;
mod session;
mod settings;
mod setup;
mod tokens;
mod view;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use super::App;
pub use guard::HX_REDIRECT;

/// All routes of the console, its assets included.
pub fn router(app: App) -> Router<App> {
    let pages = Router::new()
        .route("/", get(functions::page))
        .route("/functions", get(functions::table))
        // Not below /functions: a function may be named "new".
        .route("/new", get(create::page).post(create::submit))
        .route("/functions/{name}", get(function::page))
        .route("/functions/{name}/head", get(function::head))
        .route("/functions/{name}/history", get(function::history))
        .route(
            "/functions/{name}/invoke",
            get(invoke::back).post(invoke::submit),
        )
        .route("/functions/{name}/invocations/{id}", get(invocation::page))
        .route("/functions/{name}/code", get(code::page).post(code::submit))
        .route(
            "/functions/{name}/versions/{version}/activate",
            post(code::activate),
        )
        .route(
            "/functions/{name}/settings",
            get(settings::page).post(settings::submit),
        )
        .route("/functions/{name}/delete", post(settings::delete))
        .route("/logout", post(session::logout))
        .route("/account", get(account::page))
        .route("/account/password", post(account::password))
        .route("/account/sessions/end-others", post(account::end_others))
        .route("/account/sessions/{id}/end", post(account::end_session))
        .route("/people", get(people::page).post(people::create))
        .route("/people/{name}", get(person::page))
        .route("/people/{name}/role", post(person::role))
        .route("/people/{name}/password", post(person::password))
        .route("/people/{name}/disable", post(person::disable))
        .route("/people/{name}/enable", post(person::enable))
        .route("/people/{name}/delete", post(person::delete))
        .route("/people/{name}/sessions/end", post(person::end_sessions))
        .route(
            "/people/{name}/sessions/{id}/end",
            post(person::end_session),
        )
        .route("/tokens", get(tokens::page).post(tokens::create))
        .route("/tokens/{id}/revoke", post(tokens::revoke))
        .route("/audit", get(audit::page))
        .layer(from_fn_with_state(app.clone(), guard::sessions));
    let doors = Router::new()
        .route("/login", get(login::page).post(login::login))
        .route("/setup", get(setup::page).post(setup::submit))
        .layer(from_fn(guard::strangers));
    pages
        .merge(doors)
        // Form fields have limits of their own, see `form`.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
        .merge(hearth_web::assets::router())
}

/// Answers an address that does not exist with a page when a browser asks for one; `None` leaves it to the API.
pub fn not_found(request: &axum::extract::Request) -> Option<axum::response::Response> {
    guard::not_found(request)
}
