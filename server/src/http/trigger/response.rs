//! From a function's response to HTTP. The function's response is not trusted: connection headers are dropped, invalid
//! ones are rejected.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use crate::http::finish::FunctionAnswer;

use super::headers::{Verdict, X_HEARTH_WITHHELD, judge};
use super::site::Site;

/// The body of a response as it comes from the engine.
pub(super) type ResponseBody = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// Most bytes of names of headers that an answer says were held back.
const MAX_WITHHELD_BYTES: usize = 512;

/// A response that HTTP cannot carry.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// Not a final status.
    #[error("statusCode must be from 200 to 599; it is {0}")]
    Status(u16),
    /// Not a token.
    #[error("{0:?} is not a valid header name")]
    Name(String),
    /// Line breaks or other control characters.
    #[error("the value of the header {0} contains characters that headers do not allow")]
    Value(String),
}

/// Builds the response. A body that will not be sent is read to its end, so that the invocation is not cancelled.
pub(super) fn build(
    method: &Method,
    site: Site,
    function: &str,
    status: u16,
    headers: Vec<(String, String)>,
    body: ResponseBody,
) -> Result<Response, Refused> {
    let head = StatusCode::from_u16(status)
        .ok()
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or(Refused::Status(status))
        .and_then(|status| Ok((status, checked(headers, method, site, function)?)));
    let (status, headers) = match head {
        Ok(head) => head,
        Err(refused) => {
            drain(body);
            return Err(refused);
        }
    };
    let bodiless = matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    let mut response = if bodiless {
        drain(body);
        Response::new(Body::empty())
    } else if *method == Method::HEAD {
        drain(body);
        // Of no known length, as the body that GET streams: a known one would be announced.
        let nothing = stream::empty::<Result<Bytes, std::io::Error>>();
        Response::new(Body::from_stream(nothing))
    } else {
        Response::new(Body::from_stream(body))
    };
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.extensions_mut().insert(FunctionAnswer);
    Ok(response)
}

fn checked(
    headers: Vec<(String, String)>,
    method: &Method,
    site: Site,
    function: &str,
) -> Result<HeaderMap, Refused> {
    let mut map = HeaderMap::with_capacity(headers.len() + 6);
    let mut withheld = String::new();
    for (name, value) in headers {
        let Ok(key) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(Refused::Name(name.chars().take(64).collect()));
        };
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
            return Err(Refused::Value(key.to_string()));
        };
        match judge(&key, value, method, site, function) {
            Verdict::Sent(value) => {
                map.append(key, value);
            }
            Verdict::Dropped => {}
            Verdict::Withheld => {
                let room = MAX_WITHHELD_BYTES.saturating_sub(withheld.len());
                if key.as_str().len() + 2 <= room {
                    let separator = if withheld.is_empty() { "" } else { ", " };
                    withheld.extend([separator, key.as_str()]);
                }
            }
        }
    }
    if let Ok(names) = HeaderValue::try_from(withheld)
        && !names.is_empty()
    {
        map.insert(X_HEARTH_WITHHELD, names);
    }
    Ok(map)
}

fn drain(mut body: ResponseBody) {
    tokio::spawn(async move { while let Some(Ok(_)) = body.next().await {} });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::to_bytes;

    use super::*;

    fn pieces(counter: &Arc<AtomicUsize>) -> ResponseBody {
        let counter = Arc::clone(counter);
        stream::iter(["ab", "c"])
            .map(move |piece| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(Bytes::from_static(piece.as_bytes()))
            })
            .boxed()
    }

    fn run(
        method: &Method,
        status: u16,
        headers: &[(&str, &str)],
    ) -> (Result<Response, Refused>, Arc<AtomicUsize>) {
        let counter = Arc::default();
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        (
            build(
                method,
                Site::Console,
                "f",
                status,
                headers,
                pieces(&counter),
            ),
            counter,
        )
    }

    #[tokio::test]
    async fn headers_of_the_connection_are_dropped() {
        let (response, _) = run(
            &Method::GET,
            201,
            &[
                ("Content-Type", "text/plain"),
                ("Transfer-Encoding", "chunked"),
                ("Content-Length", "9999"),
                ("X-Hearth-Start", "forged"),
                ("Service-Worker-Allowed", "/"),
                ("Set-Cookie", "a=1"),
                ("Set-Cookie", "b=2"),
                ("Set-Cookie", " hearth_session=stolen"),
            ],
        );
        let response = response.unwrap();
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers().len(), 4);
        assert_eq!(
            response.headers()["x-hearth-withheld-headers"],
            "service-worker-allowed, set-cookie"
        );
        assert_eq!(response.headers()["content-type"], "text/plain");
        assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
        assert_eq!(to_bytes(response.into_body(), 10).await.unwrap(), "abc");
    }

    #[tokio::test]
    async fn bodies_that_are_not_sent_are_read_to_the_end() {
        for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
            let (response, counter) = run(&method, status, &[("content-length", "3")]);
            let response = response.unwrap();
            assert_eq!(
                response.headers().contains_key("content-length"),
                method == Method::HEAD
            );
            assert!(to_bytes(response.into_body(), 10).await.unwrap().is_empty());
            tokio::task::yield_now().await;
            assert_eq!(counter.load(Ordering::SeqCst), 2);
        }
    }

    #[tokio::test]
    async fn what_http_cannot_carry_is_refused() {
        for status in [0, 99, 100, 101, 199, 600, 999, 65535] {
            assert!(matches!(
                run(&Method::GET, status, &[]).0,
                Err(Refused::Status(_))
            ));
        }
        let (bad_name, _) = run(&Method::GET, 200, &[("a b", "x")]);
        assert!(matches!(bad_name, Err(Refused::Name(_))));
        let (split, _) = run(&Method::GET, 200, &[("location", "/\r\nset-cookie: x=1")]);
        assert!(matches!(split, Err(Refused::Value(_))));
    }
}
