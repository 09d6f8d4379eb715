//! From an HTTP request to the payload-2.0 event, without the body, which the runtime adds.
//!
//! Source: "Invoking function URLs", AWS Lambda developer guide, request payload format 2.0.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Version, header};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use crate::http::request_id::RequestId;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    version: &'static str,
    route_key: &'static str,
    raw_path: &'a str,
    raw_query_string: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cookies: Vec<String>,
    headers: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    query_string_parameters: BTreeMap<String, String>,
    request_context: RequestContext<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext<'a> {
    account_id: &'static str,
    api_id: &'a str,
    domain_name: &'a str,
    domain_prefix: &'a str,
    http: Http<'a>,
    request_id: &'a str,
    route_key: &'static str,
    stage: &'static str,
    time: String,
    time_epoch: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Http<'a> {
    method: &'a str,
    path: &'a str,
    protocol: &'static str,
    source_ip: String,
    user_agent: Cow<'a, str>,
}

/// Splits `/fn/{name}/rest` into name and path as the function sees it: still percent-encoded, `/` at least.
pub(in crate::http) fn split(path: &str) -> (&str, &str) {
    let rest = path.strip_prefix("/fn/").unwrap_or_default();
    match rest.find('/') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, "/"),
    }
}

/// The event as JSON text.
// Kept as a function of its own: `make bench SUITE=chains` counts its calls.
#[inline(never)]
pub(in crate::http) fn build(
    parts: &Parts,
    name: &str,
    raw_path: &str,
) -> serde_json::Result<Bytes> {
    let now = Timestamp::now();
    let headers = &parts.headers;
    let host = parts
        .uri
        .host()
        .or_else(|| headers.get(header::HOST)?.to_str().ok())
        .unwrap_or_default();
    let address = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let event = Event {
        version: "2.0",
        route_key: "$default",
        raw_path,
        raw_query_string: parts.uri.query().unwrap_or_default(),
        cookies: cookies(headers),
        headers: joined(headers),
        query_string_parameters: parameters(parts.uri.query().unwrap_or_default()),
        request_context: RequestContext {
            account_id: "anonymous",
            api_id: name,
            domain_name: host,
            domain_prefix: host.split(['.', ':']).next().unwrap_or_default(),
            http: Http {
                method: parts.method.as_str(),
                path: raw_path,
                protocol: protocol(parts.version),
                source_ip: address
                    .map_or_else(String::new, |a| a.0.ip().to_canonical().to_string()),
                user_agent: headers
                    .get(header::USER_AGENT)
                    .map(|value| String::from_utf8_lossy(value.as_bytes()))
                    .unwrap_or_default(),
            },
            request_id: parts
                .extensions
                .get::<RequestId>()
                .map_or("", RequestId::as_str),
            route_key: "$default",
            stage: "$default",
            time: now.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            time_epoch: now.as_millisecond(),
        },
    };
    Ok(serde_json::to_vec(&event)?.into())
}

/// `name=value` of each cookie in all `Cookie` headers. Split and not parsed: like Lambda, this passes on what the cookie crate
/// would refuse.
fn cookies(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .map(|line| String::from_utf8_lossy(line.as_bytes()))
        .flat_map(|line| {
            line.split(';')
                .map(|c| c.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|cookie| !cookie.is_empty())
        .collect()
}

/// Headers by lower-case name, several values joined by commas. Cookies have their own member.
fn joined(headers: &HeaderMap) -> BTreeMap<&str, String> {
    let mut all = BTreeMap::<&str, String>::new();
    for (name, value) in headers {
        if name == header::COOKIE {
            continue;
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        all.entry(name.as_str())
            .and_modify(|line| {
                line.push(',');
                line.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    all
}

/// Query parameters, decoded, several values joined by commas.
fn parameters(query: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        all.entry(name.into_owned())
            .and_modify(|line| {
                line.push(',');
                line.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    all
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;
    use serde_json::{Value, json};

    use super::*;

    fn event(request: Request<()>) -> Value {
        let (mut parts, ()) = request.into_parts();
        let (name, path) = {
            let (name, path) = split(parts.uri.path());
            (name.to_owned(), path.to_owned())
        };
        crate::http::trigger::cookies::hide(&mut parts.headers);
        let mut event: Value =
            serde_json::from_slice(&build(&parts, &name, &path).unwrap()).unwrap();
        let context = event["requestContext"].as_object_mut().unwrap();
        assert!(context.remove("timeEpoch").unwrap().as_i64() > Some(1_700_000_000_000));
        let time = context.remove("time").unwrap();
        assert_eq!(
            time.as_str().unwrap().len(),
            "12/Mar/2020:19:03:58 +0000".len()
        );
        event
    }

    #[test]
    fn a_request_becomes_a_payload_2_0_event() {
        let request = Request::builder()
            .method("POST")
            .uri("/fn/hello/a%20b/c?x=1&x=2&y=%C3%A4+b&flag")
            .header("Host", "api.example.com:8080")
            .header("User-Agent", "curl/8")
            .header("X-Two", "one")
            .header("x-two", "two")
            .header("Cookie", "a=1; hearth_session=secret; b=2")
            .header("Cookie", "c=3")
            .extension(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 4711))))
            .body(())
            .unwrap();
        assert_eq!(
            event(request),
            json!({
                "version": "2.0",
                "routeKey": "$default",
                "rawPath": "/a%20b/c",
                "rawQueryString": "x=1&x=2&y=%C3%A4+b&flag",
                "cookies": ["a=1", "b=2", "c=3"],
                "headers": {"host": "api.example.com:8080", "user-agent": "curl/8", "x-two": "one,two"},
                "queryStringParameters": {"x": "1,2", "y": "ä b", "flag": ""},
                "requestContext": {
                    "accountId": "anonymous",
                    "apiId": "hello",
                    "domainName": "api.example.com:8080",
                    "domainPrefix": "api",
                    "http": {
                        "method": "POST",
                        "path": "/a%20b/c",
                        "protocol": "HTTP/1.1",
                        "sourceIp": "10.0.0.7",
                        "userAgent": "curl/8",
                    },
                    "requestId": "",
                    "routeKey": "$default",
                    "stage": "$default",
                },
            })
        );
    }

    #[test]
    fn what_is_not_there_is_absent() {
        let request = Request::builder()
            .uri("/fn/hello")
            .header("cookie", "hearth_session=x")
            .body(())
            .unwrap();
        let event = event(request);
        assert_eq!(event["rawPath"], "/");
        assert_eq!(event["rawQueryString"], "");
        assert!(event.get("cookies").is_none());
        assert!(event.get("queryStringParameters").is_none());
        assert_eq!(event["headers"], json!({}));
    }

    #[test]
    fn parameters_are_decoded_as_far_as_they_are_escaped() {
        let all = parameters("a=1&b=x%20y+z&c&=v&d=%zz%4&e=%C3%A4&f=%ff&&g=1=2&a=");
        let expected = [
            ("", "v"),
            ("a", "1,"),
            ("b", "x y z"),
            ("c", ""),
            ("d", "%zz%4"),
            ("e", "ä"),
            ("f", "\u{fffd}"),
            ("g", "1=2"),
        ];
        let found: Vec<_> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_are_split_after_the_name() {
        assert_eq!(split("/fn/a"), ("a", "/"));
        assert_eq!(split("/fn/a/"), ("a", "/"));
        assert_eq!(split("/fn/a//b/"), ("a", "//b/"));
        assert_eq!(split("/fn/"), ("", "/"));
    }
}
