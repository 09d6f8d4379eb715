//! `/fn/{name}`: a function as a web server. Any method, event and response in Lambda's payload format 2.0, bodies
//! streamed both ways.

pub mod event;
mod origin;
mod response;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;

use super::App;
use super::answer;
use super::auth;
use super::functions::no_function;
use super::problem::{Code, Problem};
use super::trace::{self, TRACEPARENT};
use crate::engine::{InvokeError, InvokeReply, InvokeRequest};
use crate::model::{FunctionError, Right, Trigger};

use response::Refused;

/// Handles every method and path under `/fn/`.
pub async fn trigger(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let (name, raw_path) = event::split(parts.uri.path());
    let (name, raw_path) = (Arc::<str>::from(name), raw_path.to_owned());
    origin::refuse_service_worker(&parts.headers)?;
    let from_console = origin::has_session(&parts.headers);
    admit(&app, &name, &mut parts.headers)?;

    let traceparent = parts
        .headers
        .get(TRACEPARENT)
        .and_then(|value| trace::checked(value.as_bytes()))
        .map(str::to_owned);
    let event = event::build(&parts, &name, &raw_path).map_err(Problem::internal)?;
    let body = body.into_data_stream().map_err(std::io::Error::other);
    let request = InvokeRequest {
        function: name,
        trigger: Trigger::Http,
        event,
        body: Some(Box::pin(body)),
        traceparent: traceparent.clone(),
    };
    let (meta, outcome) = app.engine.invoke(request).await;
    let answered = match outcome {
        Ok(InvokeReply::Http {
            status,
            headers,
            body,
        }) => response::build(&parts.method, status, headers, body).map_err(invalid_response),
        Ok(InvokeReply::Json(_)) => {
            Err(Problem::internal("an HTTP trigger was answered with JSON"))
        }
        Err(error) => Err(error.into()),
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    answer::stamp(response.headers_mut(), &meta, traceparent.as_deref());
    if from_console {
        origin::isolate(response.headers_mut());
    }
    Ok(response)
}

/// Lets the request pass when the function is public or the caller may invoke. Someone without a token learns nothing
/// about which functions there are. A token of ours and the console's cookies never reach the function.
fn admit(app: &App, name: &str, headers: &mut HeaderMap) -> Result<(), Problem> {
    let visibility = app.engine.is_public(name);
    let authorization = headers.get(header::AUTHORIZATION);
    let outcome = match (visibility, authorization) {
        (Some(true), None) => Ok(()),
        (Some(true), Some(value)) => {
            // A public function's own authorization passes; a token of ours that came along does not.
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
            auth::reach(&caller, name)?;
            headers.remove(header::AUTHORIZATION);
            match known {
                Some(_) => Ok(()),
                None => Err(no_function(name)),
            }
        }
    };
    event::hide_console_cookies(headers);
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
    debug_assert!(problem.code() == Code::FunctionError);
    problem
}
