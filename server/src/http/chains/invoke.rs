//! `POST /api/v1/chains/{name}/routes/{route}/invoke`: the hot path, as for functions. No copy of a body that arrives in one
//! piece, no database access.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::receipt;
use crate::catalog::{ChainRequest, Target};
use crate::http::App;
use crate::http::auth;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::trace::{self, TRACEPARENT};
use crate::model::{Right, Trigger};

/// What the first member gets when nothing is sent, as Lambda does.
const EMPTY_EVENT: &[u8] = b"{}";

/// Send an event through a chain and wait for the result.
///
/// The body is the first member's event: any JSON up to the chain's `pool.payload_kb`, uncompressed, with any content type; an
/// empty body is the event `{}`. Each member's result is the next one's event; the response is the last one's. A
/// well-formed `traceparent` is passed to the members and returned; any other is ignored.
#[utoipa::path(
    post,
    path = "/api/v1/chains/{name}/routes/{route}/invoke",
    tag = "chains",
    operation_id = "invoke_chain",
    security(("bearer" = ["invoke"])),
    params(
        ("name" = String, Path, description = "Name of the chain"),
        ("route" = String, Path, description = "Name of the route"),
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context"),
    ),
    request_body(content = Option<serde_json::Value>, content_type = "application/json", description = "The event"),
    responses((status = 200, description = "The last member's result", body = serde_json::Value)),
    extensions(("x-chain-invocation" = json!(true)), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "function_error",
        "function_crashed", "result_too_large", "chain_rule_broken", "chain_pool_exhausted", "chain_unavailable", "shutting_down",
        "chain_timeout"
    ]))),
)]
pub async fn invoke(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (name, route) = names_in(parts.uri.path()).unwrap_or_default();
    let caller = auth::require(&app, &parts.method, &parts.headers, Right::Invoke).await?;
    auth::reach_all(&caller)?;
    let target = app.catalog.target(name).ok_or_else(|| no_chain(name))?;
    has_route(&target, route)?;
    body::check_coding(&parts.headers)?;
    let limit = target.spec().pool.payload_bytes() as usize;
    let mut event = body::read(body, limit).await?;
    if event.is_empty() {
        event = Bytes::from_static(EMPTY_EVENT);
    } else {
        body::check_json(&event)?;
    }
    let traceparent = parts.headers.get(TRACEPARENT);
    let traceparent = traceparent.and_then(|value| trace::checked(value.as_bytes()));
    let asked = ChainRequest {
        route,
        trigger: Trigger::Invoke,
        event,
        traceparent,
        age: Duration::ZERO,
    };
    let (receipt, result) = target.invoke(asked).await;
    let mut response = match result {
        Ok(result) => {
            let json = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, json)], result).into_response()
        }
        Err(error) => Problem::from(error).into_response(),
    };
    receipt::stamp(response.headers_mut(), &receipt, traceparent);
    Ok(response)
}

/// `{name}` and `{route}` of this route's path; `None` for other routes. Names need no decoding: an encoded name is invalid.
pub(in crate::http) fn names_in(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/api/v1/chains/")?;
    let (name, rest) = rest.strip_suffix("/invoke")?.split_once("/routes/")?;
    let is_one = |part: &str| !part.is_empty() && !part.contains('/');
    (is_one(name) && is_one(rest)).then_some((name, rest))
}

/// 404 for a chain.
pub fn no_chain(name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    Problem::not_found(format!("chain {shown:?}"))
}

/// 404 for a route that the chain does not have.
pub fn has_route(target: &Target, route: &str) -> Result<(), Problem> {
    let spec = target.spec();
    if spec.routes.contains_key(route) {
        return Ok(());
    }
    let shown: String = route.chars().take(64).collect();
    let chain = &spec.name;
    Err(Problem::not_found(format!(
        "route {shown:?} of chain {chain:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn the_names_are_between_the_parts_of_the_path() {
        let path = "/api/v1/chains/c/routes/r/invoke";
        assert_eq!(names_in(path), Some(("c", "r")));
        let path = "/api/v1/chains/routes/routes/invoke/invoke";
        assert_eq!(names_in(path), Some(("routes", "invoke")));
        for other in [
            "/api/v1/chains/c",
            "/api/v1/chains/c/routes/r",
            "/api/v1/chains/c/routes//invoke",
            "/api/v1/chains//routes/r/invoke",
            "/api/v1/chains/c/routes/a/b/invoke",
            "/api/v1/functions/c/invoke",
        ] {
            assert_eq!(names_in(other), None, "{other}");
        }
    }
}
