//! Those of the console.

use axum::http::Method;

use super::Route;
use crate::http::audit::actions::Known;

pub(super) const ROUTES: &[Route] = &[
    (Method::POST, "/new-chain", Known::Change("chain.create")),
    (
        Method::POST,
        "/chain-workloads/{key}",
        Known::Change("chain.create"),
    ),
    (
        Method::POST,
        "/chains/{name}/settings",
        Known::Change("chain.settings"),
    ),
    (
        Method::POST,
        "/chains/{name}/versions/{version}/activate",
        Known::Change("chain.activate"),
    ),
    (
        Method::POST,
        "/chains/{name}/delete",
        Known::Change("chain.delete"),
    ),
    (Method::POST, "/new", Known::Change("function.create")),
    (
        Method::POST,
        "/functions/{name}/code",
        Known::Change("function.deploy"),
    ),
    (
        Method::POST,
        "/functions/{name}/versions/{version}/activate",
        Known::Change("function.activate"),
    ),
    (
        Method::POST,
        "/functions/{name}/gate",
        Known::Change("function.set_gate"),
    ),
    (
        Method::POST,
        "/functions/{name}/settings",
        Known::Change("function.settings"),
    ),
    (Method::POST, "/lab", Known::Change("experiment.create")),
    (
        Method::POST,
        "/lab/{id}/cancel",
        Known::Change("experiment.cancel"),
    ),
    (
        Method::POST,
        "/lab/{id}/delete",
        Known::Change("experiment.delete"),
    ),
    (
        Method::POST,
        "/functions/{name}/network/allow",
        Known::Change("function.settings"),
    ),
    (
        Method::POST,
        "/functions/{name}/network/end-dry-run",
        Known::Change("function.settings"),
    ),
    (
        Method::POST,
        "/functions/{name}/delete",
        Known::Change("function.delete"),
    ),
    (Method::POST, "/functions/{name}/invoke", Known::NoChange),
    (Method::POST, "/functions/{name}/call", Known::NoChange),
    (
        Method::POST,
        "/functions/{name}/code/review",
        Known::NoChange,
    ),
    (
        Method::POST,
        "/functions/{name}/events",
        Known::Change("event.save"),
    ),
    (
        Method::POST,
        "/functions/{name}/events/pick",
        Known::NoChange,
    ),
    (
        Method::POST,
        "/functions/{name}/events/delete",
        Known::Change("event.delete"),
    ),
    (Method::POST, "/theme", Known::NoChange),
    (
        Method::POST,
        "/retention",
        Known::Change("retention.change"),
    ),
    (Method::POST, "/retention/preview", Known::NoChange),
    (Method::POST, "/login", Known::Change("session.login")),
    (Method::POST, "/logout", Known::Change("session.logout")),
    (Method::POST, "/setup", Known::Change("user.create")),
    (
        Method::POST,
        "/account/password",
        Known::Change("account.password"),
    ),
    (
        Method::POST,
        "/account/sessions/{id}/end",
        Known::Change("session.end"),
    ),
    (
        Method::POST,
        "/account/sessions/end-others",
        Known::Change("session.end_others"),
    ),
    (Method::POST, "/users", Known::Change("user.create")),
    (
        Method::POST,
        "/users/{name}/role",
        Known::Change("user.role"),
    ),
    (
        Method::POST,
        "/users/{name}/password",
        Known::Change("user.password"),
    ),
    (
        Method::POST,
        "/users/{name}/disable",
        Known::Change("user.disable"),
    ),
    (
        Method::POST,
        "/users/{name}/enable",
        Known::Change("user.enable"),
    ),
    (
        Method::POST,
        "/users/{name}/delete",
        Known::Change("user.delete"),
    ),
    (
        Method::POST,
        "/users/{name}/sessions/{id}/end",
        Known::Change("session.end"),
    ),
    (
        Method::POST,
        "/users/{name}/sessions/end",
        Known::Change("session.end_others"),
    ),
    (Method::POST, "/secrets", Known::Change("secret.create")),
    (
        Method::POST,
        "/secrets/{name}/replace",
        Known::Change("secret.replace"),
    ),
    (
        Method::POST,
        "/secrets/{name}/delete",
        Known::Change("secret.delete"),
    ),
    (
        Method::POST,
        "/ingress/lists",
        Known::Change("ingress.list"),
    ),
    (
        Method::POST,
        "/ingress/lists/remove",
        Known::Change("ingress.unlist"),
    ),
    (Method::POST, "/tokens", Known::Change("token.create")),
    (
        Method::POST,
        "/tokens/{id}/revoke",
        Known::Change("token.revoke"),
    ),
];
