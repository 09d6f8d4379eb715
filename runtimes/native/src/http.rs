//! Requests to a function's URL: payload format 2.0 of AWS Lambda's function URLs, in and out.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Error;

/// Longest head of a response, in bytes: one frame of the channel.
const HEAD_BYTES: usize = 64 * 1024;
/// Characters of a value that an error repeats.
const SHOWN_CHARS: usize = 100;

const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";
const TEXTUAL: [&str; 4] = [
    JSON,
    "application/xml",
    "application/javascript",
    "application/x-www-form-urlencoded",
];

/// The part of an event that says what its body is.
#[derive(Deserialize)]
struct About {
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// An event with its request's body: as text where the content type says so and it is UTF-8, else in base64.
// This, and what reads or writes JSON below, is kept as functions of their own: `make bench SUITE=chains` counts their calls.
#[inline(never)]
#[must_use]
pub fn with_body(event: &[u8], body: &[u8]) -> Vec<u8> {
    let text = event.trim_ascii_end();
    // The server makes an object of it, never an empty one.
    let Some(open) = text.strip_suffix(b"}") else {
        return event.to_vec();
    };
    let (key, body) = match as_text(event, body) {
        _ if body.is_empty() => (r#","isBase64Encoded":false"#, None),
        Some(text) => (
            r#","isBase64Encoded":false,"body":"#,
            Some(Value::from(text).to_string()),
        ),
        None => (
            r#","isBase64Encoded":true,"body":"#,
            Some(format!("\"{}\"", BASE64_STANDARD.encode(body))),
        ),
    };
    let body = body.unwrap_or_default();
    [open, key.as_bytes(), body.as_bytes(), b"}"].concat()
}

#[inline(never)]
fn as_text<'b>(event: &[u8], body: &'b [u8]) -> Option<&'b str> {
    let about: About = serde_json::from_slice(event).ok()?;
    let content_type = about.headers.get("content-type")?;
    let media_type = content_type.split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    let is_textual = TEXTUAL.contains(&media_type.as_str())
        || media_type.starts_with("text/")
        || (media_type.starts_with("application/") && media_type.ends_with("+json"));
    std::str::from_utf8(body).ok().filter(|_| is_textual)
}

/// Head, as JSON text, and body of a handler's result: an object with `statusCode` is a whole response, and anything else is the
/// body.
///
/// # Errors
/// It is no valid response.
pub fn response(result: &[u8]) -> Result<(String, Vec<u8>), Error> {
    // What is no object is no response, and need not be read.
    let is_object = result.trim_ascii_start().starts_with(b"{");
    let value = is_object.then(|| value_of(result)).transpose();
    let value = value.map_err(|error| invalid("the result", &error.to_string(), "JSON"))?;
    match value {
        Some(Value::Object(response)) if response.contains_key("statusCode") => whole(response),
        _ => Ok((head(200, &[pair("content-type", JSON)])?, result.to_vec())),
    }
}

#[inline(never)]
fn value_of(result: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(result)
}

fn whole(mut response: Map<String, Value>) -> Result<(String, Vec<u8>), Error> {
    let mut take = |name: &str| response.remove(name).unwrap_or(Value::Null);
    let status = status(&take("statusCode"))?;
    let mut headers = headers(&take("headers"))?;
    let is_base64 = match take("isBase64Encoded") {
        Value::Null => false,
        Value::Bool(is_base64) => is_base64,
        other => return Err(invalid("isBase64Encoded", &other, "a boolean")),
    };
    let (body, content_type) = body(take("body"), is_base64)?;
    let is_content_type = |header: &[String; 2]| header[0].eq_ignore_ascii_case("content-type");
    if !headers.iter().any(is_content_type) {
        headers.push(pair("content-type", content_type));
    }
    match take("cookies") {
        Value::Null => {}
        Value::Array(cookies) => {
            for cookie in &cookies {
                headers.push(pair("set-cookie", &header_value("cookies", cookie)?));
            }
        }
        other => return Err(invalid("cookies", &other, "a list of strings")),
    }
    Ok((head(status, &headers)?, body))
}

fn status(value: &Value) -> Result<u64, Error> {
    let number = match value {
        Value::String(text) if text.len() == 3 => text.parse().ok(),
        other => other.as_u64(),
    };
    number
        .filter(|status| (200..=599).contains(status))
        .ok_or_else(|| invalid("statusCode", value, "an integer from 200 to 599"))
}

fn headers(value: &Value) -> Result<Vec<[String; 2]>, Error> {
    let fields = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(fields) => fields,
        other => return Err(invalid("headers", other, "an object")),
    };
    let mut pairs = Vec::new();
    for (name, value) in fields {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(invalid("a header's name", name, "a token of RFC 9110"));
        }
        let value = match value {
            Value::Array(parts) => {
                let parts: Result<Vec<_>, _> =
                    parts.iter().map(|part| header_value(name, part)).collect();
                parts?.join(",")
            }
            one => header_value(name, one)?,
        };
        pairs.push(pair(name, &value));
    }
    Ok(pairs)
}

fn header_value(name: &str, value: &Value) -> Result<String, Error> {
    let is_printable = |text: &str| text.chars().all(|c| c == '\t' || !c.is_control());
    match value {
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::String(text) if is_printable(text) => Ok(text.clone()),
        other => {
            let rule = "printable text, a number or a boolean";
            Err(invalid(&format!("header '{name}'"), other, rule))
        }
    }
}

/// The body, and the content type that it has when the response names none.
fn body(body: Value, is_base64: bool) -> Result<(Vec<u8>, &'static str), Error> {
    match body {
        Value::Null => Ok((Vec::new(), JSON)),
        Value::String(text) if is_base64 => {
            // Encoders that wrap lines are common.
            let text: String = text.split_ascii_whitespace().collect();
            let decoded = BASE64_STANDARD.decode(text).map_err(|error| {
                let message = format!("body is not valid base64: {error}");
                Error::new("Runtime.InvalidResponse", message)
            })?;
            Ok((decoded, BINARY))
        }
        Value::String(text) => Ok((text.into_bytes(), JSON)),
        other if is_base64 => Err(invalid("body", &other, "text when isBase64Encoded is true")),
        other => Ok((other.to_string().into_bytes(), JSON)),
    }
}

fn pair(name: &str, value: &str) -> [String; 2] {
    [name.to_owned(), value.to_owned()]
}

#[inline(never)]
fn head(status: u64, headers: &[[String; 2]]) -> Result<String, Error> {
    let head = json!({"statusCode": status, "headers": headers}).to_string();
    if head.len() > HEAD_BYTES {
        let message = format!("the response's headers are longer than {HEAD_BYTES} bytes");
        return Err(Error::new("Runtime.InvalidResponse", message));
    }
    Ok(head)
}

fn invalid(field: &str, value: &impl Display, rule: &str) -> Error {
    let mut shown = value.to_string();
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(end);
        shown.push('…');
    }
    let message = format!("{field} is {shown}: it must be {rule}");
    Error::new("Runtime.InvalidResponse", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(content_type: &str, body: &[u8]) -> Value {
        let event = json!({"version": "2.0", "headers": {"content-type": content_type}});
        serde_json::from_slice(&with_body(event.to_string().as_bytes(), body)).expect("JSON")
    }

    #[test]
    fn a_body_is_text_where_its_type_says_so() {
        let text = event(
            "application/json; charset=utf-8",
            "{\"a\":\"ä\"}".as_bytes(),
        );
        assert_eq!(text["body"], "{\"a\":\"ä\"}");
        assert_eq!(text["isBase64Encoded"], false);
        for (content_type, body) in [("text/plain", &b"\xff"[..]), ("image/png", b"\xff")] {
            let coded = event(content_type, body);
            assert_eq!(
                (&coded["body"], &coded["isBase64Encoded"]),
                (&json!("/w=="), &json!(true))
            );
        }
        let none = event("text/plain", b"");
        assert_eq!((none.get("body"), &none["version"]), (None, &json!("2.0")));
    }

    fn shaped(result: &Value) -> (Value, Vec<u8>) {
        let (head, body) = response(result.to_string().as_bytes()).expect("a response");
        (serde_json::from_str(&head).expect("JSON"), body)
    }

    #[test]
    fn a_result_with_a_status_is_a_whole_response() {
        let (head, body) = shaped(&json!({
            "statusCode": "201", "headers": {"X-A": [1, "b"]}, "cookies": ["c=d"],
            "body": "/w==\n", "isBase64Encoded": true,
        }));
        assert_eq!(
            head,
            json!({"statusCode": 201, "headers": [
                ["X-A", "1,b"], ["content-type", BINARY], ["set-cookie", "c=d"]]})
        );
        assert_eq!(body, b"\xff");
        let (head, body) = shaped(&json!({"status": 1}));
        assert_eq!(
            head,
            json!({"statusCode": 200, "headers": [["content-type", JSON]]})
        );
        assert_eq!(body, br#"{"status":1}"#);
    }

    #[test]
    fn what_is_no_response_is_said() {
        for (wrong, said) in [
            (json!({"statusCode": 99}), "statusCode is 99"),
            (
                json!({"statusCode": 200, "headers": {"a b": 1}}),
                "a header's name is a b",
            ),
            (
                json!({"statusCode": 200, "headers": {"a": "\n"}}),
                "header 'a'",
            ),
            (json!({"statusCode": 200, "cookies": 1}), "cookies is 1"),
            (
                json!({"statusCode": 200, "body": "?", "isBase64Encoded": true}),
                "base64",
            ),
        ] {
            let error = response(wrong.to_string().as_bytes()).expect_err("refused");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
