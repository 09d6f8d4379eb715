//! Calls the function's URL from the test panel, as a client would.

use std::str::FromStr;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use hearth_web::json::JsonText;
use hearth_web::pages::{HttpForm, InvokeOutcome};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::engine::{Invocation, InvokeError, InvokeReply};
use crate::http::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::http::trigger::event;
use crate::model::{InvalidField, Right, Trigger};

use super::form::{self, Form, Submitted};
use super::invoke::{self, Answered};

/// Longest answer that is read whole: the limit of an invocation's result. More of a stream is not waited for.
const MAX_READ_BYTES: usize = 6 << 20;
/// Longest image that is shown: it becomes part of the page.
const MAX_IMAGE_BYTES: usize = 1 << 20;
/// Image types that are displayed. SVG is excluded: it can contain scripts.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// `POST /functions/{name}/call`.
pub async fn submit(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted<form::Event>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Invoke)?;
    let typed = typed(&form);
    let outcome = match request(&name, &typed, &headers) {
        Err(error) => invoke::refused(&name, &Problem::from(error)),
        Ok(request) => run(&app, &name, request, typed.body.clone()).await?,
    };
    let answered = Answered {
        event: None,
        http: Some(typed),
        outcome,
    };
    invoke::answer(&app, &viewer, &name, &headers, answered).await
}

fn typed(form: &Form) -> HttpForm {
    HttpForm {
        method: form.trimmed("method"),
        path: form.trimmed("path"),
        query: form.trimmed("query"),
        headers: form.lines("headers"),
        body: form.lines("body"),
    }
}

/// The request as it would reach the trigger.
fn request(name: &str, typed: &HttpForm, page: &HeaderMap) -> Result<Request<()>, InvalidField> {
    let invalid = |field, value: &str, rule: &str| spec::invalid(field, &value.into(), rule);
    let method = Method::from_str(&typed.method)
        .map_err(|_| invalid("method", &typed.method, "must be an HTTP method"))?;
    let path = match typed.path.trim_start_matches('/') {
        "" => "/".to_owned(),
        path => format!("/{path}"),
    };
    let query = typed.query.trim_start_matches('?');
    let query = match query {
        "" => String::new(),
        query => format!("?{query}"),
    };
    let address = format!("/fn/{name}{path}{query}");
    let mut request = Request::builder()
        .method(method)
        .uri(utf8_percent_encode(&address, NOT_IN_URLS).to_string())
        .body(())
        .map_err(|_| invalid("path", &typed.path, "must be a URL path"))?;
    let headers = request.headers_mut();
    for own in [header::HOST, header::USER_AGENT] {
        if let Some(value) = page.get(&own) {
            headers.insert(own, value.clone());
        }
    }
    for line in typed.headers.lines().filter(|line| !line.trim().is_empty()) {
        let parsed = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_str(name.trim()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let Some((name, value)) = parsed else {
            return Err(invalid(
                "headers",
                line,
                "each line must be \"name: value\"",
            ));
        };
        headers.append(name, value);
    }
    if !typed.body.is_empty() {
        headers.insert(header::CONTENT_LENGTH, typed.body.len().into());
        headers
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    Ok(request)
}

/// Characters not allowed in a URL, which a browser's address bar encodes.
const NOT_IN_URLS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

async fn run(
    app: &App,
    name: &str,
    request: Request<()>,
    body: String,
) -> Result<InvokeOutcome, Problem> {
    let (parts, ()) = request.into_parts();
    let (_, raw_path) = event::split(parts.uri.path());
    let event = event::build(&parts, name, raw_path).map_err(Problem::internal)?;
    let body: BoxStream<'static, Result<Bytes, std::io::Error>> =
        stream::iter([Ok(Bytes::from(body))]).boxed();
    let (receipt, answer) = app
        .engine
        .invoke(Invocation::new(name, Trigger::Http, event).with_body(body))
        .await;
    if let Err(error @ InvokeError::NotFound(_)) = answer {
        return Err(error.into());
    }
    match answer {
        Ok(InvokeReply::Http {
            status,
            headers,
            body,
        }) => {
            let (bytes, broken) = read(body).await;
            let record = invoke::record(app, &receipt).await?;
            let mut outcome = invoke::outcome(name, &receipt, None, record);
            outcome.http_status = status;
            outcome.headers.splice(0..0, headers.iter().cloned());
            show(&mut outcome, &headers, &bytes);
            if let Some(broken) = broken {
                outcome.message = broken;
            }
            Ok(outcome)
        }
        answer => {
            let record = invoke::record(app, &receipt).await?;
            Ok(invoke::outcome(name, &receipt, Some(answer), record))
        }
    }
}

/// The body, and why there is no more of it.
async fn read(
    mut body: BoxStream<'static, Result<Bytes, std::io::Error>>,
) -> (Bytes, Option<String>) {
    let mut bytes = BytesMut::new();
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => {
                return (
                    bytes.freeze(),
                    Some(format!("The response broke off: {error}.")),
                );
            }
        }
        if bytes.len() > MAX_READ_BYTES {
            let limit = hearth_web::format::bytes(MAX_READ_BYTES as u64);
            return (
                bytes.freeze(),
                Some(format!("Reading the response stopped after {limit}.")),
            );
        }
    }
    (bytes.freeze(), None)
}

/// Shows a body as its type asks.
fn show(outcome: &mut InvokeOutcome, headers: &[(String, String)], bytes: &Bytes) {
    let kind = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .and_then(|(_, value)| value.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if IMAGES.contains(&kind.as_str()) && bytes.len() <= MAX_IMAGE_BYTES {
        outcome.image = Some(format!("data:{kind};base64,{}", STANDARD.encode(bytes)));
    } else if body::is_json(&kind) {
        outcome.result = Some(JsonText::new(bytes));
    } else if std::str::from_utf8(bytes).is_ok() {
        outcome.result = Some(JsonText::plain(bytes));
    } else {
        let size = hearth_web::format::bytes(bytes.len() as u64);
        let kind = if kind.is_empty() {
            "unknown type"
        } else {
            &kind
        };
        outcome.message = format!("The response is {size} of {kind} and is not shown.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(path: &str, query: &str, headers: &str, body: &str) -> HttpForm {
        HttpForm {
            method: "POST".into(),
            path: path.into(),
            query: query.into(),
            headers: headers.into(),
            body: body.into(),
        }
    }

    #[test]
    fn a_typed_call_becomes_a_request() {
        let typed = form(
            "items/ä b",
            "?a=1&b=x y",
            "Content-Type: application/json\nX-A: 1\n\nX-A:2",
            "{}",
        );
        let request = request("f", &typed, &HeaderMap::new()).expect("a request");
        assert_eq!(request.uri().path(), "/fn/f/items/%C3%A4%20b");
        assert_eq!(request.uri().query(), Some("a=1&b=x%20y"));
        assert_eq!(request.headers()["content-type"], "application/json");
        assert_eq!(request.headers().get_all("x-a").iter().count(), 2);
        assert_eq!(request.headers()["content-length"], "2");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let refused = |typed: &HttpForm| {
            request("f", typed, &HeaderMap::new())
                .expect_err("refused")
                .field
        };
        assert_eq!(refused(&form("/", "", "no colon", "")), "headers");
        assert_eq!(refused(&form("/", "", "a b: c", "")), "headers");
        let mut typed = form("/", "", "", "");
        typed.method = "GE T".into();
        assert_eq!(refused(&typed), "method");
    }
}
