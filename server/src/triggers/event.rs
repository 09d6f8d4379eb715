//! What functions and chains get from ports, and what they answer.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes of an event besides its payload in base64: more than names, addresses, numbers and a connection's id take.
const AROUND: usize = 400;

/// Most bytes of payload in an event of this size.
pub(super) fn fitting(room: usize) -> usize {
    room.saturating_sub(AROUND) / 4 * 3
}

/// The same where the event has so many bytes of text more.
pub(super) fn fitting_beside(room: usize, text: usize) -> usize {
    fitting(room.saturating_sub(text))
}

/// Bytes that a payload takes in an event, whatever is around it.
pub(super) fn taken(payload: usize) -> usize {
    payload.div_ceil(3) * 4 + AROUND
}

/// A datagram, as a function gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DatagramEvent {
    pub(super) body: String,
    is_base64_encoded: bool,
    source: Source,
    port: u16,
    /// µs since 1970, by the kernel's time stamp where there is one.
    received_at: i64,
}

impl DatagramEvent {
    pub(super) fn new(payload: &[u8], source: SocketAddr, port: u16, received_at: i64) -> Self {
        Self {
            body: BASE64.encode(payload),
            is_base64_encoded: true,
            source: source.into(),
            port,
            received_at,
        }
    }
}

/// Several datagrams.
#[derive(Serialize)]
pub(super) struct Datagrams {
    pub(super) datagrams: Vec<DatagramEvent>,
}

/// Something that happened on a byte stream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamEvent<'a> {
    /// The same for all events of a connection.
    pub(super) connection: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: StreamEventKind,
    body: String,
    is_base64_encoded: bool,
    source: Source,
    port: u16,
    received_at: i64,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StreamEventKind {
    /// The client has connected.
    Open,
    /// It has sent something.
    Data,
    /// Nothing more comes.
    Close,
}

impl<'a> StreamEvent<'a> {
    pub(super) fn new(
        connection: &'a str,
        kind: StreamEventKind,
        payload: &[u8],
        source: SocketAddr,
        port: u16,
    ) -> Self {
        Self {
            connection,
            kind,
            body: BASE64.encode(payload),
            is_base64_encoded: true,
            source: source.into(),
            port,
            received_at: jiff::Timestamp::now().as_microsecond(),
        }
    }
}

/// A client's address.
#[derive(Serialize)]
pub(super) struct Source {
    ip: String,
    port: u16,
}

impl From<SocketAddr> for Source {
    fn from(address: SocketAddr) -> Self {
        Self {
            ip: address.ip().to_canonical().to_string(),
            port: address.port(),
        }
    }
}

/// What a function answers to a datagram, or to something on a stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    body: String,
    #[serde(default)]
    is_base64_encoded: bool,
    #[serde(default)]
    close: bool,
}

/// Bytes to send, and whether the stream is to be closed then.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) body: Bytes,
    pub(super) close: bool,
}

/// Why an answer cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidAnswer {
    /// Neither null nor an object.
    #[error("the answer must be null or an object with \"body\" and \"isBase64Encoded\": {0}")]
    Json(#[from] serde_json::Error),
    /// Not base64.
    #[error("\"isBase64Encoded\" is true, and \"body\" is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// Another number.
    #[error(
        "the answer must be null or a list of {expected}, one for each datagram, and has {found}"
    )]
    Count { expected: usize, found: usize },
}

impl TryFrom<Map<String, Value>> for Reply {
    type Error = InvalidAnswer;

    fn try_from(answer: Map<String, Value>) -> Result<Self, InvalidAnswer> {
        let answer: Answer = serde_json::from_value(answer.into())?;
        let body = match answer.is_base64_encoded {
            true => BASE64.decode(answer.body.as_bytes())?,
            false => answer.body.into_bytes(),
        };
        Ok(Self {
            body: body.into(),
            close: answer.close,
        })
    }
}

/// The answer to one event; none for no reply.
pub(super) fn reply(json: &[u8]) -> Result<Option<Reply>, InvalidAnswer> {
    let answer: Option<Map<String, Value>> = serde_json::from_slice(json)?;
    answer.map(Reply::try_from).transpose()
}

/// The answers to `expected` datagrams.
pub(super) fn replies(json: &[u8], expected: usize) -> Result<Vec<Option<Reply>>, InvalidAnswer> {
    let answers: Option<Vec<Option<Map<String, Value>>>> = serde_json::from_slice(json)?;
    let Some(answers) = answers else {
        return Ok(Vec::new());
    };
    if answers.len() != expected {
        let found = answers.len();
        return Err(InvalidAnswer::Count { expected, found });
    }
    let replies = answers
        .into_iter()
        .map(|answer| answer.map(Reply::try_from).transpose());
    replies.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_datagram_is_an_event() {
        let source = "[::ffff:192.0.2.7]:53".parse().expect("an address");
        let event = DatagramEvent::new(b"\x00hi", source, 9001, 1_700_000_000_000_001);
        let event: Value = serde_json::to_value(event).expect("JSON");
        assert_eq!(
            event,
            json!({
                "body": "AGhp",
                "isBase64Encoded": true,
                "source": {"ip": "192.0.2.7", "port": 53},
                "port": 9001,
                "receivedAt": 1_700_000_000_000_001_i64,
            })
        );
    }

    #[test]
    fn what_fits_a_block_does() {
        let source = "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535";
        let source = source.parse().expect("an address");
        let id = "01234567-89ab-7def-8123-456789abcdef";
        for room in [4096, 65_536] {
            let piece = vec![0xff; fitting(room)];
            let event = StreamEvent::new(id, StreamEventKind::Close, &piece, source, 65_535);
            let size = serde_json::to_vec(&event).expect("JSON").len();
            assert!(size <= room && size + AROUND > room, "{size} of {room}");
            let datagrams = Datagrams {
                datagrams: vec![DatagramEvent::new(&piece, source, 65_535, i64::MAX)],
            };
            let size = serde_json::to_vec(&datagrams).expect("JSON").len();
            assert!(
                size <= room && size <= taken(piece.len()),
                "{size} of {room}"
            );
        }
    }

    #[test]
    fn answers_are_text_base64_or_nothing() {
        let one =
            |answer: Value| reply(answer.to_string().as_bytes()).map_err(|error| error.to_string());
        let body = |bytes: &'static [u8]| Reply {
            body: Bytes::from_static(bytes),
            close: false,
        };
        assert_eq!(one(json!(null)), Ok(None));
        assert_eq!(
            one(json!({"body": "h\u{e4}\n"})),
            Ok(Some(body("hä\n".as_bytes())))
        );
        assert_eq!(
            one(json!({"body": "AGhp", "isBase64Encoded": true})),
            Ok(Some(body(b"\x00hi")))
        );
        let closing = Reply {
            close: true,
            ..Reply::default()
        };
        assert_eq!(one(json!({"close": true})), Ok(Some(closing)));
        for wrong in [
            json!("hi"),
            json!(3),
            json!([]),
            json!({"body": 3}),
            json!({"text": "hi"}),
            json!({"body": "?", "isBase64Encoded": true}),
        ] {
            assert!(one(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_batch_is_answered_in_its_order() {
        let batch = |answer: Value| replies(answer.to_string().as_bytes(), 2);
        assert!(batch(json!(null)).expect("none").is_empty());
        let both = batch(json!([null, {"body": "b"}])).expect("two");
        assert_eq!(both[0], None);
        assert_eq!(both[1].as_ref().expect("one").body, "b");
        let error = batch(json!([null])).expect_err("too few").to_string();
        assert!(
            error.contains("a list of 2") && error.contains("has 1"),
            "{error}"
        );
        assert!(batch(json!({"body": "b"})).is_err());
    }
}
