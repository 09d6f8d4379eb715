//! What every runtime must do alike: one suite over the real server, run for each language and, for Node, also where its
//! instances cannot be forked.
//!
//! Each language has one function that can do everything (`everything.py`, `everything.js`): its event names what.

mod confinement;
mod failures;
mod invoke;
mod logs;
mod trigger;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Server};

/// What runs the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
    /// Node as if it could not be forked: instances boot by themselves.
    NodeBooted,
}

impl Language {
    /// The setting `runtime`.
    pub fn runtime(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node | Self::NodeBooted => "node",
        }
    }

    /// The function that can do everything.
    fn everything(self) -> &'static str {
        self.choose(include_str!("everything.py"), include_str!("everything.js"))
    }

    /// What is different in name only.
    pub fn choose<T>(self, python: T, node: T) -> T {
        match self {
            Self::Python => python,
            Self::Node | Self::NodeBooted => node,
        }
    }

    /// The start kind of a first start.
    fn first_kind(self) -> &'static str {
        match self {
            Self::Python | Self::Node => "fork",
            Self::NodeBooted => "boot",
        }
    }

    /// What Lambda calls the way by which its instances come to be.
    fn initialization(self) -> &'static str {
        match self {
            Self::Python | Self::Node => "snap-start",
            Self::NodeBooted => "on-demand",
        }
    }

    /// A server for its functions.
    pub fn server(self) -> Server {
        match self {
            Self::Python | Self::Node => Server::start(),
            Self::NodeBooted => Server::start_with(&[("HEARTH_NODE_FORK", "off")]),
        }
    }
}

/// A server, with a function that can do everything, `all`, unless it is bare.
struct Subject {
    server: Server,
    client: Client,
    language: Language,
}

impl Subject {
    fn bare(language: Language) -> Self {
        let server = language.server();
        let client = server.client();
        Self {
            server,
            client,
            language,
        }
    }

    async fn new(language: Language, settings: Value) -> Self {
        let subject = Self::bare(language);
        subject
            .deploy("all", language.everything(), settings)
            .await
            .expect(201);
        subject
    }

    /// Deploys a function of the language.
    async fn deploy(&self, name: &str, code: &str, settings: Value) -> Answer {
        let mut body = json!({
            "name": name, "runtime": self.language.runtime(), "code": {"inline": code},
        });
        let (Some(body_fields), Value::Object(settings)) = (body.as_object_mut(), settings) else {
            panic!("settings are an object");
        };
        body_fields.extend(settings);
        self.client.post("/api/v1/functions", &body).await
    }

    /// Has the function run a command.
    async fn send(&self, what: &str, with: Value) -> Answer {
        let event = json!({"do": what, "with": with});
        tokio::time::timeout(TIMEOUT, self.client.invoke("all", &event))
            .await
            .unwrap_or_else(|_| panic!("no answer to {event}"))
    }

    /// Has it run a command that succeeds, and returns the result.
    async fn run(&self, what: &str, with: Value) -> Value {
        let answer = self.send(what, with).await;
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        answer.json()
    }

    /// The record of the invocation that an answer belongs to.
    async fn record(&self, answer: &Answer) -> Value {
        let id = answer.header("x-hearth-invocation-id");
        self.client.invocation(id).await
    }
}

/// Longest wait for any one answer: it only tells "late" from "never".
const TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a test of each function for each language.
macro_rules! for_every_language {
    ($($name:ident),+ $(,)?) => {
        mod python {
            $(#[tokio::test] async fn $name() { super::$name(crate::conformance::Language::Python).await })+
        }
        mod node {
            $(#[tokio::test] async fn $name() { super::$name(crate::conformance::Language::Node).await })+
        }
        mod node_booted {
            $(#[tokio::test] async fn $name() { super::$name(crate::conformance::Language::NodeBooted).await })+
        }
    };
}
pub(crate) use for_every_language;
