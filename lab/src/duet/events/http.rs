//! Events of requests to a function's URL: rebuilds what the handler got from what the history keeps.
//!
//! The history keeps the event as the server sends it, with the body put in as text. What the runtime adds, `isBase64Encoded` and the
//! choice between text and base64, is added here by the runtimes' rules (`runtimes/python/hearth_worker/http.py`), or the event is
//! given up. Credentials are gone for good: the history replaces them before it stores anything.

use serde_json::{Map, Value};

/// Stands in the history where a credential stood.
const HIDDEN: &str = "(hidden)";

/// Media types of bodies that handlers get as text, beside `text/…` and `application/…+json`.
const TEXTUAL: [&str; 4] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-www-form-urlencoded",
];

/// The handler's event, and whether credentials are hidden in it. None if the handler got something else, or perhaps nothing: a body
/// that is not text, or that may not have arrived completely. `has_succeeded` says that the handler returned, which it does only when
/// it was called; `takes_bytes` that it gets bodies as bytes, which JSON cannot carry.
pub(super) fn rebuilt(
    text: &str,
    has_succeeded: bool,
    takes_bytes: bool,
) -> Option<(String, bool)> {
    let mut event: Map<String, Value> = serde_json::from_str(text).ok()?;
    // Only a body that is not text has it in the history, in place of the body.
    if event.contains_key("isBase64Encoded") {
        return None;
    }
    let header = |name: &str| event.get("headers")?.get(name)?.as_str();
    let body = event.get("body").map(Value::as_str);
    let length = match body {
        None => 0,
        Some(body) => {
            let kind = header("content-type").unwrap_or_default();
            if takes_bytes || !is_textual(kind) {
                return None;
            }
            body?.len()
        }
    };
    let is_whole = has_succeeded
        || match header("content-length") {
            Some(announced) => announced.parse() == Ok(length),
            None => body.is_none() && header("transfer-encoding").is_none(),
        };
    if !is_whole {
        return None;
    }
    let is_hidden = hides(&event);
    event.insert("isBase64Encoded".to_owned(), false.into());
    Some((Value::Object(event).to_string(), is_hidden))
}

fn hides(event: &Map<String, Value>) -> bool {
    let headers = event.get("headers").and_then(Value::as_object);
    let mut values = headers.into_iter().flat_map(Map::values);
    let cookies = event.get("cookies").and_then(Value::as_array);
    let mut cookies = cookies.into_iter().flatten().filter_map(Value::as_str);
    values.any(|value| value == HIDDEN)
        || cookies.any(|cookie| {
            cookie
                .split_once('=')
                .is_some_and(|(_, value)| value == HIDDEN)
        })
}

fn is_textual(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let of_application = kind.strip_prefix("application/");
    TEXTUAL.contains(&kind.as_str())
        || kind.starts_with("text/")
        || of_application.is_some_and(|name| name.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(event: &Value, has_succeeded: bool) -> Option<(Value, bool)> {
        let (text, is_hidden) = rebuilt(&event.to_string(), has_succeeded, false)?;
        Some((serde_json::from_str(&text).expect("JSON"), is_hidden))
    }

    #[test]
    fn an_event_without_a_body_is_the_handlers() {
        let event = json!({"rawPath": "/", "headers": {"accept": "*/*"}, "queryStringParameters": {"x": "1"}});
        let expected = json!({"rawPath": "/", "headers": {"accept": "*/*"}, "queryStringParameters": {"x": "1"},
            "isBase64Encoded": false});
        assert_eq!(seen(&event, true), Some((expected.clone(), false)));
        // The handler may have raised.
        assert_eq!(seen(&event, false), Some((expected, false)));
        assert!(rebuilt(&event.to_string(), true, true).is_some());
        assert_eq!(rebuilt("[1]", true, false), None);
    }

    #[test]
    fn a_body_is_the_handlers_if_it_is_text_by_its_type() {
        let with = |kind: &str| json!({"headers": {"content-type": kind, "content-length": "5"}, "body": "hällo"});
        for kind in [
            "text/plain; charset=utf-8",
            "Application/JSON",
            "application/ld+json",
        ] {
            let (event, _) = seen(&with(kind), true).expect(kind);
            assert_eq!(
                (&event["body"], &event["isBase64Encoded"]),
                (&json!("hällo"), &json!(false))
            );
            // As bytes it is no JSON.
            assert_eq!(rebuilt(&with(kind).to_string(), true, true), None);
        }
        for kind in ["", "image/svg+xml", "application/octet-stream", "a+json"] {
            assert_eq!(seen(&with(kind), true), None, "{kind}");
        }
        let placeholder = json!({"headers": {"content-type": "text/plain"}, "body": "(not text)", "isBase64Encoded": true});
        assert_eq!(seen(&placeholder, true), None);
    }

    #[test]
    fn a_body_that_may_have_been_cut_is_not_replayed() {
        let with = |name: &str, value: &str| json!({"headers": {"content-type": "text/plain", name: value}, "body": "hello"});
        for (event, is_whole) in [
            (with("content-length", "5"), true),
            (with("content-length", "6"), false),
            (with("transfer-encoding", "chunked"), false),
            (json!({"headers": {"transfer-encoding": "chunked"}}), false),
            (json!({"headers": {"content-length": "6"}}), false),
        ] {
            assert_eq!(seen(&event, false).is_some(), is_whole, "{event}");
            // The handler is called when all of it is there.
            assert!(seen(&event, true).is_some(), "{event}");
        }
    }

    #[test]
    fn hidden_credentials_are_told() {
        for (event, expected) in [
            (json!({"headers": {"authorization": "(hidden)"}}), true),
            (json!({"cookies": ["a=(hidden)"], "headers": {}}), true),
            (json!({"cookies": ["=(hidden)"]}), true),
            (
                json!({"headers": {"accept": "*/*"}, "rawQueryString": "a=(hidden)"}),
                false,
            ),
        ] {
            let (_, is_hidden) = seen(&event, true).expect("an event");
            assert_eq!(is_hidden, expected, "{event}");
        }
    }
}
