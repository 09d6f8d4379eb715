//! A broker of the node's: mosquitto, to which functions and chains subscribe, and peers that mean harm.

mod hostile;
mod subscribers;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearth_testkit::program::Program;
use serde_json::{Value, json};

use super::LIMIT;
use crate::support::{Client, eventually};

const THINGS: &str = "\
import base64
def handler(event, context):
    body = base64.b64decode(event['body']).decode()
    if body == 'fail':
        raise ValueError('of nobody else')
    kept = {key: event[key] for key in ('topic', 'qos', 'client', 'port', 'broker')}
    return kept | {'by': context.function_name, 'said': body}
";

/// A broker with a directory of its own.
struct Mosquitto {
    port: u16,
    dir: tempfile::TempDir,
    settings: String,
    program: Option<Program>,
}

impl Mosquitto {
    /// One that listens at a free port, with these settings more. `{dir}` is its directory.
    async fn start(settings: &str) -> Self {
        Self::start_at(tempfile::tempdir().expect("a directory"), settings).await
    }

    async fn start_at(dir: tempfile::TempDir, settings: &str) -> Self {
        let port = crate::ports::free();
        let path = dir.path().display();
        let settings = format!(
            "user root\nlog_type all\nlog_dest file {path}/log\nlistener {port} 127.0.0.1\n{}\n",
            settings.replace("{dir}", &path.to_string())
        );
        let mut broker = Self {
            port,
            dir,
            settings,
            program: None,
        };
        broker.run().await;
        broker
    }

    /// Runs it, again if it ran.
    async fn run(&mut self) {
        let path = self.dir.path().join("mosquitto.conf");
        std::fs::write(&path, &self.settings).expect("written");
        let mut run = Command::new("/usr/sbin/mosquitto");
        run.arg("-c").arg(&path);
        run.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let program = Program::start_with(&mut run);
        self.program = Some(program.expect("mosquitto; scripts/setup.sh test installs it"));
        let port = self.port;
        eventually("the broker listens", LIMIT, || async {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .await;
    }

    /// What it has logged.
    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn url(&self) -> String {
        format!("mqtt://localhost:{}", self.port)
    }

    /// Publishes a message of quality 1.
    fn publish(&self, topic: &str, text: &str) {
        let port = self.port.to_string();
        let all = ["-p", &port, "-q", "1", "-t", topic, "-m", text];
        super::output("mosquitto_pub", &all);
    }

    /// What is answered to a message.
    fn asked(&self, arguments: &[&str]) -> Value {
        let said = super::mqtt::asked(self.port, arguments);
        serde_json::from_str(said.trim()).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

/// The file of `HEARTH_MQTT_BROKERS`.
fn file(dir: &Path, brokers: &Value) -> PathBuf {
    let path = dir.join("brokers.json");
    std::fs::write(&path, brokers.to_string()).expect("written");
    path
}

/// What `triggers` says of a subscription.
fn trigger(broker: &str, topics: &Value) -> Value {
    json!([{"protocol": "mqtt", "broker": broker, "topics": topics}])
}

/// How a function's, or chain's, first subscription fares.
async fn state(client: &Client, of: &str) -> Value {
    let view = client.get(&format!("/api/v1/{of}/ingress")).await;
    view.expect(200).json()["brokers"][0].clone()
}

/// The state once it is as wanted.
async fn once(client: &Client, of: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    eventually(what, 3 * LIMIT, || async {
        let state = state(client, of).await;
        is(&state).then_some(state)
    })
    .await
}

fn is_connected(state: &Value) -> bool {
    state["connected"] == true
}
