//! Functions to start from, offered by the page that creates one. Each really does something, and brings an event to try
//! it with.

/// A small working function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starter {
    /// Stable key, used in URLs.
    pub key: &'static str,
    /// What its card says.
    pub label: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// `python3` or `node`.
    pub runtime: &'static str,
    /// Name of the function unless another is typed; a free one is made from it.
    pub name: &'static str,
    /// Source of the one module.
    pub code: &'static str,
    /// The event to try it with, JSON: the first one of the test panel.
    pub event: &'static str,
}

const HELLO_EVENT: &str = include_str!("starters/hello.event.json");
const HTTP_API_EVENT: &str = include_str!("starters/http_api.event.json");
const JSON_TRANSFORM_EVENT: &str = include_str!("starters/json_transform.event.json");

/// What the starter's event is saved as.
pub const EVENT_NAME: &str = "Sample";

/// All of them; the first is preselected.
pub const STARTERS: [Starter; 8] = [
    Starter {
        key: "hello",
        label: "Hello",
        summary: "JSON in, JSON out and a log line.",
        runtime: "python3",
        name: "hello",
        code: include_str!("starters/hello.py"),
        event: HELLO_EVENT,
    },
    Starter {
        key: "http-api",
        label: "HTTP API",
        summary: "Routes for GET and POST behind one URL, with errors as JSON.",
        runtime: "python3",
        name: "http-api",
        code: include_str!("starters/http_api.py"),
        event: HTTP_API_EVENT,
    },
    Starter {
        key: "json-transform",
        label: "JSON transform",
        summary: "Validates an order and returns it in another format.",
        runtime: "python3",
        name: "json-transform",
        code: include_str!("starters/json_transform.py"),
        event: JSON_TRANSFORM_EVENT,
    },
    Starter {
        key: "image-thumbnail",
        label: "Image thumbnail",
        summary: "Scales a PNG down with nothing but the standard library.",
        runtime: "python3",
        name: "image-thumbnail",
        code: include_str!("starters/image_thumbnail.py"),
        event: include_str!("starters/image_thumbnail.event.json"),
    },
    Starter {
        key: "scheduled-job",
        label: "Scheduled job",
        summary: "Runs from cron, remembers its last run and reports what it did.",
        runtime: "python3",
        name: "scheduled-job",
        code: include_str!("starters/scheduled_job.py"),
        event: include_str!("starters/scheduled_job.event.json"),
    },
    Starter {
        key: "node-hello",
        label: "Hello",
        summary: "JSON in, JSON out and a log line.",
        runtime: "node",
        name: "hello-node",
        code: include_str!("starters/hello.mjs"),
        event: HELLO_EVENT,
    },
    Starter {
        key: "node-http-api",
        label: "HTTP API",
        summary: "Routes for GET and POST behind one URL, with errors as JSON.",
        runtime: "node",
        name: "http-api-node",
        code: include_str!("starters/http_api.mjs"),
        event: HTTP_API_EVENT,
    },
    Starter {
        key: "node-json-transform",
        label: "JSON transform",
        summary: "Validates an order and returns it in another format.",
        runtime: "node",
        name: "json-transform-node",
        code: include_str!("starters/json_transform.mjs"),
        event: JSON_TRANSFORM_EVENT,
    },
];

impl Starter {
    /// Display name of the language.
    pub fn language(&self) -> &'static str {
        match self.runtime {
            "node" => "Node.js",
            _ => "Python",
        }
    }
}

/// The starter with this key.
pub fn by_key(key: &str) -> Option<Starter> {
    STARTERS.into_iter().find(|starter| starter.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_lead_to_their_starter() {
        for (index, starter) in STARTERS.iter().enumerate() {
            assert_eq!(by_key(starter.key), Some(*starter));
            assert!(
                STARTERS[..index]
                    .iter()
                    .all(|other| other.key != starter.key)
            );
        }
        assert_eq!(by_key("../etc"), None);
    }

    #[test]
    fn every_starter_has_the_default_handler_and_an_event() {
        for starter in STARTERS {
            let handler = match starter.runtime {
                "python3" => "def handler(event, context):",
                _ => "export const handler = async (event, context) =>",
            };
            assert!(starter.code.contains(handler), "{}", starter.key);
            serde_json::from_str::<serde_json::Value>(starter.event).expect(starter.key);
        }
    }
}
