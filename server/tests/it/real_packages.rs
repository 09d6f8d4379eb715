//! Real packages, built as their users build them (`server/tests/packages`): deployed, called 64 at a time, put to sleep,
//! called, restarted with the server, called. By each way to start, with the same answer every time.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::restore::{available, image_of};
use crate::support::{Answer, Client, Server, eventually};
use crate::threads::asleep;

/// What they are made of, and where set-up puts them.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packages");
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/packages");
const AT_A_TIME: usize = 64;
/// pandas imports for seconds, on a machine that does something else as well.
const TIMEOUT: Duration = Duration::from_secs(120);

/// `call.json`: an event to invoke with, or an HTTP request to the function's path.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Call {
    Event(Value),
    Http {
        method: String,
        path: String,
        body: Option<Value>,
    },
}

/// A function under test.
struct App {
    name: &'static str,
    runtime: &'static str,
    call: Call,
    answer: Value,
    /// What was drawn so far.
    drawn: HashSet<String>,
}

impl App {
    fn read(name: &'static str, runtime: &'static str) -> Self {
        let read = |file: &str| -> Vec<u8> {
            fs::read(Path::new(SOURCES).join(name).join(file)).expect("a file of the function")
        };
        Self {
            name,
            runtime,
            call: serde_json::from_slice(&read("call.json")).expect("a call"),
            answer: serde_json::from_slice(&read("answer.json")).expect("an answer"),
            drawn: HashSet::new(),
        }
    }

    async fn deploy(&self, client: &Client) -> Value {
        let path: PathBuf = Path::new(BUILT).join(format!("{}.zip", self.name));
        let zip = fs::read(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; run scripts/packages.sh", path.display());
        });
        // As Lambda's console names the files.
        let handler = match self.runtime {
            "node" => "index.handler",
            _ => "main.handler",
        };
        let settings = [
            ("handler", handler),
            ("name", self.name),
            ("runtime", self.runtime),
            ("memory_mb", "1024"),
            ("timeout_ms", "60000"),
            ("max_concurrency", "3"),
            ("idle_timeout_s", "1"),
            ("template_idle_timeout_s", "2"),
        ];
        let form = settings
            .into_iter()
            .fold(Form::new(), |form, (key, value)| form.text(key, value));
        let form = form.part("code", Part::bytes(zip).file_name("code.zip"));
        let request = client.request(Method::POST, "/api/v1/functions");
        let deployed = client.send(request.multipart(form)).await;
        deployed.expect(201).json()
    }

    async fn answer(&self, client: &Client) -> Answer {
        match &self.call {
            Call::Event(event) => client.invoke(self.name, event).await.expect(200),
            Call::Http { method, path, body } => {
                let method = method.parse().expect("a method");
                let request = client.request(method, &format!("/fn/{}{path}", self.name));
                client
                    .send(match body {
                        Some(body) => request.json(body),
                        None => request,
                    })
                    .await
            }
        }
    }

    /// Calls it this many times at once. Returns the start kinds.
    async fn call(&mut self, client: &Client) -> HashSet<String> {
        let answers = join_all((0..AT_A_TIME).map(|_| self.answer(client))).await;
        let mut kinds = HashSet::new();
        for answer in answers {
            kinds.insert(answer.header("x-hearth-start").to_owned());
            let mut value = answer.json();
            if let Some(drawn) = value
                .as_object_mut()
                .and_then(|value| value.remove("drawn"))
            {
                for drawn in drawn.as_array().expect("values") {
                    assert!(self.drawn.insert(drawn.to_string()), "{drawn} came twice");
                }
            }
            if matches!(self.call, Call::Http { .. }) {
                value = json!({ "status": answer.status.as_u16(), "body": value });
            }
            assert_eq!(value, self.answer, "{}: {kinds:?}", self.name);
        }
        kinds
    }
}

/// `by`: how instances of it start when nothing is set.
async fn serves(name: &'static str, runtime: &'static str, by: &str) {
    let server = Server::start();
    let restores = available(&server.client()).await;
    serves_on(server, restores, name, runtime, by).await;
}

/// `restores`: whether there will be an image of it.
async fn serves_on(
    mut server: Server,
    restores: bool,
    name: &'static str,
    runtime: &'static str,
    by: &str,
) {
    let mut client = server.client();
    let expected = |start| match start {
        "auto" if by == "fork" || restores => by,
        "restore" if restores => "restore",
        _ => "boot",
    };
    let mut app = App::read(name, runtime);
    let path = format!("/api/v1/functions/{name}");
    let mut shown = app.deploy(&client).await;
    for start in ["auto", "restore", "boot"] {
        if start != "auto" {
            let change = json!({ "start": start });
            shown = client.patch(&path, &change).await.expect(200).json();
        }
        let by = expected(start);
        assert_eq!(shown["starts_by"], by, "{shown}");
        let kinds = app.call(&client).await;
        assert!(by == "fork" || !kinds.contains("fork"), "{kinds:?}");

        if restores && by != "boot" {
            image_of(&client, name).await;
        }
        asleep(&client, name).await;
        let kinds = app.call(&client).await;
        assert_eq!(
            kinds.contains("restore"),
            restores && by != "boot",
            "{start}: {kinds:?}"
        );

        server = server.restart();
        client = server.client();
        eventually("a server that serves", TIMEOUT, || async {
            let ready = client.get("/readyz").await;
            (ready.status == 200).then_some(())
        })
        .await;
        let kinds = app.call(&client).await;
        assert!(by == "fork" || !kinds.contains("fork"), "{kinds:?}");
    }
    let image = &client.get(&path).await.expect(200).json()["image"];
    assert_eq!(image["restore_failures"], 0, "{image}");
}

#[tokio::test]
async fn polars() {
    serves("polars", "python3", "restore").await;
}

#[tokio::test]
async fn pandas_and_numpy() {
    serves("pandas", "python3", "fork").await;
}

#[tokio::test]
async fn fastapi_with_mangum() {
    serves("fastapi", "python3", "fork").await;
}

#[tokio::test]
async fn powertools_with_its_tracer() {
    // CRIU 4.1 cannot dump the tracer's socket on a kernel that refuses SO_PASSCRED for it (Linux 6.18): it boots there.
    let without_images = [("HEARTH_CRIU", "off")];
    let server = Server::start_with(&without_images);
    serves_on(server, false, "powertools", "python3", "fork").await;
}

#[tokio::test]
async fn sharp() {
    serves("sharp", "node", "restore").await;
}

#[tokio::test]
async fn nanoid_and_uuid() {
    serves("ids", "node", "fork").await;
}

#[tokio::test]
async fn express_with_serverless_http() {
    serves("express", "node", "fork").await;
}
