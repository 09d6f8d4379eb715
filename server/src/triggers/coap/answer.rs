//! What functions and chains get of a CoAP request, and what becomes of what they return.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::code::Code;
use super::message::Call;
use crate::http::problem::{Problem, ProblemCode};
use crate::triggers::event::{Source, fitting_beside};
use crate::triggers::target::Failed;

/// `application/json` (RFC 7252, 12.3).
pub(super) const JSON: u16 = 50;
/// Most bytes of an answer's body.
const BODY_MAX: usize = 1 << 20;
/// Most bytes of the sentence that a refusal carries: it should fit with the rest into any packet.
const DIAGNOSTIC_MAX: usize = 200;

/// A request, as a function gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CoapEvent<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    content_format: Option<u16>,
    accept: Option<u16>,
    confirmable: bool,
    body: String,
    is_base64_encoded: bool,
    source: Source,
    port: u16,
    /// µs since 1970.
    received_at: i64,
}

/// Where a request came from.
pub(super) struct From {
    pub(super) source: Source,
    pub(super) port: u16,
    pub(super) received_at: i64,
    pub(super) confirmable: bool,
}

impl<'a> CoapEvent<'a> {
    /// With the path as the first member sees it.
    pub(super) fn new(call: &'a Call, path: &'a str, body: &[u8], from: From) -> Self {
        Self {
            method: call.method.method().unwrap_or_default(),
            path,
            query: &call.query,
            content_format: call.content_format,
            accept: call.accept,
            confirmable: from.confirmable,
            body: BASE64.encode(body),
            is_base64_encoded: true,
            source: from.source,
            port: from.port,
            received_at: from.received_at,
        }
    }
}

/// Most bytes that the body of this request may have where an event may have `room`.
pub(super) fn fitting(call: &Call, room: usize) -> usize {
    // Both could have quotes and backslashes, but are percent-encoded.
    fitting_beside(room, call.path.len() + call.query.len())
}

/// What is sent back, in one piece or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) content_format: Option<u16>,
    /// Seconds; for a refusal, when to come back.
    pub(super) max_age: Option<u32>,
    /// Most bytes that a request's body may have.
    pub(super) size1: Option<u32>,
    pub(super) body: Bytes,
}

impl Answer {
    /// Without a body.
    pub(super) fn of(code: Code) -> Self {
        Self {
            code,
            content_format: None,
            max_age: None,
            size1: None,
            body: Bytes::new(),
        }
    }

    /// The body does not fit into so many bytes.
    pub(super) fn too_large(most: usize) -> Self {
        Self {
            size1: u32::try_from(most).ok(),
            ..Self::of(Code::TOO_LARGE)
        }
    }

    /// For a client that asks too much at a time.
    pub(super) fn later(code: Code) -> Self {
        Self {
            max_age: Some(1),
            ..Self::of(code)
        }
    }

    /// A refusal with a sentence for people (RFC 7252, 5.5.2).
    fn refusal(code: Code, sentence: &str) -> Self {
        let end = sentence.floor_char_boundary(DIAGNOSTIC_MAX);
        Self {
            body: Bytes::copy_from_slice(&sentence.as_bytes()[..end]),
            ..Self::of(code)
        }
    }
}

/// What a function may return to say more than a body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Shaped {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    content_format: Option<u16>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// The answer that a function's result is: null is an empty one; an object with `code` or `body` says what it is; anything else is
/// JSON text.
pub(super) fn of_result(call: &Call, json: Bytes) -> Answer {
    let usual = match call.method {
        Code::GET | Code(5) => Code::CONTENT,
        Code(4) => Code::DELETED,
        _ => Code::CHANGED,
    };
    let answer = match serde_json::from_slice(&json) {
        Ok(Value::Null) => Ok(Answer::of(usual)),
        Ok(Value::Object(object)) if object.contains_key("code") || object.contains_key("body") => {
            shaped(object.into(), usual)
        }
        _ => Ok(Answer {
            content_format: Some(JSON),
            body: json,
            ..Answer::of(usual)
        }),
    };
    let answer = answer.unwrap_or_else(|rule| Answer::refusal(Code::BAD_GATEWAY, &rule));
    let is_other = match (call.accept, answer.content_format) {
        (Some(accept), Some(format)) => accept != format && !answer.code.is_error(),
        _ => false,
    };
    if is_other {
        return Answer::of(Code::NOT_ACCEPTABLE);
    }
    if answer.body.len() > BODY_MAX {
        let sentence = format!("the result has more than {BODY_MAX} bytes");
        return Answer::refusal(Code::BAD_GATEWAY, &sentence);
    }
    answer
}

fn shaped(object: Value, usual: Code) -> Result<Answer, String> {
    let shaped: Shaped = serde_json::from_value(object).map_err(|error| {
        format!("the result may have code, contentFormat, body and isBase64Encoded: {error}")
    })?;
    let code = match shaped.code {
        None => usual,
        Some(text) => Code::parse(&text)
            .ok_or_else(|| format!("\"code\" must be such as \"2.05\"; this is {text:?}"))?,
    };
    let body = match shaped.is_base64_encoded {
        false => shaped.body.into_bytes(),
        true => BASE64
            .decode(shaped.body)
            .map_err(|error| format!("\"body\" is not base64: {error}"))?,
    };
    Ok(Answer {
        content_format: shaped.content_format,
        body: body.into(),
        ..Answer::of(code)
    })
}

/// What a client is told of a request that has no result: what HTTP would say (RFC 8075, 7).
pub(super) fn of_failure(failed: Failed) -> Answer {
    let problem = Problem::from(failed);
    let name = problem.code().name();
    let code = match problem.code().status().as_u16() {
        404 => Code::NOT_FOUND,
        413 => Code::TOO_LARGE,
        429 => Code::TOO_MANY,
        502 => Code::BAD_GATEWAY,
        503 => Code::UNAVAILABLE,
        504 => Code::TIMEOUT,
        _ => Code::INTERNAL,
    };
    let sentence = match problem.code() {
        // Others than the deployer have no business with what its handler said.
        ProblemCode::FunctionError => name.to_owned(),
        _ => format!("{name}: {}", problem.detail()),
    };
    Answer {
        max_age: problem.retry_after(),
        ..Answer::refusal(code, &sentence)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chains::InvokeError;

    fn call(method: u8) -> Call {
        Call {
            method: Code(method),
            path: "/a".into(),
            query: String::new(),
            content_format: None,
            accept: None,
            block1: None,
            block2: None,
            payload: Bytes::new(),
        }
    }

    fn answer(method: u8, result: &Value) -> Answer {
        of_result(&call(method), result.to_string().into())
    }

    #[test]
    fn results_are_answers() {
        for (method, code) in [
            (1, Code::CONTENT),
            (2, Code::CHANGED),
            (3, Code::CHANGED),
            (4, Code::DELETED),
        ] {
            assert_eq!(answer(method, &json!(null)), Answer::of(code));
        }
        let json = answer(1, &json!({"moved": true}));
        assert_eq!(
            (json.content_format, &json.body[..]),
            (Some(JSON), &b"{\"moved\":true}"[..])
        );
        let text = answer(
            2,
            &json!({"code": "2.01", "body": "AGhp", "isBase64Encoded": true}),
        );
        assert_eq!((text.code, &text.body[..]), (Code::new(2, 1), &b"\0hi"[..]));
        assert_eq!(text.content_format, None);
        for wrong in [
            json!({"code": "200"}),
            json!({"body": 1}),
            json!({"body": "", "color": 1}),
            json!({"body": "?", "isBase64Encoded": true}),
            json!("x".repeat(BODY_MAX)),
        ] {
            assert_eq!(answer(1, &wrong).code, Code::BAD_GATEWAY);
        }
        let picky = Call {
            accept: Some(0),
            ..call(1)
        };
        let json = of_result(&picky, Bytes::from_static(b"{}"));
        assert_eq!(json, Answer::of(Code::NOT_ACCEPTABLE));
    }

    #[test]
    fn failures_have_codes() {
        let empty = InvokeError::PoolEmpty {
            retry_after: std::time::Duration::from_millis(1500),
        };
        let answer = of_failure(Failed::Chain(empty));
        assert_eq!((answer.code, answer.max_age), (Code::UNAVAILABLE, Some(2)));
        assert!(answer.body.starts_with(b"chain_pool_exhausted: "));
        let late = InvokeError::Timeout {
            timeout_ms: 1,
            hop: None,
        };
        assert_eq!(of_failure(Failed::Chain(late)).code, Code::TIMEOUT);
        let unknown = InvokeError::NoRoute("ä".repeat(200));
        let answer = of_failure(Failed::Chain(unknown));
        assert_eq!(answer.code, Code::NOT_FOUND);
        assert!(answer.body.len() <= DIAGNOSTIC_MAX);
    }

    #[test]
    fn what_fits_a_block_does() {
        let room = 4096;
        let call = Call {
            path: "/%22".repeat(100),
            query: "x=1&".repeat(20),
            content_format: Some(65_535),
            accept: Some(65_535),
            ..call(7)
        };
        let body = vec![0xff; fitting(&call, room)];
        let from = From {
            source: std::net::SocketAddr::from(([0xffff; 8], 65_535)).into(),
            port: 65_535,
            received_at: i64::MAX,
            confirmable: false,
        };
        let event = CoapEvent::new(&call, &call.path, &body, from);
        let size = serde_json::to_vec(&event).expect("JSON").len();
        assert!(size <= room && !body.is_empty(), "{size}");
    }
}
