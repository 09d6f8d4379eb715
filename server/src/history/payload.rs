//! Events and results: which part of them is stored.
//!
//! Storing all of them would cost more CPU time and disk than the invocations themselves. So each is truncated
//! ([`PayloadLimits`]) and only a limited number per second and function is stored: manual tests are stored completely,
//! a flood is sampled. The choice is made when an invocation begins, and again when one fails. The hot path copies a
//! bounded amount; the writer does the rest, including removing credentials from HTTP headers.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::model::{InvocationPayloads, Payload, PayloadLimits};

/// Invocations per second and function whose event and result are stored.
const EACH_SECOND: u64 = 20;
/// Failed invocations per second that are stored in addition.
const FAILURES_EACH_SECOND: u64 = 20;
/// The same for all functions together: limits the work of the writer and the disk.
const NODE_EACH_SECOND: u64 = 400;
/// An HTTP request's event is parsed, to take credentials out of it, and must be whole for that. A longer one is not kept.
const LONGEST_HTTP_EVENT: usize = 64 << 10;
/// Headers whose values are credentials, in requests and in responses.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "x-api-key",
    "x-csrf-token",
];
/// Replaces a credential.
const HIDDEN: &str = "(hidden)";

/// Admits a number per second.
#[derive(Debug, Default)]
struct CaptureLimit {
    /// The second, and below it how many came in it.
    state: AtomicU64,
}

/// Bits of [`CaptureLimit::state`] that count; no gate lets more through.
const COUNT_BITS: u32 = 20;

impl CaptureLimit {
    /// Whether one more may pass in this second, counted from any point on.
    fn admits(&self, second: u64, most: u64) -> bool {
        let passed = |state: u64| {
            let count = match state >> COUNT_BITS == second {
                true => state & ((1 << COUNT_BITS) - 1),
                false => 0,
            };
            (count < most).then_some(second << COUNT_BITS | (count + 1))
        };
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, passed)
            .is_ok()
    }
}

/// Limits for one function's payloads.
#[derive(Debug, Default)]
pub(super) struct CaptureLimits {
    begun: CaptureLimit,
    failed: CaptureLimit,
}

/// Limits for all functions' payloads.
#[derive(Debug, Default)]
pub(super) struct NodeCaptureLimit(CaptureLimit);

impl NodeCaptureLimit {
    /// Whether the payloads of an invocation that begins are kept.
    pub(super) fn admits_begun(&self, function: &CaptureLimits, second: u64) -> bool {
        function.begun.admits(second, EACH_SECOND) && self.0.admits(second, NODE_EACH_SECOND)
    }

    /// Whether those of one that failed are.
    pub(super) fn admits_failed(&self, function: &CaptureLimits, second: u64) -> bool {
        function.failed.admits(second, FAILURES_EACH_SECOND)
            && self.0.admits(second, NODE_EACH_SECOND)
    }
}

/// The beginning of something.
#[derive(Debug, Clone, Default)]
struct Beginning {
    bytes: Vec<u8>,
    /// There was more.
    more: bool,
}

impl Beginning {
    /// Continues, up to `most` bytes in total.
    fn add(&mut self, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.more |= bytes.len() > room;
    }
}

/// Captured parts of an invocation, unprocessed.
#[derive(Debug, Clone)]
pub struct Captured {
    limits: PayloadLimits,
    /// The HTTP trigger's events and answers hold headers and come with bodies.
    http: bool,
    event: Beginning,
    body: Beginning,
    head: Bytes,
    result: Option<Beginning>,
}

impl Captured {
    /// Takes the event along.
    pub(super) fn new(limits: PayloadLimits, http: bool, event: &[u8]) -> Self {
        let most = match http {
            true => LONGEST_HTTP_EVENT,
            false => limits.event_bytes as usize,
        };
        let mut begun = Beginning::default();
        if limits.event_bytes > 0 {
            begun.add(event, most);
        }
        Self {
            limits,
            http,
            event: begun,
            body: Beginning::default(),
            head: Bytes::new(),
            result: None,
        }
    }

    /// A piece of the HTTP request's body.
    pub fn body(&mut self, piece: &[u8]) {
        self.body.add(piece, self.limits.event_bytes as usize);
    }

    /// Status and headers of the HTTP answer, as the runtime wrote them.
    pub fn head(&mut self, head: &[u8]) {
        if head.len() <= LONGEST_HTTP_EVENT {
            self.head = Bytes::copy_from_slice(head);
        }
    }

    /// A piece of the result, or of the HTTP answer's body.
    pub fn result(&mut self, piece: &[u8]) {
        let most = self.limits.result_bytes as usize;
        self.result.get_or_insert_default().add(piece, most);
    }

    /// Its size in memory, bytes.
    pub(super) fn size(&self) -> usize {
        let result = self.result.as_ref().map_or(0, |result| result.bytes.len());
        self.event.bytes.len() + self.body.bytes.len() + self.head.len() + result
    }

    /// As it is stored.
    pub(crate) fn stored(&self) -> InvocationPayloads {
        let (events, results) = (
            self.limits.event_bytes as usize,
            self.limits.result_bytes as usize,
        );
        if !self.http {
            return InvocationPayloads {
                event: (events > 0).then(|| cut(&self.event, events)),
                result: self
                    .result
                    .as_ref()
                    .filter(|_| results > 0)
                    .map(|result| cut(result, results)),
            };
        }
        let event = || with_body(&self.event.bytes, &self.body, events);
        let result = || with_body(&self.head, self.result.as_ref()?, results);
        InvocationPayloads {
            event: (events > 0 && !self.event.more).then(event).flatten(),
            result: (results > 0).then(result).flatten(),
        }
    }
}

/// Text up to a size, cut between characters; what is not text is only named so.
fn cut(kept: &Beginning, most: usize) -> Payload {
    let text = match std::str::from_utf8(&kept.bytes) {
        Ok(text) => text,
        // A character that was cut through is no sign of anything.
        Err(error) if kept.more && error.error_len().is_none() => {
            std::str::from_utf8(&kept.bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => {
            return Payload {
                text: None,
                truncated: kept.more,
                binary: true,
            };
        }
    };
    let shown = &text[..text.floor_char_boundary(most)];
    Payload {
        text: Some(shown.to_owned()),
        truncated: kept.more || shown.len() < text.len(),
        binary: false,
    }
}

/// An HTTP request's event, or its answer's status and headers, with the body in it and without credentials.
fn with_body(json: &[u8], body: &Beginning, most: usize) -> Option<Payload> {
    let mut object: Map<String, Value> = serde_json::from_slice(json).ok()?;
    hide(&mut object);
    let shown = cut(body, most);
    if shown.binary {
        object.insert("isBase64Encoded".into(), true.into());
        object.insert("body".into(), "(not text)".into());
    } else if let Some(text) = shown.text.filter(|text| !text.is_empty()) {
        object.insert("body".into(), text.into());
    }
    let whole = Beginning {
        bytes: Value::Object(object).to_string().into_bytes(),
        more: shown.truncated,
    };
    Some(cut(&whole, most))
}

/// Takes credentials out of headers: an object in requests, a list of pairs in answers.
fn hide(object: &mut Map<String, Value>) {
    let secret = |name: &str| {
        SECRET_HEADERS
            .iter()
            .any(|secret| name.eq_ignore_ascii_case(secret))
    };
    match object.get_mut("headers") {
        Some(Value::Object(headers)) => {
            for (name, value) in headers {
                if secret(name) {
                    *value = HIDDEN.into();
                }
            }
        }
        Some(Value::Array(headers)) => {
            for pair in headers {
                if let Value::Array(pair) = pair
                    && let [Value::String(name), value] = pair.as_mut_slice()
                    && secret(name)
                {
                    *value = HIDDEN.into();
                }
            }
        }
        _ => {}
    }
    if let Some(Value::Array(cookies)) = object.get_mut("cookies") {
        for cookie in cookies {
            let name = cookie.as_str().and_then(|cookie| cookie.split_once('='));
            *cookie = format!("{}={HIDDEN}", name.map_or("", |(name, _)| name)).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: PayloadLimits = PayloadLimits {
        event_bytes: 8,
        result_bytes: 200,
    };

    #[test]
    fn a_gate_lets_so_many_through_a_second() {
        let gate = CaptureLimit::default();
        for second in [0, 1, 7] {
            let passed = (0..10).filter(|_| gate.admits(second, 3)).count();
            assert_eq!(passed, 3, "{second}");
        }
        let (node, busy, quiet) = (
            NodeCaptureLimit::default(),
            CaptureLimits::default(),
            CaptureLimits::default(),
        );
        assert_eq!((0..99).filter(|_| node.admits_begun(&busy, 1)).count(), 20);
        assert!(
            node.admits_begun(&quiet, 1),
            "one function takes nothing from another"
        );
        assert!(
            node.admits_failed(&busy, 1),
            "failures have a share of their own"
        );
        let many: Vec<CaptureLimits> = (0..30).map(|_| CaptureLimits::default()).collect();
        let all = many.iter().flat_map(|gates| (0..20).map(move |_| gates));
        let passed = all.filter(|gates| node.admits_begun(gates, 2)).count();
        assert_eq!(passed as u64, NODE_EACH_SECOND);
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let mut captured = Captured::new(LIMITS, false, "\"aaaaaä\"".as_bytes());
        assert_eq!(captured.stored().result, None);
        captured.result(b"{\"a\":");
        captured.result(b"1}");
        let stored = captured.stored();
        let event = stored.event.expect("an event");
        assert_eq!(event.text.as_deref(), Some("\"aaaaaä"));
        assert!(event.truncated && !event.binary);
        let result = stored.result.expect("a result");
        assert_eq!(result.text.as_deref(), Some("{\"a\":1}"));
        assert!(!result.truncated);
        // Cut in the middle of a character.
        let event = Captured::new(LIMITS, false, "\"aaaaaaä\"".as_bytes())
            .stored()
            .event;
        assert_eq!(event.expect("an event").text.as_deref(), Some("\"aaaaaa"));
        let off = PayloadLimits {
            event_bytes: 0,
            result_bytes: 0,
        };
        let mut none = Captured::new(off, false, b"{}");
        none.result(b"{}");
        assert_eq!(none.stored(), InvocationPayloads::default());
        assert_eq!(none.size(), 0);
    }

    #[test]
    fn credentials_of_http_are_not_kept() {
        let limits = PayloadLimits {
            event_bytes: 4096,
            result_bytes: 4096,
        };
        let event = json!({
            "rawPath": "/a", "cookies": ["session=s3cr3t", "s3cr3t"],
            "headers": {"Authorization": "Bearer s3cr3t", "accept": "x"},
        });
        let mut captured = Captured::new(limits, true, event.to_string().as_bytes());
        captured.body(b"name=");
        captured.body(b"Ada");
        captured.head(br#"{"statusCode":200,"headers":[["Set-Cookie","a=s3cr3t"],["etag","1"]]}"#);
        captured.result(&[0xff, 0xfe]);
        let stored = captured.stored();
        let text = |payload: Option<Payload>| payload.and_then(|payload| payload.text).unwrap();
        let (event, result) = (text(stored.event), text(stored.result));
        assert!(
            !event.contains("s3cr3t") && !result.contains("s3cr3t"),
            "{event} {result}"
        );
        assert!(event.contains("\"body\":\"name=Ada\"") && event.contains("\"accept\":\"x\""));
        assert!(event.contains("session=(hidden)"), "{event}");
        assert!(
            result.contains("\"statusCode\":200") && result.contains("(not text)"),
            "{result}"
        );
    }

    #[test]
    fn an_http_event_that_cannot_be_searched_for_credentials_is_not_kept() {
        let event = json!({ "headers": {"authorization": "x".repeat(LONGEST_HTTP_EVENT)} });
        let captured = Captured::new(LIMITS, true, event.to_string().as_bytes());
        assert_eq!(captured.stored().event, None);
        let captured = Captured::new(LIMITS, true, b"[1");
        assert_eq!(captured.stored().event, None);
    }
}
