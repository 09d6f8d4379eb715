//! Functions that mean harm, uploaded to the real server. Each attack must be contained, its caller must get the right
//! answer, and a second function must keep answering all the while.
//!
//! The Python side of each group is the file of the same name: `handler` calls the function that `event["attack"]`
//! names. What an attack could do and what it was refused comes back as its result.

/// A test whose attacks are made by an instance of a booted template and by one of a restored template, into a sandbox that
/// was made for it and into a pre-warmed one: the same must hold for all. `$attacks` takes the [`Arena`] that these
/// make of the code and the settings.
macro_rules! by_fork_and_restore {
    ($attacks:ident, $code:expr, $settings:expr) => {
        mod $attacks {
            use super::*;

            #[tokio::test]
            async fn booted() {
                super::$attacks(Arena::new($code, $settings).await).await;
            }

            #[tokio::test]
            async fn restored() {
                if let Some(arena) =
                    Arena::restored($code, $settings, crate::hostile::Ahead(false)).await
                {
                    super::$attacks(arena).await;
                }
            }

            #[tokio::test]
            async fn restored_into_a_prewarmed_sandbox() {
                if let Some(arena) =
                    Arena::restored($code, $settings, crate::hostile::Ahead(true)).await
                {
                    super::$attacks(arena).await;
                }
            }
        }
    };
}

mod channel;
mod control;
mod descriptors;
mod files;
pub(crate) mod host;
mod kernel;
mod memory;
mod network;
mod node;
mod outside;
mod processes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::restore;
use crate::support::{Answer, Client, Server};

/// Longest wait for any one answer; no attack has a longer deadline of its own. Generous: it only tells "late" from
/// "never".
const TIMEOUT: Duration = Duration::from_secs(30);
/// Printed and kept by the second function, looked for by the first.
const SECRET: &str = "the-second-functions-secret";

/// Every attack file begins with this.
const PRELUDE: &str = include_str!("prelude.py");

/// Whether a restore finds a pre-warmed sandbox.
struct Ahead(bool);

/// A server with a hostile function (`attack`) and one that is in use all the while (`steady`).
struct Arena {
    server: Server,
    client: Client,
    stop: Arc<AtomicBool>,
    witness: Option<JoinHandle<u32>>,
}

impl Arena {
    /// Deploys both functions and begins to call the second one.
    async fn new(code: &str, settings: Value) -> Self {
        Self::on(Server::start(), code, settings).await
    }

    async fn on(server: Server, code: &str, settings: Value) -> Self {
        let arena = Self::with_witness(server).await;
        arena
            .client
            .deploy("attack", &format!("{PRELUDE}\n{code}"), settings)
            .await;
        arena
    }

    /// The same, with the hostile function's template out of an image, where the host has a CRIU that works.
    async fn restored(code: &str, settings: Value, ahead: Ahead) -> Option<Self> {
        let server = restore::server(ahead.0);
        let arena = Self::on(server, code, settings).await;
        if !restore::available(&arena.client).await {
            return None;
        }
        restore::image_of(&arena.client, "attack").await;
        restore::kill_template(&arena.server, &arena.client, "attack").await;
        if ahead.0 {
            restore::prewarmed(&arena.client).await;
        }
        assert_eq!(arena.recovers("its template's end").await, "restore");
        let node = arena.client.get("/api/v1/node").await.expect(200).json();
        assert_eq!(node["prewarmed_sandboxes_used"], u64::from(ahead.0));
        Some(arena)
    }

    /// Deploys the second function only.
    async fn without_attacker() -> Self {
        Self::with_witness(Server::start()).await
    }

    async fn with_witness(server: Server) -> Self {
        let client = server.client();
        let steady =
            format!("SECRET = '{SECRET}-code'\ndef handler(event, context):\n    return event\n");
        let settings = json!({"env": {"SECRET": format!("{SECRET}-environment")}});
        client.deploy("steady", &steady, settings).await;
        let stop = Arc::new(AtomicBool::new(false));
        let witness = tokio::spawn(keep_calling(client.clone(), stop.clone()));
        Self {
            server,
            client,
            stop,
            witness: Some(witness),
        }
    }

    /// Invokes the hostile function with an event.
    async fn send(&self, event: &Value) -> Answer {
        tokio::time::timeout(TIMEOUT, self.client.invoke("attack", event))
            .await
            .unwrap_or_else(|_| panic!("no answer to {event}"))
    }

    /// Invokes one attack.
    async fn attack(&self, name: &str) -> Answer {
        self.send(&json!({ "attack": name })).await
    }

    /// Invokes one attack that lives to report what it was refused.
    async fn report(&self, name: &str) -> Value {
        let answer = self.attack(name).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        answer.json()
    }

    /// The hostile function serves again after an attack; returns the start kind from which.
    async fn recovers(&self, after: &str) -> String {
        let answer = self.attack("nothing").await;
        assert_eq!(answer.status, 200, "after {after}: {}", answer.text());
        assert_eq!(answer.json(), "nothing happened", "after {after}");
        answer.header("x-hearth-start").to_owned()
    }

    /// The same after an attack on what the instance itself needs: it may be found out by a later request only, at that
    /// request's cost, and each ends one instance at most.
    async fn recovers_in_the_end(&self, after: &str) {
        for _ in 0..5 {
            let answer = self.attack("nothing").await;
            if answer.status == 200 && answer.json() == "nothing happened" {
                return;
            }
            assert!(
                [200, 502, 504].contains(&answer.status.as_u16()),
                "after {after}: {}",
                answer.text()
            );
        }
        self.recovers(after).await;
    }

    /// Ends the test: the second function has answered throughout, and when both are deleted nothing of them is left.
    async fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let witness = self.witness.take().expect("finished once");
        let answered = witness.await.expect("the second function kept answering");
        assert!(answered > 0, "the second function answered");
        for name in ["attack", "steady"] {
            let answer = self
                .client
                .delete(&format!("/api/v1/functions/{name}"))
                .await;
            assert!(
                answer.status == 204 || (answer.status == 404 && name == "attack"),
                "{name}: {}",
                answer.text()
            );
        }
        host::nothing_is_left(&mut self.server).await;
    }
}

/// Calls the second function until stopped; returns how often it answered.
async fn keep_calling(client: Client, stop: Arc<AtomicBool>) -> u32 {
    let mut count = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        let answer = tokio::time::timeout(TIMEOUT, client.invoke("steady", &json!(count)))
            .await
            .expect("the second function answers");
        assert_eq!(answer.expect(200).json(), json!(count));
        count += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    count
}
