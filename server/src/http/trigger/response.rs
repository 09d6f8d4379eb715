//! From a function's response to HTTP. The function is not trusted to write one: what the connection owns is dropped,
//! what HTTP cannot carry is refused.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::http::finish::FunctionAnswer;

/// The body of a response as it comes from the engine.
pub(super) type ResponseBody = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// Headers that belong to the connection and not to the message (RFC 9110, 7.6.1), and those this server answers itself.
/// `content-length` is among them: the body is streamed, and a wrong length would cut it or break the connection.
const DROPPED: [&str; 12] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
    "traceparent",
    "date",
];
/// Headers that speak for the whole origin, which a function shares with the console and with other functions: a service
/// worker beyond its own path, the site's data, how to reach the host.
const ORIGIN_WIDE: [&str; 4] = [
    "alt-svc",
    "clear-site-data",
    "service-worker-allowed",
    "strict-transport-security",
];
/// Headers that only Hearth may set.
const RESERVED_PREFIX: &str = "x-hearth-";
/// Cookies of the console, which a function on the same origin must not set.
const RESERVED_COOKIES: [&str; 2] = ["hearth_", "__Host-hearth_"];

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
    #[error("the value of the header {0} has characters in it that a header cannot have")]
    Value(String),
}

/// Builds the response. A body that will not be sent is read to its end, so that the invocation is not cancelled.
pub(super) fn build(
    method: &Method,
    status: u16,
    headers: Vec<(String, String)>,
    body: ResponseBody,
) -> Result<Response, Refused> {
    let head = StatusCode::from_u16(status)
        .ok()
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or(Refused::Status(status))
        .and_then(|status| Ok((status, checked(headers, method)?)));
    let (status, headers) = match head {
        Ok(head) => head,
        Err(refused) => {
            drain(body);
            return Err(refused);
        }
    };
    let bodiless = *method == Method::HEAD
        || matches!(
            status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
        );
    let mut response = if bodiless {
        drain(body);
        Response::new(Body::empty())
    } else {
        Response::new(Body::from_stream(body))
    };
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.extensions_mut().insert(FunctionAnswer);
    Ok(response)
}

fn checked(headers: Vec<(String, String)>, method: &Method) -> Result<HeaderMap, Refused> {
    let mut map = HeaderMap::with_capacity(headers.len() + 6);
    for (name, value) in headers {
        let Ok(key) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(Refused::Name(name.chars().take(64).collect()));
        };
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
            return Err(Refused::Value(key.to_string()));
        };
        // The answer to HEAD has no body, so its length can only be the function's word.
        let length_of_head = *method == Method::HEAD && is_length(&key, &value);
        let dropped = DROPPED.contains(&key.as_str()) && !length_of_head;
        let not_its_own = ORIGIN_WIDE.contains(&key.as_str())
            || key.as_str().starts_with(RESERVED_PREFIX)
            || sets_console_cookie(&key, &value);
        if !dropped && !not_its_own {
            map.append(key, value);
        }
    }
    Ok(map)
}

fn is_length(name: &HeaderName, value: &HeaderValue) -> bool {
    *name == header::CONTENT_LENGTH && value.as_bytes().iter().all(u8::is_ascii_digit)
}

fn sets_console_cookie(name: &HeaderName, value: &HeaderValue) -> bool {
    *name == header::SET_COOKIE
        && RESERVED_COOKIES.iter().any(|prefix| {
            value
                .as_bytes()
                .trim_ascii_start()
                .starts_with(prefix.as_bytes())
        })
}

fn drain(mut body: ResponseBody) {
    tokio::spawn(async move { while let Some(Ok(_)) = body.next().await {} });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::to_bytes;
    use futures_util::stream;

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
        (build(method, status, headers, pieces(&counter)), counter)
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
        assert_eq!(response.headers().len(), 3);
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
