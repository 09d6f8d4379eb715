//! One request of a function: checked, given its secrets, sent on; and its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use tokio::time::timeout;

use super::timely::Timely;
use super::upstream::{Sender, Upstream};
use super::{Broker, Reach};
use crate::model::BoundHost;

/// Hop-by-hop headers (RFC 9110, 7.6.1). hyper answers `Expect`.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("expect"),
];

/// What a function gets: the host's response, or a refusal.
pub(super) type Answer = Response<Either<Timely, Full<Bytes>>>;

/// Why a request was not sent, or has no response.
struct Refusal(StatusCode, String);

/// Forwards a request to the host that the connection is for.
pub(super) async fn forward<R: Reach>(
    broker: &Broker,
    upstream: &Arc<Upstream<R>>,
    host: &BoundHost,
    request: Request<Incoming>,
) -> Answer {
    match try_forward(broker, upstream, host, request).await {
        Ok(response) => response,
        Err(Refusal(status, detail)) => {
            tracing::debug!(function = broker.function, %host, %status, detail, "a request with a secret was not forwarded");
            refused(status, &detail)
        }
    }
}

async fn try_forward<R: Reach>(
    broker: &Broker,
    upstream: &Arc<Upstream<R>>,
    host: &BoundHost,
    request: Request<Incoming>,
) -> Result<Answer, Refusal> {
    let (mut parts, body) = request.into_parts();
    parts.uri = target(&parts.method, &parts.uri, &parts.headers, host)?;
    remove_hop_by_hop(&mut parts.headers);
    let name = HeaderValue::from_str(&host.to_string())
        .map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.to_string()))?;
    parts.headers.insert(HOST, name);
    for credential in broker.bound.get(host).into_iter().flatten() {
        credential
            .put(&mut parts.headers, &broker.secrets)
            .map_err(|error| Refusal(StatusCode::BAD_GATEWAY, error.to_string()))?;
    }
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    let body = Timely::new(body, upstream.deadlines.request_body);
    let (response, sender) = send(upstream, host, Request::from_parts(parts, body)).await?;
    upstream.keep(host.clone(), sender);
    let (mut parts, body) = response.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    let body = Timely::new(body, upstream.deadlines.response_body);
    Ok(Response::from_parts(parts, Either::Left(body)))
}

/// Path and query of a request, which must be for this host.
fn target(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    host: &BoundHost,
) -> Result<Uri, Refusal> {
    if method == Method::CONNECT {
        let detail = "CONNECT is not for here".to_owned();
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, detail));
    }
    let mut named: Vec<&str> = Vec::new();
    for value in headers.get_all(HOST) {
        let text = value.to_str();
        named.push(text.map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.to_string()))?);
    }
    named.extend(uri.authority().map(|authority| authority.as_str()));
    if named.is_empty() {
        let detail = "the request names no host".to_owned();
        return Err(Refusal(StatusCode::BAD_REQUEST, detail));
    }
    let is_host = |text: &&str| text.parse::<BoundHost>().as_ref() == Ok(host);
    if let Some(other) = named.iter().find(|text| !is_host(text)) {
        let other: String = other.chars().take(100).collect();
        let detail = format!("the connection is to {host}, and the request to {other}");
        return Err(Refusal(StatusCode::MISDIRECTED_REQUEST, detail));
    }
    let path = uri.path_and_query().cloned();
    let path = path.ok_or_else(|| Refusal(StatusCode::BAD_REQUEST, "no path".to_owned()))?;
    Ok(path.into())
}

/// Removes hop-by-hop headers, those that `Connection` names included.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Sends a request over a kept connection if there is one. If that turns out to be closed and nothing of the request was
/// sent, sends it over a new one.
async fn send<R: Reach>(
    upstream: &Upstream<R>,
    host: &BoundHost,
    mut request: Request<Timely>,
) -> Result<(Response<Incoming>, Sender), Refusal> {
    let limit = upstream.deadlines.response_head;
    if let Some(mut sender) = upstream.kept(host) {
        match exchange(&mut sender, request, limit).await? {
            Ok(response) => return Ok((response, sender)),
            Err(Failed(_, Some(again))) => request = again,
            Err(failed) => return Err(failed.refusal(host)),
        }
    }
    let unreachable = |error| Refusal(StatusCode::BAD_GATEWAY, format!("{host}: {error}"));
    let mut sender = upstream.connect(host).await.map_err(unreachable)?;
    match exchange(&mut sender, request, limit).await? {
        Ok(response) => Ok((response, sender)),
        Err(failed) => Err(failed.refusal(host)),
    }
}

/// How an exchange failed, and the request if nothing of it was sent.
struct Failed(hyper::Error, Option<Request<Timely>>);

impl Failed {
    fn refusal(self, host: &BoundHost) -> Refusal {
        Refusal(StatusCode::BAD_GATEWAY, format!("{host}: {}", self.0))
    }
}

async fn exchange(
    sender: &mut Sender,
    request: Request<Timely>,
    limit: Duration,
) -> Result<Result<Response<Incoming>, Failed>, Refusal> {
    let late = |_| {
        let detail = format!("no response within {limit:?}");
        Refusal(StatusCode::GATEWAY_TIMEOUT, detail)
    };
    let sent = timeout(limit, sender.try_send_request(request));
    Ok(sent.await.map_err(late)?.map_err(|mut error| {
        let request = error.take_message();
        Failed(error.into_error(), request)
    }))
}

/// An error of the broker itself.
fn refused(status: StatusCode, detail: &str) -> Answer {
    let text = serde_json::json!({"error": "secret_broker", "message": detail}).to_string();
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    // Otherwise what was not read of the body would be taken for the next request.
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> BoundHost {
        "api.example.com".parse().unwrap()
    }

    fn read(uri: &str, hosts: &[&str]) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_str(host).unwrap());
        }
        target(&Method::GET, &uri.parse().unwrap(), &headers, &host())
            .map(|uri| uri.to_string())
            .map_err(|Refusal(status, _)| status.as_u16())
    }

    #[test]
    fn a_request_is_for_the_host_of_its_connection() {
        assert_eq!(
            read("/v1?a=b", &["api.example.com"]).as_deref(),
            Ok("/v1?a=b")
        );
        assert_eq!(read("/", &["API.example.com:443"]).as_deref(), Ok("/"));
        let whole = "https://api.example.com/v1";
        assert_eq!(read(whole, &["api.example.com"]).as_deref(), Ok("/v1"));
        for (uri, hosts) in [
            ("/", &["evil.example"][..]),
            ("/", &["api.example.com:8443"]),
            ("/", &["api.example.com", "evil.example"]),
            ("https://evil.example/", &["api.example.com"]),
            ("https://user@api.example.com/", &["api.example.com"]),
        ] {
            assert_eq!(read(uri, hosts), Err(421), "{uri} {hosts:?}");
        }
        assert_eq!(read("/", &[]), Err(400));
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("x-end", "2"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-end"]);
    }
}
