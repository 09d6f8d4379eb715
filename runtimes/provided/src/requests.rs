//! The requests of the Runtime API, version 2018-06-01: their paths, headers and bodies.

use std::convert::Infallible;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::api::{Api, Asked, Refusal, Said};
use crate::error::FunctionError;
use crate::streaming::{self, of_trailers};

const VERSION: &str = "/2018-06-01/runtime/";
const REQUEST_ID: &str = "lambda-runtime-aws-request-id";
const DEADLINE: &str = "lambda-runtime-deadline-ms";
const ARN: &str = "lambda-runtime-invoked-function-arn";
const TRACE: &str = "lambda-runtime-trace-id";
pub(crate) const ERROR_TYPE: &str = "lambda-runtime-function-error-type";
/// Longest error report.
const ERROR_BYTES: usize = 1 << 20;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Answers one request.
pub(crate) async fn serve(api: Api, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().strip_prefix(VERSION).unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let (is_get, is_post) = (head.method == Method::GET, head.method == Method::POST);
    let headers = head.headers;
    Ok(match parts.as_slice() {
        ["invocation", "next"] if is_get => next(&api).await,
        ["invocation", id, "response"] if is_post => {
            let id = (*id).to_owned();
            apart(async move { response(&api, &id, &headers, body).await }).await
        }
        ["invocation", id, "error"] if is_post => {
            let id = (*id).to_owned();
            apart(async move { error(&api, &id, &headers, body).await }).await
        }
        ["init", "error"] if is_post => {
            apart(async move { init_error(&api, &headers, body).await }).await
        }
        ["invocation", "next"] | ["invocation", _, "response" | "error"] | ["init", "error"] => {
            let said = "the path has another method in the Runtime API";
            refused(StatusCode::METHOD_NOT_ALLOWED, "InvalidMethod", said)
        }
        _ => {
            let said = "no such path in the Runtime API of 2018-06-01";
            refused(StatusCode::NOT_FOUND, "InvalidPath", said)
        }
    })
}

/// Answers in a task of its own: a client that has hung up once it had sent its body, as one that has ended, takes its
/// connection and what waits in it with it, but is to be heard.
async fn apart(answer: impl Future<Output = Answer> + Send + 'static) -> Answer {
    tokio::spawn(answer).await.unwrap_or_else(|_| unread())
}

async fn next(api: &Api) -> Answer {
    let event = match api.ask() {
        Ok(Asked::Now(event)) => event,
        Ok(Asked::Later(given)) => match given.await {
            Ok(event) => event,
            // This process ends.
            Err(_) => return of_refusal(Refusal::InvalidStateTransition),
        },
        Err(refusal) => return of_refusal(refusal),
    };
    let mut response = Response::new(Full::new(event.body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(DEADLINE, event.deadline_ms.into());
    let texts = [
        (REQUEST_ID, Some(event.id)),
        (ARN, Some(event.arn)),
        (TRACE, event.trace),
    ];
    for (name, value) in texts {
        // Nothing but printable ASCII is in them.
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    response
}

async fn response(api: &Api, id: &str, headers: &HeaderMap, mut body: Incoming) -> Answer {
    let answering = match api.answer(id) {
        Ok(answering) => answering,
        Err(refusal) => return of_refusal(refusal),
    };
    if streaming::is_one(headers) {
        return streaming::pass_on(answering, headers, body).await;
    }
    let limit = answering.limit();
    let mut failed = None;
    match (whole(&mut body, limit, &mut failed).await, failed) {
        (Ok(_), Some(error)) => {
            answering.finish(Said::Error(error)).await;
            accepted()
        }
        (Ok(Some(bytes)), None) => {
            answering.finish(Said::Answer(bytes)).await;
            accepted()
        }
        (Ok(None), None) => {
            answering.finish(Said::TooLong).await;
            let said = format!("Exceeded maximum allowed payload size ({limit} bytes).");
            refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                &said,
            )
        }
        (Err(_), _) => unread(),
    }
}

async fn error(api: &Api, id: &str, headers: &HeaderMap, mut body: Incoming) -> Answer {
    let answering = match api.answer(id) {
        Ok(answering) => answering,
        Err(refusal) => return of_refusal(refusal),
    };
    match whole(&mut body, ERROR_BYTES, &mut None).await {
        Ok(bytes) => {
            answering
                .finish(Said::Error(reported(bytes, headers)))
                .await;
            accepted()
        }
        Err(_) => unread(),
    }
}

async fn init_error(api: &Api, headers: &HeaderMap, mut body: Incoming) -> Answer {
    let Ok(bytes) = whole(&mut body, ERROR_BYTES, &mut None).await else {
        return unread();
    };
    match api.init_failed(reported(bytes, headers)) {
        Ok(()) => accepted(),
        Err(refusal) => of_refusal(refusal),
    }
}

fn reported(body: Option<Bytes>, headers: &HeaderMap) -> FunctionError {
    let header = headers.get(ERROR_TYPE).and_then(|name| name.to_str().ok());
    match body {
        Some(body) => FunctionError::reported(&body, header),
        None => FunctionError::new(
            header.unwrap_or("Runtime.Unknown"),
            &format!("the error's report was longer than {ERROR_BYTES} bytes"),
        ),
    }
}

/// The whole body; nothing if it is longer than `limit` bytes, in which case the rest is read and dropped, so that its client
/// hears of it. `failed` is the error in its trailers, if there is one.
async fn whole(
    body: &mut Incoming,
    limit: usize,
    failed: &mut Option<FunctionError>,
) -> hyper::Result<Option<Bytes>> {
    let mut all = BytesMut::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let piece = match frame?.into_data() {
            Ok(piece) => piece,
            Err(frame) => {
                *failed = frame.into_trailers().ok().as_ref().and_then(of_trailers);
                continue;
            }
        };
        length = length.saturating_add(piece.len());
        if length <= limit {
            all.extend_from_slice(&piece);
        } else {
            all = BytesMut::new();
        }
    }
    Ok((length <= limit).then(|| all.freeze()))
}

pub(crate) fn accepted() -> Answer {
    json_answer(StatusCode::ACCEPTED, &json!({"status": "OK"}))
}

pub(crate) fn unread() -> Answer {
    refused(
        StatusCode::BAD_REQUEST,
        "InvalidRequest",
        "the body broke off",
    )
}

fn of_refusal(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::InvalidRequestId => refused(
            StatusCode::BAD_REQUEST,
            "InvalidRequestID",
            "Invalid request ID",
        ),
        Refusal::InvalidStateTransition => {
            let said = "the request has no place in the runtime's present state";
            refused(StatusCode::FORBIDDEN, "InvalidStateTransition", said)
        }
    }
}

fn refused(status: StatusCode, error_type: &str, message: &str) -> Answer {
    json_answer(
        status,
        &json!({"errorType": error_type, "errorMessage": message}),
    )
}

fn json_answer(status: StatusCode, body: &serde_json::Value) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
