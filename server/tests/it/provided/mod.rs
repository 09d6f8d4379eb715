//! The runtime `provided`: Lambda functions that bring a runtime of their own, built with AWS's libraries for Go and Rust, and
//! bootstraps that do what none should.

mod odd;
mod uploads;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, archive, skip};

/// Where set-up has put the modules that the Go function imports.
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/go");
/// The Go function.
const GO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/provided/lambda-go");
/// Where the distributions and Go's own packages put it, besides PATH, which `sudo` may have replaced.
const TOOLCHAINS: [&str; 3] = ["go", "/usr/bin/go", "/usr/local/go/bin/go"];

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const XRAY: &str = "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1";

pub(super) async fn try_deploy(
    client: &Client,
    name: &str,
    code: Vec<u8>,
    settings: Value,
) -> Answer {
    let file = if code.starts_with(b"PK") {
        "function.zip"
    } else {
        "bootstrap"
    };
    let mut form = Form::new()
        .text("name", name.to_owned())
        .text("runtime", "provided")
        .part("code", Part::bytes(code).file_name(file));
    for (field, value) in settings.as_object().expect("settings") {
        let text = value.as_str().map_or(value.to_string(), str::to_owned);
        form = form.text(field.clone(), text);
    }
    let request = client.request(Method::POST, "/api/v1/functions");
    client.send(request.multipart(form)).await
}

fn beside_the_server(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_hearth")).with_file_name(name)
}

/// A zip of the Rust function, an example of the crate `hearth-provided`.
fn rust_lambda() -> Vec<u8> {
    let path = beside_the_server("examples").join("provided_lambda");
    let program =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    archive(&[("bootstrap", &program)])
}

/// Why the Go function cannot be built here, if it cannot: its modules come from a registry that not every network has.
fn without_go() -> Option<String> {
    let module = Path::new(MODULES).join("github.com/aws/aws-lambda-go@v1.50.0");
    (!module.is_dir()).then(|| "aws-lambda-go could not be fetched".to_owned())
}

/// A zip of the Go function, built once.
fn go_lambda() -> Vec<u8> {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let place = beside_the_server("go");
        let program = place.join("bootstrap");
        let build = |go: &str| {
            Command::new(go)
                .current_dir(GO)
                .args(["build", "-trimpath", "-ldflags=-s", "-o"])
                .arg(&program)
                .envs([
                    ("CGO_ENABLED", "0"),
                    ("GOFLAGS", "-mod=readonly"),
                    ("GOPROXY", "off"),
                ])
                .envs([
                    ("GOMODCACHE", Path::new(MODULES)),
                    ("GOCACHE", &place.join("cache")),
                ])
                .output()
        };
        let output = TOOLCHAINS.iter().find_map(|go| build(go).ok());
        let output = output.expect("Go is here: scripts/setup.sh test installs it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "go build: {said}");
        std::fs::read(&program).expect("what Go has built")
    });
    archive(&[("bootstrap", program)])
}

/// The lines of an invocation's log, joined.
async fn log(client: &Client, answer: &Answer) -> String {
    let id = answer.header("x-hearth-invocation-id");
    let record = client.invocation(id).await;
    let lines = record["logs"].as_array().expect("a log").iter();
    lines
        .map(|line| line["text"].as_str().unwrap_or_default().to_owned() + "\n")
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_go_lambda_runs_unchanged() {
    if let Some(reason) = without_go() {
        return skip(&reason);
    }
    let server = Server::start();
    let client = server.client();
    let settings = json!({
        "handler": "any.thing", "memory_mb": 256, "timeout_ms": 2000, "public": true, "env": {"TABLE": "t"},
    });
    let deployed = try_deploy(&client, "go", go_lambda(), settings).await;
    let function = deployed.expect(201).json();
    assert_eq!(function["runtime"], "provided");
    let invoke = async |event: Value| client.invoke("go", &event).await;

    let request = client.request(Method::POST, "/api/v1/functions/go/invoke");
    let request = request
        .header("traceparent", TRACE)
        .json(&json!({"do": "context"}));
    let answer = client.send(request).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "boot");
    let context = answer.json();
    assert_eq!(
        context["request_id"],
        answer.header("x-hearth-invocation-id")
    );
    assert_eq!(context["arn"], "arn:hearth:lambda:local:0:function:go:1");
    // The server's own span is the parent.
    let trace = context["trace"].as_str().expect("a trace");
    let (root, _) = XRAY.split_once(";Parent").expect("a parent");
    assert!(
        trace.starts_with(root) && trace.ends_with("Sampled=1"),
        "{trace}"
    );
    for (field, value) in [
        ("function", json!("go")),
        ("version", json!("1")),
        ("memory", json!(256)),
        ("handler", json!("any.thing")),
        ("root", json!("/var/task")),
        ("directory", json!("/var/task")),
        ("api", json!("127.0.0.1:9001")),
        ("calls", json!(1)),
    ] {
        assert_eq!(context[field], value, "{field}: {context}");
    }
    let left = context["left_ms"].as_i64().expect("a number");
    assert!((1..=2000).contains(&left), "{context}");
    assert_eq!(log(&client, &answer).await, "does context\n");

    // Events of any kind, and of any size.
    for event in [json!(null), json!([1, "ä"]), json!("x".repeat(5 << 20))] {
        let answer = invoke(event.clone()).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "warm");
        assert_eq!(answer.json(), event);
    }
    let failed = invoke(json!({"do": "fail"}))
        .await
        .problem(502, "function_error");
    assert_eq!(failed["errorType"], "errorString");
    assert_eq!(failed["errorMessage"], "as asked");
    // The library reports the panic and ends the process: the next request finds another.
    let panicked = invoke(json!({"do": "panic"}))
        .await
        .problem(502, "function_error");
    assert_eq!(panicked["errorMessage"], "as asked");
    let trace = panicked["stackTrace"].to_string();
    assert!(trace.contains("main.go:"), "{trace}");
    let calls = async || invoke(json!({"do": "context"})).await.expect(200).json()["calls"].clone();
    assert_eq!(calls().await, 1);
    invoke(json!({"do": "sleep"}))
        .await
        .problem(504, "function_timeout");
    assert_eq!(calls().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_go_lambda_answers_requests_to_its_url() {
    if let Some(reason) = without_go() {
        return skip(&reason);
    }
    let server = Server::start();
    let client = server.client();
    let settings = json!({"public": true, "memory_mb": 256});
    try_deploy(&client, "go", go_lambda(), settings)
        .await
        .expect(201);

    let request = client.request(Method::POST, "/fn/go/a/b?do=url");
    let request = request.header("content-type", "text/plain").body("body");
    let answer = client.send(request).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.header("x-path"), "/a/b");
    assert_eq!(answer.header("set-cookie"), "a=b; Path=/fn/go");
    assert_eq!(answer.text(), "POST body");
    // An answer without a status is the body.
    let answer = client.get("/fn/go?do=none").await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["queryStringParameters"]["do"], "none");
    // Streamed, and longer than an answer that is held may be.
    let answer = client.get("/fn/go?do=stream").await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.header("x-streamed"), "yes");
    assert_eq!(answer.bytes.len(), 8 << 20);
    assert!(
        answer
            .bytes
            .chunks(16)
            .all(|part| part == b"0123456789abcdef")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_lambda_runs_unchanged() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"memory_mb": 64, "public": true});
    try_deploy(&client, "rust", rust_lambda(), settings)
        .await
        .expect(201);
    let invoke = async |event: Value| client.invoke("rust", &event).await;

    let answer = invoke(json!({"do": "context"})).await.expect(200);
    let context = answer.json();
    assert_eq!(
        context["request_id"],
        answer.header("x-hearth-invocation-id")
    );
    assert_eq!(context["arn"], "arn:hearth:lambda:local:0:function:rust:1");
    assert_eq!(
        (&context["function"], &context["memory"]),
        (&json!("rust"), &json!(64))
    );
    assert!(
        context["deadline"].as_u64() > Some(1_700_000_000_000),
        "{context}"
    );
    assert_eq!(log(&client, &answer).await, "did context\n");
    assert!(
        invoke(json!({"do": "cpus"}))
            .await
            .expect(200)
            .json()
            .as_u64()
            > Some(0)
    );
    let event = json!({"text": "ä\u{0}", "number": 1.5});
    assert_eq!(invoke(event.clone()).await.expect(200).json(), event);

    let failed = invoke(json!({"do": "fail"}))
        .await
        .problem(502, "function_error");
    assert_eq!(failed["errorMessage"], "invalid digit found in string");
    let panicked = invoke(json!({"do": "panic"}))
        .await
        .problem(502, "function_error");
    assert!(
        panicked["errorMessage"].to_string().contains("as asked"),
        "{panicked}"
    );
    let answer = client.get("/fn/rust?do=stream").await.expect(200);
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.text(), "piece 0\npiece 1\npiece 2\n");
    // What is no JSON is no result of `invoke`.
    let streamed = invoke(json!({"do": "stream"}))
        .await
        .problem(502, "function_error");
    assert_eq!(streamed["errorType"], "Runtime.InvalidResponse");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_has_a_sandbox_of_its_own() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"max_concurrency": 3, "memory_mb": 64, "start": "auto"});
    odd::deploy(&client, "odd", settings).await;
    let slow = async |client: Client| {
        let event = json!({"do": "wait", "ms": 400});
        client.invoke("odd", &event).await.expect(200)
    };
    let all = tokio::join!(
        slow(client.clone()),
        slow(client.clone()),
        slow(client.clone())
    );
    for answer in [&all.0, &all.1, &all.2] {
        assert_eq!(answer.json()["calls"], 1);
    }
    let function = client.get("/api/v1/functions/odd").await.expect(200).json();
    assert_eq!(function["start"], "auto", "{function}");
    let answer = client
        .invoke("odd", &json!({"do": "state"}))
        .await
        .expect(200);
    assert_eq!(answer.header("x-hearth-start"), "warm");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_is_a_member_of_a_chain() {
    let server = Server::start();
    let client = server.client();
    try_deploy(&client, "rust", rust_lambda(), json!({}))
        .await
        .expect(201);
    let double = "def handler(event, context):\n    return [event, event]\n";
    client.deploy("double", double, json!({})).await;
    let chain = json!({
        "name": "c",
        "members": {"first": {"function": "rust"}, "double": {"function": "double"}},
        "routes": {"r": ["first", "double"]},
        "edges": [["first", "double"]],
    });
    client.post("/api/v1/chains", &chain).await.expect(201);
    let path = "/api/v1/chains/c/routes/r/invoke";
    let answer = client.post(path, &json!({"n": 1})).await.expect(200);
    assert_eq!(answer.json(), json!([{"n": 1}, {"n": 1}]));
    let failed = client.post(path, &json!({"do": "fail"})).await;
    failed.problem(502, "function_error");
}
