//! The route table: every address of the API, in the order of its documentation. What is not registered here is neither
//! served nor documented.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Code, Problem};
use super::{App, finish, functions, health, invocations, metrics, node, openapi, tokens, trigger};

/// All documented routes.
pub(super) fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::document))
        .routes(routes!(node::node))
        .routes(routes!(functions::list::list, functions::create::create))
        .routes(routes!(
            functions::get::get,
            functions::patch::patch,
            functions::delete::delete
        ))
        .routes(routes!(functions::put_code::put_code))
        .routes(routes!(functions::versions::versions))
        .routes(routes!(functions::activate::activate))
        .routes(routes!(functions::invoke::invoke))
        .routes(routes!(functions::invocations::invocations))
        .routes(routes!(functions::stats::stats))
        .routes(routes!(functions::events::events))
        .routes(routes!(functions::logs::logs))
        .routes(routes!(invocations::invocation))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::delete))
}

/// The API with the HTTP trigger, without the layers that wrap everything.
pub(super) fn api() -> Router<App> {
    let (documented, _) = table().split_for_parts();
    // OpenAPI has no "any method" and no wildcard: openapi.rs describes these three by hand.
    documented
        .route("/fn/{name}", any(trigger::trigger))
        .route("/fn/{name}/", any(trigger::trigger))
        .route("/fn/{name}/{*path}", any(trigger::trigger))
}

/// Wraps a router in what every answer needs.
pub(super) fn wrap(router: Router<App>) -> Router<App> {
    router
        .fallback(no_such_address)
        .method_not_allowed_fallback(no_such_method)
        // Bodies are counted where they are read, each against its own limit.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(finish::finish))
}

async fn no_such_address(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    Problem::not_found(format!(
        "address {path}; /openapi.json lists those there are"
    ))
    .into_response()
}

/// axum adds `Allow`.
async fn no_such_method(request: Request) -> Response {
    let detail = format!("this address does not take {}; see Allow", request.method());
    Problem::new(Code::MethodNotAllowed, detail).into_response()
}
