//! The outermost layer: assigns the request id, turns panics and [`Problem`]s into responses, adds security headers.
//!
//! One function for the router and for the way round it, because the same stack of tower-http's layers (`catch-panic`,
//! `request-id`, `set-header`) allocates 9 more times per request, boxing each body and filling the extensions, and takes
//! over any id that a client sends.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::linger;
use super::problem::Problem;
use super::request_id::{RequestId, X_REQUEST_ID};

/// Marks an answer that a function gave: its headers are its own.
#[derive(Debug, Clone, Copy)]
pub struct FunctionAnswer;

/// The policy of responses that are not pages: nothing in them runs or may be framed.
const NO_PAGE: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");

/// See the module. The request's id is among its extensions.
pub async fn finish(request: Request, next: Next) -> Response {
    let mut response = around(request, async |mut request, id| {
        request.extensions_mut().insert(id.clone());
        next.run(request).await
    })
    .await;
    if response.extensions().get::<FunctionAnswer>().is_none() {
        let policy = response
            .headers_mut()
            .entry(header::CONTENT_SECURITY_POLICY);
        policy.or_insert(NO_PAGE);
    }
    response
}

/// The same around a handler that needs no extensions.
pub async fn around(
    request: Request,
    handler: impl AsyncFnOnce(Request, &RequestId) -> Response,
) -> Response {
    let (request, given_up) = linger::wrap(request);
    let id = RequestId::of(request.headers());
    let outcome = AssertUnwindSafe(handler(request, &id)).catch_unwind().await;
    let mut response = outcome.unwrap_or_else(|panic| {
        Problem::internal(format!("a handler panicked: {}", message(&*panic))).into_response()
    });

    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        if let Some(cause) = problem.cause() {
            tracing::error!(request_id = id.as_str(), cause, "request failed");
        }
        *response.body_mut() = problem.body(id.as_str());
    }
    let own = response.extensions().get::<FunctionAnswer>().is_some();
    given_up.tell(&mut response, own);
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, id.header());
    if !own {
        headers
            .entry(header::X_CONTENT_TYPE_OPTIONS)
            .or_insert(HeaderValue::from_static("nosniff"));
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
    }
    response
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::routing::get;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::http::problem::ProblemCode;

    async fn ask(path: &str) -> (Response, Value) {
        let app = Router::new()
            .route("/ok", get(|| async { "fine" }))
            .route(
                "/own",
                get(|| async { (axum::Extension(FunctionAnswer), "x") }),
            )
            .route(
                "/problem",
                get(|| async { Problem::new(ProblemCode::NotFound, "there is no \"x\"") }),
            )
            .route("/panic", get(|| async { panic!("boom") as String }))
            .layer(axum::middleware::from_fn(finish));
        let request = Request::builder()
            .uri(path)
            .header("x-request-id", "mine")
            .body(Body::empty())
            .unwrap();
        let response = app.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 20).await.unwrap();
        let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        (Response::from_parts(parts, Body::empty()), value)
    }

    #[tokio::test]
    async fn problems_are_rendered_with_the_id() {
        let (response, document) = ask("/problem").await;
        assert_eq!(response.status(), 404);
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
        assert_eq!(response.headers()["x-request-id"], "mine");
        assert_eq!(document["request_id"], "mine");
        assert_eq!(document["code"], "not_found");
    }

    #[tokio::test]
    async fn a_panic_is_a_500_that_tells_nothing() {
        let (response, document) = ask("/panic").await;
        assert_eq!(response.status(), 500);
        assert_eq!(document["code"], "internal");
        assert!(!document.to_string().contains("boom"));
    }

    #[tokio::test]
    async fn security_headers_are_for_the_api_only() {
        let (response, _) = ask("/ok").await;
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let (response, _) = ask("/own").await;
        assert!(response.headers().get("cache-control").is_none());
        assert_eq!(response.headers()["x-request-id"], "mine");
    }
}
