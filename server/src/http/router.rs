//! The route table: every address of the API, in the order of its documentation. Only what is registered here is served
//! and documented.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Problem, ProblemCode};
use super::{
    App, audit, chains, console, experiments, finish, functions, health, ingress, invocations,
    metrics, node, openapi, retention, secrets, tokens, trigger, users,
};

/// All documented routes.
pub(super) fn table() -> OpenApiRouter<App> {
    recorded()
        .routes(routes!(functions::invoke::invoke))
        .routes(routes!(functions::invoke_version::invoke_version))
        .routes(routes!(chains::invoke::invoke))
}

/// Those whose changes the audit log records.
fn recorded() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::document))
        .routes(routes!(node::node))
        .routes(routes!(ingress::get))
        .routes(routes!(ingress::lists))
        .routes(routes!(ingress::put, ingress::delete))
        .routes(routes!(functions::list::list, functions::create::create))
        .routes(routes!(
            functions::get::get,
            functions::patch::patch,
            functions::delete::delete
        ))
        .routes(routes!(functions::put_code::put_code))
        .routes(routes!(
            functions::versions::versions,
            functions::add_version::add_version
        ))
        .routes(routes!(functions::version_code::version_code))
        .routes(routes!(functions::copy::copy))
        .routes(routes!(functions::activate::activate))
        .routes(routes!(
            functions::gate::get,
            functions::gate::put,
            functions::gate::delete
        ))
        .routes(routes!(functions::saved_events::list))
        .routes(routes!(
            functions::saved_events::get,
            functions::saved_events::put,
            functions::saved_events::delete
        ))
        .routes(routes!(functions::invocations::invocations))
        .routes(routes!(functions::stats::stats))
        .routes(routes!(functions::latency::latency))
        .routes(routes!(functions::what_if::what_if))
        .routes(routes!(functions::performance::performance))
        .routes(routes!(functions::events::events))
        .routes(routes!(functions::logs::logs))
        .routes(routes!(functions::ingress::ingress))
        .routes(routes!(functions::network::network))
        .routes(routes!(chains::list::list, chains::create::create))
        .routes(routes!(
            chains::get::get,
            chains::put::put,
            chains::patch::patch,
            chains::delete::delete
        ))
        .routes(routes!(chains::versions::versions))
        .routes(routes!(chains::workloads::list))
        .routes(routes!(chains::workloads::deploy))
        .routes(routes!(chains::activate::activate))
        .routes(routes!(chains::ingress::ingress))
        .routes(routes!(invocations::invocation))
        .routes(routes!(invocations::explain))
        .routes(routes!(
            experiments::read::list,
            experiments::create::create
        ))
        .routes(routes!(experiments::read::get, experiments::change::delete))
        .routes(routes!(experiments::change::cancel))
        .routes(routes!(
            experiments::read::file,
            experiments::agent::add_file
        ))
        .routes(routes!(experiments::create::create_taken))
        .routes(routes!(experiments::agent::next))
        .routes(routes!(experiments::agent::progress))
        .routes(routes!(experiments::agent::end))
        .routes(routes!(retention::get, retention::patch))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::put, secrets::delete))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::delete))
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::patch, users::delete))
        .routes(routes!(audit::audit))
}

/// The API without what invokes functions, and without the layers that wrap everything.
pub(super) fn api() -> Router<App> {
    let (documented, _) = recorded().split_for_parts();
    // Bodies are counted where they are read, each against its own limit.
    documented.layer(DefaultBodyLimit::disable())
}

/// What invokes functions: the hot path, with as few layers as possible around it.
pub(super) fn invocations() -> Router<App> {
    let invoke = OpenApiRouter::new()
        .routes(routes!(functions::invoke::invoke))
        .routes(routes!(functions::invoke_version::invoke_version))
        .routes(routes!(chains::invoke::invoke));
    let (documented, _) = invoke.split_for_parts();
    // OpenAPI has no "any method" and no wildcard: openapi.rs describes these by hand.
    documented
        .route("/fn/{name}", any(trigger::trigger))
        .route("/fn/{name}/", any(trigger::trigger))
        .route("/fn/{name}/{*path}", any(trigger::trigger))
        .route("/chain/{name}/{route}", any(trigger::chain))
        .route("/chain/{name}/{route}/", any(trigger::chain))
        .route("/chain/{name}/{route}/{*path}", any(trigger::chain))
        // Bodies are counted where they are read, each against its own limit.
        .layer(DefaultBodyLimit::disable())
}

/// Wraps a router in what every answer needs.
pub(super) fn wrap<S>(router: Router<S>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    router
        .fallback(no_such_address)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(finish::finish))
}

async fn no_such_address(request: Request) -> Response {
    if let Some(page) = console::not_found(&request) {
        return page;
    }
    let path: String = request.uri().path().chars().take(200).collect();
    Problem::not_found(format!(
        "address {path}; see /openapi.json for all addresses"
    ))
    .into_response()
}

/// axum adds `Allow`.
async fn no_such_method(request: Request) -> Response {
    let detail = format!(
        "{} is not allowed at this address; see the Allow header",
        request.method()
    );
    Problem::new(ProblemCode::MethodNotAllowed, detail).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use axum::routing::{get, post};
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::http::path::Path;

    async fn ask(method: &str, path: &str) -> (StatusCode, Option<String>, Value) {
        let router = Router::new()
            .route("/a", get(|| async {}).put(|| async {}))
            .route("/b", post(|| async {}))
            .route("/p/{name}", get(|_: Path<String>| async {}));
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        let response = wrap(router).oneshot(request).await.unwrap();
        let allow = response.headers().get("allow");
        let allow = allow.map(|value| value.to_str().unwrap().to_owned());
        let status = response.status();
        assert!(response.headers().contains_key("x-request-id"));
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (
            status,
            allow,
            serde_json::from_slice(&body).unwrap_or_default(),
        )
    }

    #[tokio::test]
    async fn wrong_addresses_and_methods_are_problems() {
        let (status, _, problem) = ask("GET", "/c").await;
        assert_eq!(status, 404);
        assert_eq!(problem["code"], "not_found");

        let (status, allow, problem) = ask("DELETE", "/a").await;
        assert_eq!(status, 405);
        assert_eq!(allow.as_deref(), Some("GET,HEAD,PUT"));
        assert_eq!(problem["code"], "method_not_allowed");

        let (status, _, problem) = ask("GET", "/p/%ff").await;
        assert_eq!(status, 404);
        assert_eq!(problem["code"], "not_found");

        assert_eq!(ask("GET", "/p/%61").await.0, 200);
        assert_eq!(ask("GET", "/b").await.0, 405);
        assert_eq!(ask("PUT", "/a").await.0, 200);
    }

    #[test]
    fn the_real_table_has_no_conflicting_routes() {
        // axum panics on a conflict.
        let _ = wrap(api().merge(invocations()));
    }
}
