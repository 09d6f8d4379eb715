//! `POST /api/v1/functions/{name}/invoke`: the hot path. One pass over the headers, no copy of a body that arrives in
//! one piece, no database access.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::no_function;
use crate::engine::{Invocation, InvokeReply, VersionApart};
use crate::http::App;
use crate::http::answer;
use crate::http::auth;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::trace::{self, TRACEPARENT};
use crate::model::{InvalidField, Right, Trigger};

/// Longest event, as Lambda's. A longer one is refused, never cut.
pub const MAX_EVENT_BYTES: usize = 6 << 20;
/// Room for the headers of an answer, here and in the outermost layer.
const HEADERS: usize = 12;
/// What the handler gets when nothing is sent, as Lambda does.
const EMPTY_EVENT: &[u8] = b"{}";

/// Invoke a function and wait for its result.
///
/// The body is the event: any JSON of at most 6 MiB, uncompressed, with any content type; an empty body is the event
/// `{}`. The response is the handler's result as JSON. A well-formed `traceparent` is passed to the handler and
/// returned; any other is ignored.
#[utoipa::path(
    post,
    path = "/api/v1/functions/{name}/invoke",
    tag = "invocation",
    operation_id = "invoke_function",
    security(("bearer" = ["invoke"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context"),
    ),
    request_body(content = Option<serde_json::Value>, content_type = "application/json", description = "The event"),
    responses((status = 200, description = "The handler's result", body = serde_json::Value)),
    extensions(("x-invocation" = json!(true)), ("x-errors" = json!([
        "invalid_json", "bad_request_body", "not_found", "payload_too_large", "unsupported_media_type", "too_many_requests", "function_error",
        "function_crashed", "function_out_of_memory", "result_too_large", "function_unavailable", "host_exhausted", "shutting_down",
        "function_timeout"
    ]))),
)]
pub async fn invoke(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let name = name_in(parts.uri.path()).unwrap_or_default();
    run(&app, &parts, body, name, None).await
}

/// Checks the caller and the event, runs the function, and answers with the result. A `version` runs apart from the function's own
/// requests.
pub(super) async fn run(
    app: &App,
    parts: &Parts,
    body: Body,
    name: &str,
    version: Option<Result<VersionApart, InvalidField>>,
) -> Result<Response, Problem> {
    let mut bearer = None;
    let mut traceparent = None;
    let mut coding = Ok(());
    for (name, value) in &parts.headers {
        if *name == header::AUTHORIZATION {
            bearer = Some(value);
        } else if *name == TRACEPARENT {
            traceparent = trace::checked(value.as_bytes());
        } else if *name == header::CONTENT_ENCODING {
            coding = body::check_one_coding(value);
        }
    }
    let caller = match bearer {
        Some(value) => auth::require_bearer(app, value, Right::Invoke)?,
        None => auth::require(app, &parts.method, &parts.headers, Right::Invoke).await?,
    };
    auth::reach(&caller, name)?;
    if app.engine.is_public(name).is_none() {
        return Err(no_function(name));
    }
    coding?;
    let version = version.transpose()?;
    let mut event = body::read(body, MAX_EVENT_BYTES).await?;
    if event.is_empty() {
        event = Bytes::from_static(EMPTY_EVENT);
    } else {
        body::check_json(&event)?;
    }
    let mut invocation =
        Invocation::new(name, Trigger::Invoke, event).with_traceparent(traceparent);
    if let Some(version) = version {
        invocation = invocation.of_version(version);
    }
    let (receipt, outcome) = app.engine.invoke(invocation).await;
    let mut response = match outcome {
        Ok(InvokeReply::Json(result)) => {
            let mut response = Response::new(result.into());
            response.headers_mut().reserve(HEADERS);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Ok(InvokeReply::Http { .. }) => {
            Problem::internal("an invoke was answered as an HTTP trigger").into_response()
        }
        Err(error) => Problem::from(error).into_response(),
    };
    answer::stamp(response.headers_mut(), &receipt, traceparent);
    Ok(response)
}

/// `{name}` of this route's path; `None` for other routes. Names need no decoding: an encoded name is invalid.
pub(in crate::http) fn name_in(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/api/v1/functions/")?;
    let name = rest.strip_suffix("/invoke")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_between_prefix_and_suffix() {
        assert_eq!(name_in("/api/v1/functions/hello/invoke"), Some("hello"));
        assert_eq!(name_in("/api/v1/functions/invoke/invoke"), Some("invoke"));
        for other in ["/", "/api/v1/functions/invoke", "/api/v1/functions//invoke"] {
            assert_eq!(name_in(other), None, "{other}");
        }
        assert_eq!(name_in("/api/v1/functions/a/versions/invoke"), None);
    }
}
