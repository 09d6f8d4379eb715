//! `/fn/{name}`: a function as a web server; `chain.rs` is `/chain/{name}/{route}`. Any method, event and response in Lambda's payload format 2.0, bodies
//! streamed both ways.

mod answered;
mod body_of;
mod chain;
pub(super) mod cookies;
mod cors;
pub mod event;
mod headers;
mod response;
mod site;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;

use super::App;
use super::answer::stamp;
use super::auth;
use super::functions::no_function;
use super::inbound;
use super::problem::{Problem, ProblemCode};
use super::trace::{self, TRACEPARENT};
use crate::engine::{Invocation, InvokeError, InvokeReply};
use crate::model::{Caller, FunctionError, Right, Trigger};

pub use chain::{chain, own_chain_port};
use response::Refused;
use site::Site;

/// Handles every method and path under `/fn/` on the console's host.
pub async fn trigger(State(app): State<App>, request: Request) -> Response {
    let (name, raw_path) = event::split(request.uri().path());
    let (name, raw_path) = (Arc::<str>::from(name), raw_path.to_owned());
    answer(&app, Site::Console, name, &raw_path, request).await
}

/// Handles every request to the listener that belongs to functions.
pub async fn functions_only(app: &App, request: Request) -> Response {
    if !request.uri().path().starts_with("/fn/") {
        let detail = "address here; this listener serves only /fn/";
        return Problem::not_found(detail).into_response();
    }
    let (name, raw_path) = event::split(request.uri().path());
    let (name, raw_path) = (Arc::<str>::from(name), raw_path.to_owned());
    answer(app, Site::Functions, name, &raw_path, request).await
}

/// Handles every request to a function's own host.
pub async fn own_host(app: &App, name: &str, request: Request) -> Response {
    let raw_path = request.uri().path().to_owned();
    answer(app, Site::Own, Arc::from(name), &raw_path, request).await
}

/// Handles every request to a port of a function's own.
pub async fn own_port(app: &App, name: Arc<str>, request: Request) -> Response {
    let raw_path = request.uri().path().to_owned();
    answer(app, Site::Port, name, &raw_path, request).await
}

/// Answers a request for a function, or says why not, as the site asks for.
async fn answer(
    app: &App,
    site: Site,
    name: Arc<str>,
    raw_path: &str,
    request: Request,
) -> Response {
    let Some(cors) = app.engine.cors(&name) else {
        return isolated(app, site, name, raw_path, request).await;
    };
    let (parts, body) = request.into_parts();
    if let Some(mut answer) = cors::preflight(&cors, &parts) {
        site.isolate(answer.headers_mut());
        return answer;
    }
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let request = Request::from_parts(parts, body);
    let mut response = isolated(app, site, name, raw_path, request).await;
    cors::apply(&cors, origin.as_ref(), response.headers_mut());
    response
}

async fn isolated(
    app: &App,
    site: Site,
    name: Arc<str>,
    raw_path: &str,
    request: Request,
) -> Response {
    let answered = invoke(app, site, name, raw_path, request).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    site.isolate(response.headers_mut());
    response
}

async fn invoke(
    app: &App,
    site: Site,
    name: Arc<str>,
    raw_path: &str,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    site.check(parts.uri.path(), &parts.headers)?;
    let is_public = app.engine.is_public(&name);
    let reach = |caller: &Caller| auth::reach(caller, &name);
    admit(app, is_public, &mut parts.headers, reach, || {
        no_function(&name)
    })?;

    let traceparent = parts
        .headers
        .get(TRACEPARENT)
        .and_then(|value| trace::checked(value.as_bytes()))
        .map(str::to_owned);
    let event = event::build(&parts, &name, raw_path).map_err(Problem::internal)?;
    let body = body.into_data_stream().map_err(inbound::io_error);
    let invocation = Invocation::new(&name, Trigger::Http, event)
        .with_body(Box::pin(body))
        .with_traceparent(traceparent.as_deref());
    let (receipt, outcome) = app.engine.invoke(invocation).await;
    let answered = match outcome {
        Ok(InvokeReply::Http {
            status,
            headers,
            body,
        }) => response::build(&parts.method, site, &name, status, headers, body)
            .map_err(invalid_response),
        Ok(InvokeReply::Json(_)) => {
            Err(Problem::internal("an HTTP trigger was answered with JSON"))
        }
        Err(error) => Err(error.into()),
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    stamp(response.headers_mut(), &receipt, traceparent.as_deref());
    Ok(response)
}

/// Lets the request pass if the function or chain is public or the caller may invoke it. Without a token, nothing reveals which
/// of them exist (`is_public` is `None` for one that does not). Hearth's tokens and the console's cookies never reach the function.
fn admit(
    app: &App,
    is_public: Option<bool>,
    headers: &mut HeaderMap,
    reach: impl FnOnce(&Caller) -> Result<(), Problem>,
    missing: impl FnOnce() -> Problem,
) -> Result<(), Problem> {
    let authorization = headers.get(header::AUTHORIZATION);
    let outcome = match (is_public, authorization) {
        (Some(true), None) => Ok(()),
        (Some(true), Some(value)) => {
            // A public function's own `Authorization` is passed on; a Hearth token is not.
            if is_ours(app, value) {
                headers.remove(header::AUTHORIZATION);
            }
            Ok(())
        }
        (_, None) => Err(auth::unauthorized(
            "send Authorization: Bearer TOKEN",
            false,
        )),
        (known, Some(value)) => {
            let caller = auth::require_bearer(app, value, Right::Invoke)?;
            reach(&caller)?;
            headers.remove(header::AUTHORIZATION);
            match known {
                Some(_) => Ok(()),
                None => Err(missing()),
            }
        }
    };
    cookies::hide(headers);
    outcome
}

fn is_ours(app: &App, value: &HeaderValue) -> bool {
    auth::bearer(value).is_some_and(|secret| app.store.find_token(secret).is_some())
}

/// A response that HTTP cannot carry is the function's mistake: the same answer as an exception.
fn invalid_response(refused: Refused) -> Problem {
    let problem = Problem::from(InvokeError::Function(FunctionError {
        error_type: "Runtime.InvalidResponse".to_owned(),
        error_message: refused.to_string(),
        stack_trace: Vec::new(),
    }));
    debug_assert!(problem.code() == ProblemCode::FunctionError);
    problem
}
