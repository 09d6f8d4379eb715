//! `/chain/{name}/{route}`: a route of a chain as a web server. The event of its first member and the result of its last are
//! those of `/fn/`: Lambda's payload format 2.0. Both fit a block of the chain's pool.

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use super::answered::{Answered, shape};
use super::{admit, body_of, event, invalid_response, response};
use crate::catalog::ChainRequest;
use crate::http::App;
use crate::http::auth;
use crate::http::body;
use crate::http::chains::{has_route, no_chain, receipt};
use crate::http::problem::Problem;
use crate::http::trace::{self, TRACEPARENT};
use crate::http::trigger::site::Site;
use crate::model::{FunctionError, Trigger};

/// Handles every method and path under `/chain/`.
pub async fn chain(State(app): State<App>, request: Request) -> Response {
    let answered = invoke(&app, request).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    Site::Console.isolate(response.headers_mut());
    response
}

async fn invoke(app: &App, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let (name, route, raw_path) = split(&path);
    Site::Console.check(&path, &parts.headers)?;
    let target = app.catalog.target(name);
    let is_public = target.as_ref().map(|target| target.spec().public);
    admit(app, is_public, &mut parts.headers, auth::reach_all, || {
        no_chain(name)
    })?;
    let target = target.ok_or_else(|| no_chain(name))?;
    has_route(&target, route)?;

    let traceparent = parts
        .headers
        .get(TRACEPARENT)
        .and_then(|value| trace::checked(value.as_bytes()))
        .map(str::to_owned);
    let head = event::build(&parts, name, raw_path).map_err(Problem::internal)?;
    let block = target.spec().pool.block_bytes() as usize;
    let body = body::read(body, block).await?;
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let asked = ChainRequest {
        route,
        trigger: Trigger::Http,
        event: body_of::with_body(&head, content_type, &body),
        traceparent: traceparent.as_deref(),
    };
    let (receipt, result) = target.invoke(asked).await;
    let built = match result {
        Ok(result) => answer(&parts.method, name, result),
        Err(error) => Err(error.into()),
    };
    let mut response = built.unwrap_or_else(IntoResponse::into_response);
    receipt::stamp(response.headers_mut(), &receipt, traceparent.as_deref());
    Ok(response)
}

/// The last member's result as a response.
fn answer(method: &axum::http::Method, name: &str, result: Bytes) -> Result<Response, Problem> {
    let Answered {
        status,
        headers,
        body,
    } = shape(result).map_err(|wrong| {
        Problem::from(crate::engine::InvokeError::Function(FunctionError {
            error_type: "Runtime.InvalidResponse".to_owned(),
            error_message: wrong.to_string(),
            stack_trace: Vec::new(),
        }))
    })?;
    let body = stream::once(std::future::ready(Ok(body))).boxed();
    response::build(method, Site::Console, name, status, headers, body).map_err(invalid_response)
}

/// Splits `/chain/{name}/{route}/rest` into name, route, and path as the first member sees it: `/` at least.
fn split(path: &str) -> (&str, &str, &str) {
    let rest = path.strip_prefix("/chain/").unwrap_or_default();
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match rest.find('/') {
        Some(at) => (name, &rest[..at], &rest[at..]),
        None => (name, rest, "/"),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn paths_are_split_after_the_route() {
        assert_eq!(split("/chain/c/r"), ("c", "r", "/"));
        assert_eq!(split("/chain/c/r/"), ("c", "r", "/"));
        assert_eq!(split("/chain/c/r/a%20b//c"), ("c", "r", "/a%20b//c"));
        assert_eq!(split("/chain/c"), ("c", "", "/"));
        assert_eq!(split("/chain/"), ("", "", "/"));
    }
}
