//! A result as a payload-2.0 response. For functions their runtime does this; a chain's last member sends its result whole.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";
/// Encoders that wrap lines are common; any other stray character is a mistake.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new());

/// A response in parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// A result that is no response, although it has a `statusCode`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {rule}")]
pub(super) struct Misshapen {
    field: String,
    rule: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shaped<'a> {
    #[serde(default, deserialize_with = "present")]
    status_code: Option<Value>,
    headers: Option<Value>,
    cookies: Option<Value>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    is_base64_encoded: Option<Value>,
}

/// A null that is there is not the same as nothing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An object with `statusCode` is a whole response; anything else is the body, as JSON.
// Kept as a function of its own: `make bench SUITE=chains` counts its calls.
#[inline(never)]
pub(super) fn shape(result: Bytes) -> Result<Answered, Misshapen> {
    let shaped = serde_json::from_slice::<Shaped<'_>>(&result).ok();
    let Some((shaped, status)) = shaped.and_then(|mut shaped| {
        let status = shaped.status_code.take()?;
        Some((shaped, status))
    }) else {
        return Ok(Answered {
            status: 200,
            headers: vec![("content-type".to_owned(), JSON.to_owned())],
            body: result,
        });
    };
    let status = status_of(&status)?;
    let is_base64 = match shaped.is_base64_encoded {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_base64)) => is_base64,
        Some(_) => return Err(misshapen("isBase64Encoded", "a boolean")),
    };
    let (body, content_type) = body_of(shaped.body, is_base64)?;
    let mut headers = headers_of(shaped.headers)?;
    let is_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    if !headers.iter().any(is_type) {
        headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    match shaped.cookies {
        None | Some(Value::Null) => {}
        Some(Value::Array(cookies)) => {
            for cookie in cookies {
                let value =
                    text_of(&cookie).ok_or_else(|| misshapen("cookies", "a list of strings"))?;
                headers.push(("set-cookie".to_owned(), value));
            }
        }
        Some(_) => return Err(misshapen("cookies", "a list of strings")),
    }
    Ok(Answered {
        status,
        headers,
        body,
    })
}

fn status_of(status: &Value) -> Result<u16, Misshapen> {
    let number = match status {
        Value::Number(number) => number.as_u64(),
        Value::String(text) if text.len() == 3 => text.parse().ok(),
        _ => None,
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .filter(|status| (200..600).contains(status))
        .ok_or_else(|| misshapen("statusCode", "an integer from 200 to 599"))
}

fn headers_of(headers: Option<Value>) -> Result<Vec<(String, String)>, Misshapen> {
    let headers: BTreeMap<String, Value> = match headers {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(headers)) => headers.into_iter().collect(),
        Some(_) => return Err(misshapen("headers", "an object")),
    };
    let rule = "printable text, a number or a boolean";
    let one = |(name, value): (String, Value)| {
        let text = match &value {
            Value::Array(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(text_of).collect();
                parts.map(|parts| parts.join(","))
            }
            other => text_of(other),
        };
        match text {
            Some(text) => Ok((name, text)),
            None => Err(misshapen(&format!("header {name:?}"), rule)),
        }
    };
    headers.into_iter().map(one).collect()
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// The body, and its content type if the response names none.
fn body_of(body: Option<&RawValue>, is_base64: bool) -> Result<(Bytes, &'static str), Misshapen> {
    let Some(body) = body.filter(|body| body.get() != "null") else {
        return Ok((Bytes::new(), JSON));
    };
    if !body.get().starts_with('"') {
        let wrong = || misshapen("body", "text when isBase64Encoded is true");
        return match is_base64 {
            true => Err(wrong()),
            false => Ok((Bytes::copy_from_slice(body.get().as_bytes()), JSON)),
        };
    }
    let text: String = serde_json::from_str(body.get())
        .map_err(|_| misshapen("body", "text without halves of surrogate pairs"))?;
    if !is_base64 {
        return Ok((text.into(), JSON));
    }
    let bare: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let bytes = BASE64.decode(bare);
    let bytes = bytes.map_err(|_| misshapen("body", "base64 when isBase64Encoded is true"))?;
    Ok((bytes.into(), BINARY))
}

fn misshapen(field: &str, rule: &'static str) -> Misshapen {
    Misshapen {
        field: field.to_owned(),
        rule,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(result: Value) -> Result<Answered, String> {
        shape(result.to_string().into()).map_err(|wrong| wrong.field)
    }

    #[test]
    fn whatever_is_no_response_is_the_body() {
        for bare in [
            json!(7),
            json!("x"),
            json!([1]),
            json!({"status": 404}),
            json!(null),
        ] {
            let answered = shaped(bare.clone()).expect("a response");
            assert_eq!(answered.status, 200);
            assert_eq!(
                answered.headers,
                [("content-type".to_owned(), JSON.to_owned())]
            );
            assert_eq!(answered.body, bare.to_string());
        }
    }

    #[test]
    fn a_response_has_status_headers_cookies_and_body() {
        let all = json!({
            "statusCode": 201, "headers": {"X-One": 1, "x-list": ["a", true], "Content-Type": "text/plain"},
            "cookies": ["a=1", "b=2"], "body": "one two",
        });
        let answered = shaped(all).expect("a response");
        assert_eq!(
            (answered.status, &answered.body[..]),
            (201, &b"one two"[..])
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            answered.headers,
            [
                pair("Content-Type", "text/plain"),
                pair("X-One", "1"),
                pair("x-list", "a,true"),
                pair("set-cookie", "a=1"),
                pair("set-cookie", "b=2"),
            ]
        );
        for (body, is_base64, bytes, content_type) in [
            (json!("aGk\nh"), true, &b"hi!"[..], BINARY),
            (json!("hi"), false, b"hi", JSON),
            (json!({"a": [1]}), false, br#"{"a":[1]}"#, JSON),
            (json!(null), true, b"", JSON),
        ] {
            let response = json!({"statusCode": "200", "body": body, "isBase64Encoded": is_base64});
            let answered = shaped(response).expect("a response");
            assert_eq!(&answered.body[..], bytes);
            assert_eq!(answered.headers, [pair("content-type", content_type)]);
        }
    }

    #[test]
    fn what_is_no_response_names_the_field() {
        for (wrong, field) in [
            (json!({"statusCode": 199}), "statusCode"),
            (json!({"statusCode": null, "headers": 1}), "statusCode"),
            (json!({"statusCode": 200.5}), "statusCode"),
            (json!({"statusCode": 200, "headers": []}), "headers"),
            (
                json!({"statusCode": 200, "headers": {"a": null}}),
                "header \"a\"",
            ),
            (json!({"statusCode": 200, "cookies": "a=1"}), "cookies"),
            (json!({"statusCode": 200, "cookies": [{}]}), "cookies"),
            (
                json!({"statusCode": 200, "body": "%%", "isBase64Encoded": true}),
                "body",
            ),
            (
                json!({"statusCode": 200, "body": {}, "isBase64Encoded": true}),
                "body",
            ),
            (
                json!({"statusCode": 200, "isBase64Encoded": "yes"}),
                "isBase64Encoded",
            ),
        ] {
            assert_eq!(shaped(wrong.clone()), Err(field.to_owned()), "{wrong}");
        }
    }
}
