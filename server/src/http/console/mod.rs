//! The console's routes: sessions, and one file per page that turns data of the engine, store and history into the view
//! models of `hearth_web`.
//!
//! A handler returns a page, or a [`Problem`](super::problem::Problem) as an API handler does; [`guard`] requires a
//! session and renders problems as pages. Every changing request uses [`form::Submitted`], which checks the session's
//! CSRF token.

mod account;
mod accounts;
mod audit;
mod call;
mod chain_lines;
mod chain_request;
mod chain_settings;
mod chain_view;
mod chains;
mod code;
mod code_deploy;
mod code_edits;
mod code_files;
mod commands;
mod confirm;
mod create;
mod device;
mod diff;
mod events;
mod experiment_files;
mod experiment_remarks;
mod experiment_table;
mod experiment_view;
mod explanation;
mod form;
mod function;
mod functions;
mod gate_form;
mod guard;
mod ingress;
mod ingress_view;
mod invocation;
mod invocations;
mod invoke;
mod lab;
mod lab_compare;
mod lab_config;
mod lab_differences;
mod lab_duet;
mod lab_form;
mod lab_load;
mod lab_replay;
mod lab_suite;
mod latency;
mod latency_cell;
mod live;
mod live_distribution;
mod login;
mod logs;
mod meanwhile;
mod network;
mod network_form;
mod notice;
mod outcome;
mod overview;
mod packed;
mod palette;
mod performance;
mod person;
mod place;
mod ports_form;
mod ports_view;
mod retention;
mod secrets;
mod session;
mod settings;
mod settings_form;
mod setup;
mod theme;
mod tokens;
mod versions;
mod view;
mod what_if;
mod workloads;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use super::App;
pub use guard::HX_REDIRECT;

/// All routes of the console, its assets included.
pub fn router(app: App) -> Router<App> {
    let pages = Router::new()
        .route("/", get(overview::page))
        .route("/theme", post(theme::submit))
        .route("/live", get(live::stream))
        .route("/palette", get(palette::search))
        .route("/functions", get(functions::page))
        // Not below /functions: a function may be named "new".
        .route("/new", get(create::page).post(create::submit))
        .route("/functions/{name}", get(function::page))
        .route("/functions/{name}/history", get(invocations::last_calls))
        .route(
            "/functions/{name}/invoke",
            get(invoke::back).post(invoke::submit),
        )
        .route("/functions/{name}/invocations", get(invocations::page))
        .route("/functions/{name}/latency", get(latency::page))
        .route("/functions/{name}/latency/cell", get(latency_cell::page))
        .route("/functions/{name}/performance", get(performance::page))
        .route("/functions/{name}/what-if", get(what_if::page))
        .route("/functions/{name}/invocations/{id}", get(invocation::page))
        .route(
            "/functions/{name}/call",
            get(invoke::back).post(call::submit),
        )
        .route("/functions/{name}/event", get(events::event))
        .route("/functions/{name}/events", post(events::save))
        .route("/functions/{name}/events/pick", post(events::pick))
        .route("/functions/{name}/events/delete", post(events::delete))
        .route("/functions/{name}/logs", get(logs::page))
        .route(
            "/functions/{name}/code",
            get(code::page).post(code_deploy::submit),
        )
        .route("/functions/{name}/code/files", get(code_files::list))
        .route("/functions/{name}/code/file", get(code_files::file))
        .route("/functions/{name}/code/review", post(code_deploy::review))
        .route("/functions/{name}/versions", get(versions::page))
        .route("/functions/{name}/versions/compare", get(versions::compare))
        .route(
            "/functions/{name}/versions/{version}/diff",
            get(versions::compared),
        )
        .route(
            "/functions/{name}/versions/{version}/code.zip",
            get(versions::download),
        )
        .route(
            "/functions/{name}/versions/{version}/activate",
            get(versions::ask).post(versions::activate),
        )
        .route(
            "/functions/{name}/settings",
            get(settings::page).post(settings::submit),
        )
        .route("/functions/{name}/gate", post(gate_form::submit))
        .route("/functions/{name}/network", get(network::page))
        .route("/functions/{name}/network/allow", post(network::allow))
        .route(
            "/functions/{name}/network/end-dry-run",
            post(network::end_dry_run),
        )
        .route("/functions/{name}/delete", post(settings::delete))
        .route("/retention", get(retention::page).post(retention::submit))
        .route("/retention/preview", post(retention::preview))
        .route("/ingress", get(ingress::page))
        .route("/ingress/lists", post(ingress::list))
        .route("/ingress/lists/remove", post(ingress::unlist))
        .route("/chains", get(chains::list))
        // Not below /chains/{name}: a chain may be named "new" or "workloads".
        .route(
            "/new-chain",
            get(chain_settings::new).post(chain_settings::create),
        )
        .route("/chain-workloads/{key}", post(workloads::deploy))
        .route("/chains/{name}", get(chains::page))
        .route("/chains/{name}/requests/{id}", get(chain_request::page))
        .route(
            "/chains/{name}/settings",
            get(chain_settings::page).post(chain_settings::submit),
        )
        .route(
            "/chains/{name}/versions/{version}/activate",
            post(chains::activate),
        )
        .route("/chains/{name}/delete", post(chains::delete))
        .route("/lab", get(lab::page).post(lab::create))
        .route("/lab/compare", get(lab_compare::page))
        .route("/lab/{id}", get(lab::one))
        .route("/lab/{id}/files/{path}", get(lab::file))
        .route("/lab/{id}/cancel", post(lab::cancel))
        .route("/lab/{id}/delete", post(lab::delete))
        .route("/secrets", get(secrets::page).post(secrets::create))
        .route("/secrets/{name}/replace", post(secrets::replace))
        .route("/secrets/{name}/delete", post(secrets::delete))
        .route("/logout", post(session::logout))
        .route("/account", get(account::page))
        .route("/account/password", post(account::password))
        .route("/account/sessions/end-others", post(account::end_others))
        .route("/account/sessions/{id}/end", post(account::end_session))
        .route("/users", get(accounts::page).post(accounts::create))
        .route("/users/{name}", get(person::page))
        .route("/users/{name}/role", post(person::role))
        .route("/users/{name}/password", post(person::password))
        .route("/users/{name}/disable", post(person::disable))
        .route("/users/{name}/enable", post(person::enable))
        .route("/users/{name}/delete", post(person::delete))
        .route("/users/{name}/sessions/end", post(person::end_sessions))
        .route("/users/{name}/sessions/{id}/end", post(person::end_session))
        .route("/tokens", get(tokens::page).post(tokens::create))
        .route("/tokens/{id}/revoke", post(tokens::revoke))
        .route("/audit", get(audit::page))
        .layer(from_fn_with_state(app.clone(), guard::sessions));
    let login_routes = Router::new()
        .route("/login", get(login::page).post(login::login))
        .route("/setup", get(setup::page).post(setup::submit))
        .layer(from_fn(guard::unauthenticated));
    pages
        .merge(login_routes)
        .layer(packed::layer())
        // Form fields have limits of their own, see `form`.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
        .merge(hearth_web::assets::router())
}

/// Renders a 404 page if the client is a browser; `None` leaves it to the API.
pub fn not_found(request: &axum::extract::Request) -> Option<axum::response::Response> {
    guard::not_found(request)
}
