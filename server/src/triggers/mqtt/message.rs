//! A message as an event, and what becomes of its result.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::packets::Publish;
use crate::http::problem::Problem;
use crate::model::PortOrBroker;
use crate::triggers::event::{Source, fitting_beside};

/// Most bytes of an answer's body.
const BODY_MAX: usize = 256 << 10;
/// Most user properties of a message that comes: each takes some 200 bytes beside its text.
pub(super) const PROPERTIES_MAX: usize = 64;
/// Most bytes of an answer's content type, whose length MQTT says in 16 bits.
const CONTENT_TYPE_MAX: usize = 1 << 10;
/// The content type of a result that is JSON, for those that have one.
const JSON: &str = "application/json";
/// The user property by which a client of MQTT 5 sees that there is no result.
const ERROR: &str = "error";

/// A message, as a function gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MqttEvent<'a> {
    topic: &'a str,
    qos: u8,
    retain: bool,
    client: &'a str,
    content_type: Option<&'a str>,
    user_properties: &'a [(String, String)],
    body: String,
    is_base64_encoded: bool,
    source: Source,
    /// Null for what a broker has.
    port: Option<u16>,
    /// The broker's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<&'a str>,
    /// µs since 1970.
    received_at: i64,
}

impl<'a> MqttEvent<'a> {
    pub(super) fn new(
        message: &'a Publish,
        qos: u8,
        client: &'a str,
        source: Source,
        at: &'a PortOrBroker,
    ) -> Self {
        let (port, broker) = match at {
            PortOrBroker::Port(port) => (Some(port.number), None),
            PortOrBroker::Broker(name) => (None, Some(name.as_str())),
        };
        Self {
            topic: &message.topic,
            qos,
            retain: message.retain,
            client,
            content_type: message.content_type.as_deref(),
            user_properties: &message.user_properties,
            body: BASE64.encode(&message.payload),
            is_base64_encoded: true,
            source,
            port,
            broker,
            received_at: jiff::Timestamp::now().as_microsecond(),
        }
    }
}

/// Whether the event of a message fits into `room` bytes.
pub(super) fn fits(message: &Publish, client: &str, room: usize) -> bool {
    // As JSON text, a character takes up to six bytes.
    let properties = message.user_properties.iter();
    let text: usize = properties
        .map(|(name, value)| name.len() + value.len() + 8)
        .sum();
    let text = text + message.topic.len() + client.len();
    let text = text + message.content_type.as_ref().map_or(0, String::len);
    message.payload.len() <= fitting_beside(room, 6 * text)
}

/// What a function may return to say more than JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Shaped {
    body: String,
    #[serde(default)]
    is_base64_encoded: bool,
    #[serde(default)]
    content_type: Option<String>,
}

/// The message that a result is: null is none; an object with `body` says what it is; anything else is JSON text.
pub(super) fn of_result(json: Bytes) -> Result<Option<Publish>, &'static str> {
    let answer = match serde_json::from_slice(&json) {
        Ok(Value::Null) => return Ok(None),
        Ok(Value::Object(object)) if object.contains_key("body") => {
            let shaped: Shaped =
                serde_json::from_value(object.into()).map_err(|_| "invalid_result")?;
            let body = match shaped.is_base64_encoded {
                false => shaped.body.into_bytes(),
                true => BASE64.decode(shaped.body).map_err(|_| "invalid_result")?,
            };
            let is_text = |text: &String| text.len() <= CONTENT_TYPE_MAX && !text.contains('\0');
            if !shaped.content_type.as_ref().is_none_or(is_text) {
                return Err("invalid_result");
            }
            Publish {
                payload: body.into(),
                content_type: shaped.content_type,
                ..Publish::default()
            }
        }
        _ => Publish {
            payload: json,
            content_type: Some(JSON.to_owned()),
            ..Publish::default()
        },
    };
    match answer.payload.len() > BODY_MAX {
        true => Err("result_too_large"),
        false => Ok(Some(answer)),
    }
}

/// The message that says why there is no result, with the error's code.
pub(super) fn of_failure(code: &str) -> Publish {
    Publish {
        user_properties: vec![(ERROR.to_owned(), code.to_owned())],
        ..Publish::default()
    }
}

/// Whether the same message may be taken at another time.
pub(super) fn is_temporary(problem: &Problem) -> bool {
    matches!(problem.code().status().as_u16(), 429 | 503)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_messages() {
        let of = |value: Value| of_result(value.to_string().into());
        assert_eq!(of(json!(null)), Ok(None));
        let message = of(json!({"moved": 1})).expect("fine").expect("a message");
        assert_eq!(message.payload, "{\"moved\":1}");
        assert_eq!(message.content_type.as_deref(), Some(JSON));
        let text = json!({"body": "AGhp", "isBase64Encoded": true, "contentType": "x/y"});
        let message = of(text).expect("fine").expect("a message");
        assert_eq!(message.payload[..], *b"\0hi");
        assert_eq!(message.content_type.as_deref(), Some("x/y"));
        assert_eq!(of(json!({"body": 3})), Err("invalid_result"));
        for content_type in ["x".repeat(70_000), "\0".to_owned()] {
            let wrong = json!({"body": "", "contentType": content_type});
            assert_eq!(of(wrong), Err("invalid_result"));
        }
        assert_eq!(of(json!("x".repeat(BODY_MAX))), Err("result_too_large"));
    }

    #[test]
    fn what_fits_a_block_does() {
        let mut message = Publish {
            topic: "\u{1}".repeat(100),
            user_properties: vec![("\"".repeat(50), "\\".repeat(50))],
            ..Publish::default()
        };
        let room = 4096;
        let at = PortOrBroker::Broker("b".repeat(63));
        for length in (0..room).step_by(7) {
            message.payload = vec![0xff; length].into();
            if fits(&message, "client", room) {
                let source = std::net::SocketAddr::from(([255; 4], 65_535)).into();
                let event = MqttEvent::new(&message, 1, "client", source, &at);
                let size = serde_json::to_vec(&event).expect("JSON").len();
                assert!(size <= room, "{size}");
            }
        }
        message.payload = Bytes::new();
        assert!(fits(&message, "client", room));
    }
}
