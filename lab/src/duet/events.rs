//! The events of a duet: from files, by name from those that are saved with a function, or from what the history has kept.

mod http;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hyper::Method;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::platform::client::{Client, ClientError, encoded};

/// Longest event, which is the server's limit.
const EVENT_MAX: u64 = 6 << 20;

/// Most events of a duet: each takes as many calls as the others.
pub const EVENTS_MAX: usize = 200;

/// What the history is asked for at most to find recorded events.
const LOOKED_AT_MAX: usize = 200;

/// A benchmark: both versions get this event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// JSON text.
    pub text: String,
}

/// Why there is no event.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// The event is no JSON, or too long.
    #[error("{0}: {1}")]
    Event(String, String),
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The history has no whole event.
    #[error(
        "of {0} no recorded event is whole: the history keeps the first few a second, and the beginning of each"
    )]
    None(String),
}

impl Event {
    /// What a function gets when nothing is sent.
    pub fn empty() -> Self {
        Self {
            name: "empty".to_owned(),
            text: "{}".to_owned(),
        }
    }

    /// From a file, which names it.
    ///
    /// # Errors
    /// A file that cannot be read, is longer than an event may be, or is no JSON.
    pub fn read(path: &Path) -> Result<Self, EventError> {
        let shown = path.display().to_string();
        let mut text = String::new();
        let read =
            File::open(path).and_then(|file| file.take(EVENT_MAX + 1).read_to_string(&mut text));
        read.map_err(|error| EventError::File(shown.clone(), error))?;
        if text.len() as u64 > EVENT_MAX {
            return Err(EventError::Event(
                shown,
                format!("longer than {EVENT_MAX} bytes"),
            ));
        }
        if !is_json(&text) {
            return Err(EventError::Event(shown, "no JSON".to_owned()));
        }
        let name = path.file_stem().unwrap_or(path.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            text,
        })
    }
}

/// A function's saved events of these names.
///
/// # Errors
/// There is none of a name, or the server refuses, or does not answer.
pub async fn saved(
    client: &Client,
    function: &str,
    names: &[String],
) -> Result<Vec<Event>, EventError> {
    let mut found = Vec::new();
    for name in names {
        let path = format!(
            "/api/v1/functions/{function}/saved-events/{}",
            encoded(name)
        );
        let answer = client.send(Method::GET, &path, None).await?;
        found.push(Event {
            name: name.clone(),
            text: String::from_utf8_lossy(&answer.body).into_owned(),
        });
    }
    Ok(found)
}

/// The newest different events of successful invocations of a function that were kept whole, as many as `count`, newest first. Their names
/// are the invocations' ids, and say so where credentials are hidden.
///
/// # Errors
/// A server that refuses, or does not answer.
pub async fn recorded(
    client: &Client,
    function: &str,
    count: usize,
) -> Result<Vec<Event>, EventError> {
    let path =
        format!("/api/v1/functions/{function}/invocations?status=succeeded&limit={LOOKED_AT_MAX}");
    let list = client.send(Method::GET, &path, None).await?.json();
    let takes_bytes = takes_bytes(client, function).await?;
    let mut found: Vec<Event> = Vec::new();
    for invocation in list["items"].as_array().into_iter().flatten() {
        if found.len() >= count {
            break;
        }
        if !is_replayed(invocation) {
            continue;
        }
        let Some(id) = invocation["id"].as_str() else {
            continue;
        };
        let path = format!("/api/v1/invocations/{id}");
        let whole = client.send(Method::GET, &path, None).await?.json();
        let Some(kept) = kept(&whole, takes_bytes) else {
            continue;
        };
        if found.iter().all(|event| event.text != kept.text) {
            let name = match kept.is_hidden {
                true => format!("{id} (credentials hidden)"),
                false => id.to_owned(),
            };
            found.push(Event {
                name,
                text: kept.text,
            });
        }
    }
    Ok(found)
}

/// An event of which all was kept that the handler got, but for credentials.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// JSON text.
    pub(crate) text: String,
    /// Whether credentials of an HTTP request were taken out: the handler may go another way without them.
    pub(crate) is_hidden: bool,
}

/// Whether an invoke with its event is the same to the handler as this invocation was. Events of ports and chains may need their
/// connection, or the chain's other members, which copies lack.
pub(crate) fn is_replayed(invocation: &Value) -> bool {
    let trigger = invocation["trigger"].as_str();
    matches!(trigger, Some("invoke" | "async" | "schedule" | "http"))
}

/// Whether a function gets the bodies of HTTP requests as bytes.
///
/// # Errors
/// A server that refuses, or does not answer.
pub(crate) async fn takes_bytes(client: &Client, function: &str) -> Result<bool, ClientError> {
    let path = format!("/api/v1/functions/{function}");
    let found = client.send(Method::GET, &path, None).await?.json();
    Ok(found["body"] == "bytes")
}

/// The event of an invocation, if it [can be replayed](is_replayed) and all of it was kept.
pub(crate) fn kept(invocation: &Value, takes_bytes: bool) -> Option<Kept> {
    let event = &invocation["event"];
    let text = event["text"].as_str()?;
    let is_whole = event["truncated"] == Value::Bool(false) && is_json(text);
    if !is_whole || !is_replayed(invocation) {
        return None;
    }
    let (text, is_hidden) = match invocation["trigger"] == "http" {
        true => http::rebuilt(text, invocation["status"] == "succeeded", takes_bytes)?,
        false => (text.to_owned(), false),
    };
    Some(Kept { text, is_hidden })
}

/// Gives events of the same name numbers: results are found by their names.
pub fn distinguish(events: &mut [Event]) {
    for index in 1..events.len() {
        let (before, rest) = events.split_at_mut(index);
        let name = rest[0].name.clone();
        let mut number = 1;
        while before.iter().any(|event| event.name == rest[0].name) {
            number += 1;
            rest[0].name = format!("{name}-{number}");
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_events_that_were_kept_whole_are_replayed() {
        let kept = |event: Value| {
            let kept = kept(&json!({ "trigger": "invoke", "event": event }), false)?;
            Some(kept.text)
        };
        let whole = json!({"text": "{\"a\":1}", "truncated": false, "binary": false});
        assert_eq!(kept(whole).as_deref(), Some("{\"a\":1}"));
        assert_eq!(kept(json!({"text": "{\"a\":", "truncated": true})), None);
        assert_eq!(
            kept(json!({"text": null, "truncated": false, "binary": true})),
            None
        );
        assert_eq!(kept(Value::Null), None);
    }

    #[test]
    fn events_are_replayed_whose_handlers_are_called_alike() {
        let event = json!({"text": "{\"headers\":{\"cookie\":\"(hidden)\"}}", "truncated": false});
        let kept = |trigger: &str| {
            let invocation = json!({"trigger": trigger, "status": "succeeded", "event": event});
            kept(&invocation, false)
        };
        for trigger in ["invoke", "async", "schedule"] {
            let kept = kept(trigger).expect(trigger);
            assert_eq!(event["text"], kept.text);
            assert!(!kept.is_hidden, "credentials only of HTTP are taken out");
        }
        let http = kept("http").expect("an event");
        assert!(http.is_hidden && http.text.contains("isBase64Encoded"));
        for trigger in ["udp", "tcp", "chain", "coap", "mqtt"] {
            assert_eq!(kept(trigger), None, "{trigger}");
        }
    }

    #[test]
    fn an_event_is_a_file_with_json() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("order.json");
        std::fs::write(&path, "[1, 2]").expect("written");
        let event = Event::read(&path).expect("an event");
        assert_eq!(
            (event.name.as_str(), event.text.as_str()),
            ("order", "[1, 2]")
        );
        std::fs::write(&path, "{").expect("written");
        assert!(matches!(Event::read(&path), Err(EventError::Event(..))));
        let missing = directory.path().join("missing.json");
        assert!(matches!(Event::read(&missing), Err(EventError::File(..))));
    }

    #[test]
    fn events_of_the_same_name_get_numbers() {
        let mut events = ["a", "b", "a", "a", "a-2"].map(|name| Event {
            name: name.to_owned(),
            text: "{}".to_owned(),
        });
        distinguish(&mut events);
        assert_eq!(
            events.map(|event| event.name),
            ["a", "b", "a-2", "a-3", "a-2-2"]
        );
    }
}
