//! CORS for a function that has the setting: the server answers preflights (without a token, since browsers send none)
//! and sets the CORS headers of every response, including its own errors, so that a page can read them. CORS headers
//! from the function are replaced. A function without the setting handles CORS itself.
//!
//! Source: Fetch, 3.2 (CORS protocol).

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use crate::model::Cors;

/// All of the protocol's headers in answers begin so.
const FAMILY: &str = "access-control-";
/// What an answer to a preflight depends on.
const PREFLIGHT_VARY: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);

/// The answer to a preflight; none to any other request.
pub(super) fn preflight(cors: &Cors, parts: &Parts) -> Option<Response> {
    let headers = &parts.headers;
    let method = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
    let origin = headers.get(header::ORIGIN)?;
    if parts.method != Method::OPTIONS {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(header::VARY, PREFLIGHT_VARY);
    // An origin that is not allowed gets no CORS headers, which browsers treat as a refusal.
    if admit(cors, origin, answer) {
        let wanted = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        let methods = listed(&cors.allow_methods, Some(method));
        put(answer, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        let names = listed(&cors.allow_headers, wanted);
        put(answer, header::ACCESS_CONTROL_ALLOW_HEADERS, names);
        let age = HeaderValue::from(cors.max_age_s);
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, age);
    }
    Some(response)
}

/// Writes the headers of an answer to a request of this origin, if it has one.
pub(super) fn apply(cors: &Cors, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
    let own: Vec<HeaderName> = answer
        .keys()
        .filter(|name| name.as_str().starts_with(FAMILY))
        .cloned()
        .collect();
    for name in own {
        answer.remove(name);
    }
    if !cors.allows_all() {
        answer.append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = origin
        && admit(cors, origin, answer)
    {
        let exposed = listed(&cors.expose_headers, None);
        put(answer, header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Says that the origin may, if it may.
fn admit(cors: &Cors, origin: &HeaderValue, answer: &mut HeaderMap) -> bool {
    if !cors.allows(origin.as_bytes()) {
        return false;
    }
    let allowed = match cors.allows_all() {
        true => HeaderValue::from_static("*"),
        false => origin.clone(),
    };
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    if cors.allow_credentials {
        let yes = HeaderValue::from_static("true");
        answer.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    }
    true
}

/// A list as a header has it. For all, what is `wanted`: `*` means nothing with credentials, and never `Authorization`.
fn listed(items: &[String], wanted: Option<&HeaderValue>) -> Option<HeaderValue> {
    if items.iter().any(|item| item == "*") {
        return Some(wanted.cloned().unwrap_or(HeaderValue::from_static("*")));
    }
    let text = items.join(", ");
    HeaderValue::try_from(text)
        .ok()
        .filter(|text| !text.is_empty())
}

fn put(answer: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        answer.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        Cors {
            allow_origins: origins.iter().map(|&origin| origin.into()).collect(),
            allow_methods: vec!["GET".into(), "PUT".into()],
            allow_headers: vec!["*".into()],
            expose_headers: vec!["x-own".into()],
            max_age_s: 60,
            ..Cors::default()
        }
    }

    fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    const ASKED: [(&str, &str); 3] = [
        ("origin", "https://a.example"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "authorization, x-a"),
    ];

    #[test]
    fn only_a_preflight_is_answered() {
        let all = cors(&["*"]);
        assert!(preflight(&all, &parts("OPTIONS", &ASKED)).is_some());
        assert!(preflight(&all, &parts("GET", &ASKED)).is_none());
        assert!(preflight(&all, &parts("OPTIONS", &ASKED[..1])).is_none());
        assert!(preflight(&all, &parts("OPTIONS", &ASKED[1..])).is_none());
    }

    #[test]
    fn who_may_is_told_all_and_who_may_not_nothing() {
        let named = cors(&["https://b.example", "https://a.example"]);
        let answer = preflight(&named, &parts("OPTIONS", &ASKED)).expect("an answer");
        assert_eq!(answer.status(), 204);
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], "https://a.example");
        assert_eq!(headers["access-control-allow-methods"], "GET, PUT");
        assert_eq!(
            headers["access-control-allow-headers"],
            "authorization, x-a"
        );
        assert_eq!(headers["access-control-max-age"], "60");
        assert!(!headers.contains_key("access-control-allow-credentials"));

        let foreign = preflight(&cors(&["https://b.example"]), &parts("OPTIONS", &ASKED));
        let foreign = foreign.expect("an answer");
        assert!(foreign.headers().keys().all(|name| *name == header::VARY));
    }

    #[test]
    fn the_functions_own_words_are_replaced() {
        let mut answer = HeaderMap::new();
        for name in [
            "access-control-allow-origin",
            "access-control-allow-private-network",
        ] {
            answer.insert(HeaderName::from_static(name), HeaderValue::from_static("*"));
        }
        answer.insert(header::VARY, HeaderValue::from_static("accept"));
        let mut named = cors(&["https://a.example"]);
        named.allow_credentials = true;
        let foreign = HeaderValue::from_static("https://x.example");
        let mut refused = answer.clone();
        apply(&named, Some(&foreign), &mut refused);
        assert!(
            refused.keys().all(|name| *name == header::VARY),
            "{refused:?}"
        );
        assert_eq!(refused.get_all(header::VARY).iter().count(), 2);

        apply(
            &named,
            Some(&HeaderValue::from_static("https://a.example")),
            &mut answer,
        );
        assert_eq!(answer["access-control-allow-origin"], "https://a.example");
        assert_eq!(answer["access-control-allow-credentials"], "true");
        assert_eq!(answer["access-control-expose-headers"], "x-own");
        assert!(!answer.contains_key("access-control-allow-private-network"));
    }
}
