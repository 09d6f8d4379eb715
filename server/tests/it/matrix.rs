//! Each role against each route, of the console and of the API: what a role may not do is refused with 403, whatever the
//! page offers.

use reqwest::Method;
use serde_json::json;

use crate::access;
use crate::logins::{PASSWORD, user};
use crate::support::{Browser, Server};

const ONE: &str = "def handler(event, context):\n    return 1\n";
/// Routes as they are written down in the server.
const SOURCE: &str = include_str!("../../src/http/console/mod.rs");
const ROLES: [(&str, &[&str]); 3] = [
    ("viewer", &["read"]),
    ("operator", &["read", "invoke", "write"]),
    ("admin", &["read", "invoke", "write", "admin"]),
];

/// Method, pattern and right of the console's routes. Those that are not here are held to what their kind needs at
/// least: a change is not for viewers.
const CONSOLE: &[(&str, &str, &str)] = &[
    ("GET", "/", "read"),
    ("GET", "/live", "read"),
    ("GET", "/palette", "read"),
    ("POST", "/theme", "anyone"),
    ("GET", "/functions", "read"),
    ("GET", "/new", "write"),
    ("POST", "/new", "write"),
    ("GET", "/functions/{name}", "read"),
    ("GET", "/functions/{name}/history", "read"),
    ("GET", "/functions/{name}/latency", "read"),
    ("GET", "/functions/{name}/logs", "read"),
    ("GET", "/functions/{name}/code", "read"),
    ("POST", "/functions/{name}/code", "write"),
    ("GET", "/functions/{name}/code/files", "read"),
    ("GET", "/functions/{name}/code/file", "read"),
    ("POST", "/functions/{name}/code/review", "write"),
    ("POST", "/functions/{name}/invoke", "invoke"),
    ("POST", "/functions/{name}/call", "invoke"),
    ("GET", "/functions/{name}/event", "read"),
    ("POST", "/functions/{name}/events", "write"),
    ("POST", "/functions/{name}/events/pick", "read"),
    ("POST", "/functions/{name}/events/delete", "write"),
    ("GET", "/functions/{name}/versions", "read"),
    ("GET", "/functions/{name}/versions/compare", "read"),
    ("GET", "/functions/{name}/versions/{version}/diff", "read"),
    (
        "GET",
        "/functions/{name}/versions/{version}/code.zip",
        "read",
    ),
    (
        "GET",
        "/functions/{name}/versions/{version}/activate",
        "write",
    ),
    (
        "POST",
        "/functions/{name}/versions/{version}/activate",
        "write",
    ),
    ("GET", "/functions/{name}/settings", "read"),
    ("POST", "/functions/{name}/settings", "write"),
    ("POST", "/functions/{name}/delete", "write"),
    ("GET", "/functions/{name}/invocations", "read"),
    ("GET", "/functions/{name}/invocations/{id}", "read"),
    ("GET", "/account", "anyone"),
    ("POST", "/account/password", "anyone"),
    ("POST", "/account/sessions/{id}/end", "anyone"),
    ("POST", "/account/sessions/end-others", "anyone"),
    ("GET", "/chains", "read"),
    ("GET", "/new-chain", "write"),
    ("POST", "/new-chain", "write"),
    ("POST", "/chain-workloads/{key}", "write"),
    ("GET", "/chains/{name}", "read"),
    ("GET", "/chains/{name}/requests/{id}", "read"),
    ("GET", "/chains/{name}/settings", "write"),
    ("POST", "/chains/{name}/settings", "write"),
    (
        "POST",
        "/chains/{name}/versions/{version}/activate",
        "write",
    ),
    ("POST", "/chains/{name}/delete", "write"),
    ("GET", "/secrets", "read"),
    ("POST", "/secrets", "write"),
    ("POST", "/secrets/{name}/replace", "write"),
    ("POST", "/secrets/{name}/delete", "write"),
    ("GET", "/users", "admin"),
    ("POST", "/users", "admin"),
    ("GET", "/users/{name}", "admin"),
    ("POST", "/users/{name}/role", "admin"),
    ("POST", "/users/{name}/password", "admin"),
    ("POST", "/users/{name}/disable", "admin"),
    ("POST", "/users/{name}/enable", "admin"),
    ("POST", "/users/{name}/delete", "admin"),
    ("POST", "/users/{name}/sessions/end", "admin"),
    ("POST", "/users/{name}/sessions/{id}/end", "admin"),
    ("GET", "/tokens", "admin"),
    ("POST", "/tokens", "admin"),
    ("POST", "/tokens/{id}/revoke", "admin"),
    ("GET", "/audit", "admin"),
    ("GET", "/retention", "admin"),
    ("POST", "/retention", "admin"),
    ("POST", "/retention/preview", "admin"),
    ("GET", "/ingress", "admin"),
    ("POST", "/ingress/lists", "admin"),
    ("POST", "/ingress/lists/remove", "admin"),
];
/// Not about rights: they are open, or end the session.
const LOGIN_ROUTES: [&str; 3] = ["/login", "/setup", "/logout"];

/// Method and pattern of every route in the source.
fn routes() -> Vec<(&'static str, &'static str)> {
    let mut routes = Vec::new();
    for route in SOURCE.split(".route(").skip(1) {
        let path = route.split('"').nth(1).expect("a path");
        // The handlers stand before the next route, or the layer that ends the list.
        let handlers = route.split(".layer(").next().unwrap_or(route);
        for (call, method) in [
            ("get(", "GET"),
            ("post(", "POST"),
            ("put(", "PUT"),
            ("delete(", "DELETE"),
        ] {
            let calls = handlers.match_indices(call).any(|(at, _)| {
                !handlers[..at]
                    .ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':')
            });
            if calls && !LOGIN_ROUTES.contains(&path) {
                routes.push((method, path));
            }
        }
    }
    routes
}

/// An address of a pattern, of things that do not exist: what a role may do then fails without doing harm.
fn address(pattern: &str) -> String {
    pattern
        .replace("{name}", "absent")
        .replace("{version}", "1")
        .replace("{id}", "0190b5a4-0000-7000-8000-000000000000")
        .split('/')
        .map(|part| if part.starts_with('{') { "1" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn each_role_may_do_in_the_console_what_it_should() {
    let server = Server::start();
    user(&server, "root", "admin").await;
    let routes = routes();
    assert!(
        routes.len() > 25,
        "the source was not understood: {routes:?}"
    );
    for (role, rights) in ROLES {
        user(&server, &format!("a-{role}"), role).await;
        let browser = Browser::of_user(&server, &format!("a-{role}"), PASSWORD).await;
        for (method, pattern) in &routes {
            let path = address(pattern);
            // The head alone: what streams has no end.
            let verb: Method = method.parse().expect("a method");
            let request = browser
                .request(verb, &path)
                .header("x-csrf-token", &browser.csrf);
            let status = request.send().await.expect("an answer").status();
            let known = CONSOLE.iter().find(|(m, p, _)| m == method && p == pattern);
            let allowed = match known {
                Some((_, _, "anyone")) => Some(true),
                Some((_, _, right)) => Some(rights.contains(right)),
                None if role == "viewer" && *method != "GET" => Some(false),
                None => None,
            };
            assert!(
                !status.is_server_error(),
                "{role}: {method} {path}: {status}"
            );
            if let Some(allowed) = allowed {
                let shown = format!("{role}: {method} {pattern}: {status}");
                assert_eq!(status != 403, allowed, "{shown}");
            }
        }
        // Another site's page, or one without the session's token, does nothing in the role's name.
        let forged = browser.post("/account/sessions/end-others");
        browser.send(forged).await.expect(403);
    }
}

#[tokio::test]
async fn each_role_may_do_with_the_api_what_it_should() {
    let server = Server::start();
    user(&server, "root", "admin").await;
    for (role, rights) in ROLES {
        user(&server, &format!("a-{role}"), role).await;
        let browser = Browser::of_user(&server, &format!("a-{role}"), PASSWORD).await;
        for (method, path, body, needed) in access::routes() {
            // Nothing that others of these need is harmed.
            let path = path
                .replace("guarded", "absent")
                .replace("tokens/1", "tokens/999");
            let mut request = browser
                .request(method.clone(), &path)
                .header("x-csrf-token", &browser.csrf);
            if let Some(body) = &body {
                let body = body.to_string().replace("guarded", &format!("by-{role}"));
                request = request
                    .header("content-type", "application/json")
                    .body(body);
            }
            let answer = request.send().await.expect("an answer");
            let status = answer.status();
            let shown = format!("{role}: {method} {path}: {status}");
            assert!(!status.is_server_error(), "{shown}");
            if path.starts_with("/fn/") || path.starts_with("/chain/") {
                // A function's own address takes tokens only: the console's cookie is not for it.
                assert_eq!(status, 401, "{shown}");
            } else {
                assert_eq!(status != 403, rights.contains(&needed), "{shown}");
            }
        }
        // A change by the cookie alone could be another site's.
        if rights.contains(&"write") {
            let body = json!({"name": "forged", "runtime": "python3", "code": {"inline": ONE}});
            let forged = browser.post("/api/v1/functions").json(&body);
            browser.send(forged).await.problem(403, "forbidden");
        }
    }
}

/// What a role may not do is not offered to it.
#[tokio::test]
async fn pages_offer_what_the_role_may_do() {
    let server = Server::start();
    user(&server, "root", "admin").await;
    server.client().deploy("guarded", ONE, json!({})).await;
    for (role, rights) in ROLES {
        user(&server, &format!("a-{role}"), role).await;
        let browser = Browser::of_user(&server, &format!("a-{role}"), PASSWORD).await;
        let mut pages = String::new();
        for path in [
            "/",
            "/functions",
            "/account",
            "/functions/guarded",
            "/functions/guarded/code",
            "/functions/guarded/settings",
        ] {
            pages.push_str(&browser.get(path).await.expect(200).text());
        }
        for (offer, right) in [
            ("href=\"/new\"", "write"),
            ("id=\"save-button\"", "write"),
            ("id=\"delete-button\"", "write"),
            ("id=\"review-button\"", "write"),
            ("id=\"invoke-button\"", "invoke"),
            ("href=\"/users\"", "admin"),
            ("href=\"/ingress\"", "admin"),
            ("href=\"/tokens\"", "admin"),
            ("href=\"/audit\"", "admin"),
        ] {
            assert_eq!(
                pages.contains(offer),
                rights.contains(&right),
                "{role}: {offer}"
            );
        }
    }
}
