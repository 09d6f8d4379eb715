//! `/chain/{name}/{route}`, and ports of chains: a route of a chain as a web server. The event of its first member and the
//! result of its last are those of `/fn/`: Lambda's payload format 2.0. Both are at most as large as the chain's payloads may be.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use super::answered::{Answered, shape};
use super::{admit, body_of, event, invalid_response, response};
use crate::catalog::{ChainRequest, Target};
use crate::http::App;
use crate::http::auth;
use crate::http::body;
use crate::http::chains::{has_route, no_chain, receipt};
use crate::http::problem::Problem;
use crate::http::trace::{self, TRACEPARENT};
use crate::http::trigger::site::Site;
use crate::model::{FunctionError, Port, Trigger};

/// Handles every method and path under `/chain/`.
pub async fn chain(State(app): State<App>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let (name, rest) = name_in(&path);
    let target = app.catalog.target(name);
    answer(&app, Site::Console, name, target, Way::Path(rest), request).await
}

/// Handles every request to a port of a chain's own.
pub async fn own_chain_port(app: &App, name: &str, port: Port, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let target = app.catalog.target(name);
    let way = Way::Port(port, &path);
    answer(app, Site::Port, name, target, way, request).await
}

/// What says along which route a request goes.
enum Way<'a> {
    /// The first segment of this path.
    Path(&'a str),
    /// The setting of this port; if it has no route, the first segment of the path.
    Port(Port, &'a str),
}

impl<'a> Way<'a> {
    /// The route, and the path as the first member sees it.
    fn take(&'a self, target: &'a Target) -> Result<(&'a str, &'a str), Problem> {
        let path = match *self {
            Self::Path(path) => path,
            Self::Port(port, path) => {
                let spec = target.spec();
                let trigger = spec.trigger_at(port);
                let trigger =
                    trigger.ok_or_else(|| Problem::not_found("function or chain on this port"))?;
                if let Some(route) = spec.route_of(trigger) {
                    return Ok((route, path));
                }
                path.strip_prefix('/').unwrap_or(path)
            }
        };
        let (route, raw_path) = split(path);
        has_route(target, route)?;
        Ok((route, raw_path))
    }
}

async fn answer(
    app: &App,
    site: Site,
    name: &str,
    target: Option<Target>,
    way: Way<'_>,
    request: Request,
) -> Response {
    let answered = invoke(app, site, name, target, way, request).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    site.isolate(response.headers_mut());
    response
}

async fn invoke(
    app: &App,
    site: Site,
    name: &str,
    target: Option<Target>,
    way: Way<'_>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    site.check(parts.uri.path(), &parts.headers)?;
    let is_public = target.as_ref().map(|target| target.spec().public);
    admit(app, is_public, &mut parts.headers, auth::reach_all, || {
        no_chain(name)
    })?;
    let target = target.ok_or_else(|| no_chain(name))?;
    let (route, raw_path) = way.take(&target)?;

    let traceparent = parts
        .headers
        .get(TRACEPARENT)
        .and_then(|value| trace::checked(value.as_bytes()))
        .map(str::to_owned);
    let head = event::build(&parts, name, raw_path).map_err(Problem::internal)?;
    let limit = target.spec().pool.payload_bytes() as usize;
    let body = body::read(body, limit).await?;
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let asked = ChainRequest {
        route,
        trigger: Trigger::Http,
        event: body_of::with_body(&head, content_type, &body),
        traceparent: traceparent.as_deref(),
        age: Duration::ZERO,
    };
    let (receipt, result) = target.invoke(asked).await;
    let built = match result {
        Ok(result) => respond(&parts.method, site, name, result),
        Err(error) => Err(error.into()),
    };
    let mut response = built.unwrap_or_else(IntoResponse::into_response);
    receipt::stamp(response.headers_mut(), &receipt, traceparent.as_deref());
    Ok(response)
}

/// The last member's result as a response.
fn respond(method: &Method, site: Site, name: &str, result: Bytes) -> Result<Response, Problem> {
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
    response::build(method, site, name, status, headers, body).map_err(invalid_response)
}

/// Splits `/chain/{name}/rest` into name and rest.
fn name_in(path: &str) -> (&str, &str) {
    let rest = path.strip_prefix("/chain/").unwrap_or_default();
    rest.split_once('/').unwrap_or((rest, ""))
}

/// Splits `{route}/rest` into route, and path as the first member sees it: `/` at least.
fn split(path: &str) -> (&str, &str) {
    match path.find('/') {
        Some(at) => (&path[..at], &path[at..]),
        None => (path, "/"),
    }
}

#[cfg(test)]
mod tests {
    use super::{name_in, split};

    #[test]
    fn paths_are_split_after_the_route() {
        let parts = |path| {
            let (name, rest) = name_in(path);
            let (route, path) = split(rest);
            (name, route, path)
        };
        assert_eq!(parts("/chain/c/r"), ("c", "r", "/"));
        assert_eq!(parts("/chain/c/r/"), ("c", "r", "/"));
        assert_eq!(parts("/chain/c/r/a%20b//c"), ("c", "r", "/a%20b//c"));
        assert_eq!(parts("/chain/c"), ("c", "", "/"));
        assert_eq!(parts("/chain/"), ("", "", "/"));
    }
}
