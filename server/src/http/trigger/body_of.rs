//! The body in a payload-2.0 event. For functions their runtime adds it; a chain's first member gets a whole event.

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// Media types that are text, beside `text/*` and `application/*+json`.
const TEXTUAL: [&str; 4] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-www-form-urlencoded",
];

/// The event with `body` and `isBase64Encoded`: text when the content type says so and the bytes are UTF-8. `head` is the
/// event without them, as JSON text.
// Kept as a function of its own: `make bench SUITE=chains` counts its calls.
#[inline(never)]
pub(super) fn with_body(head: &[u8], content_type: Option<&HeaderValue>, body: &[u8]) -> Bytes {
    let (start, separator) = match head.strip_suffix(b"}") {
        Some(b"{") => (&b"{"[..], &b""[..]),
        Some(start) => (start, &b","[..]),
        None => return Bytes::copy_from_slice(head),
    };
    let text = std::str::from_utf8(body).ok();
    let text = text.filter(|_| content_type.is_some_and(is_textual));
    let mut event = Vec::with_capacity(start.len() + 40 + body.len() * 4 / 3);
    event.extend_from_slice(start);
    event.extend_from_slice(separator);
    if body.is_empty() {
        event.extend_from_slice(b"\"isBase64Encoded\":false}");
        return event.into();
    }
    event.extend_from_slice(b"\"body\":");
    let encoded = match text {
        // A string always serialises, and a vector takes whatever is written.
        Some(text) => serde_json::to_writer(&mut event, text),
        None => serde_json::to_writer(&mut event, &STANDARD.encode(body)),
    };
    debug_assert!(encoded.is_ok());
    event.extend_from_slice(match text {
        Some(_) => b",\"isBase64Encoded\":false}",
        None => b",\"isBase64Encoded\":true}",
    });
    event.into()
}

fn is_textual(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default().trim();
    let media_type = media_type.to_ascii_lowercase();
    TEXTUAL.contains(&media_type.as_str())
        || media_type.starts_with("text/")
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(content_type: &'static str, body: &[u8]) -> Value {
        let content_type = HeaderValue::from_static(content_type);
        let event = with_body(br#"{"rawPath":"/"}"#, Some(&content_type), body);
        serde_json::from_slice(&event).expect("JSON")
    }

    #[test]
    fn text_is_text_and_everything_else_is_base64() {
        for (content_type, body, expected) in [
            (
                "text/plain; charset=utf-8",
                "a\"ä\n",
                json!({"body": "a\"ä\n", "isBase64Encoded": false}),
            ),
            (
                "Application/Problem+JSON",
                "{}",
                json!({"body": "{}", "isBase64Encoded": false}),
            ),
            (
                "application/x-www-form-urlencoded",
                "a=b",
                json!({"body": "a=b", "isBase64Encoded": false}),
            ),
            (
                "image/png",
                "ab",
                json!({"body": "YWI=", "isBase64Encoded": true}),
            ),
            ("", "ab", json!({"body": "YWI=", "isBase64Encoded": true})),
            ("text/plain", "", json!({"isBase64Encoded": false})),
        ] {
            let mut found = event(content_type, body.as_bytes());
            found.as_object_mut().unwrap().remove("rawPath");
            assert_eq!(found, expected, "{content_type}");
        }
        let binary = event("text/plain", b"\xff\x00");
        assert_eq!(
            (&binary["body"], &binary["rawPath"]),
            (&json!("/wA="), &json!("/"))
        );
        assert_eq!(
            &with_body(b"{}", None, b"")[..],
            br#"{"isBase64Encoded":false}"#
        );
    }
}
