//! The clients that functions are written with, against real servers, through a policy that names them, and without one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::servers::{CONNECTION, Cache, Database, Secure};
use super::world::{OTHER, SECURE, SILENT, WEB6, World};
use crate::support::{Client, signal};

/// Where set-up puts the functions of `server/tests/packages`.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/packages");
/// Longer than an instance is let run on after a request. When it is frozen is what is tested: no event says so.
const FREEZES: Duration = Duration::from_secs(3);

/// All of Python's parts that end with their request, and all of Node's.
const PYTHON: [&str; 6] = [
    "by_requests",
    "by_psycopg",
    "by_redis",
    "by_socket",
    "by_http_client",
    "by_asyncio",
];
const NODE: [&str; 7] = [
    "fetch", "https", "pg", "net", "lookup", "resolve4", "resolve6",
];

async fn deploy(client: &Client, name: &str, network: &Value) {
    let path = Path::new(BUILT).join(format!("{name}.zip"));
    let zip = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run scripts/packages.sh", path.display()));
    let (runtime, handler) = match name {
        "pg" => ("node", "index.handler"),
        _ => ("python3", "main.handler"),
    };
    let network = match network {
        Value::String(word) => word.clone(),
        policy => policy.to_string(),
    };
    let form = Form::new()
        .text("name", name.to_owned())
        .text("runtime", runtime)
        .text("handler", handler)
        .text("timeout_ms", "60000")
        .text("memory_mb", "512")
        .text("network", network)
        .part("code", Part::bytes(zip).file_name("code.zip"));
    let request = client.request(Method::POST, "/api/v1/functions");
    client.send(request.multipart(form)).await.expect(201);
}

async fn call(client: &Client, name: &str, event: &Value) -> Value {
    client.invoke(name, event).await.expect(200).json()
}

/// Calls some parts of a function.
async fn call_parts(client: &Client, name: &str, parts: &[&str], certificate: &str) -> Value {
    let event = json!({
        "do": parts, "ca": certificate, "postgresql": CONNECTION, "who": "Ada", "address": OTHER,
    });
    call(client, name, &event).await
}

/// A world in which all of the names lead somewhere.
fn world() -> World {
    let world = World::enter();
    world.name("api.example.com", &[SECURE]);
    // Whichever is tried first.
    world.name("both.example.com", &[SILENT, WEB6]);
    world
}

#[tokio::test]
async fn python_clients_reach_what_a_policy_names() {
    let world = world();
    let (_database, _cache) = (Database::start(&world), Cache::start(&world));
    let secure = Secure::web(&world);
    let server = world.server();
    let client = server.client();
    let allowed = [
        "api.example.com",
        "both.example.com",
        "db.example.com:5432",
        "cache.example.com:6379",
    ];
    deploy(&client, "clients", &json!({ "allow": allowed })).await;
    let said = call_parts(&client, "clients", &PYTHON, &secure.certificate).await;
    let reached = format!("reached {SECURE}");
    let expected = json!({
        "by_requests": { "answer": ["secure", reached] },
        "by_psycopg": { "answer": ["Ada", 1] },
        "by_redis": { "answer": ["Ada", 1] },
        "by_socket": { "answer": reached },
        "by_http_client": { "answer": reached },
        "by_asyncio": { "answer": format!("reached {WEB6}") },
    });
    assert_eq!(said, expected);
    // What the policy does not name is refused at once, with the error that these packages say it by.
    let said = call_parts(&client, "clients", &["by_address"], "").await;
    assert_eq!(said["by_address"]["errno"], "ECONNREFUSED", "{said}");
    let narrow = json!({ "network": { "allow": ["nothing.example.com"] } });
    client
        .patch("/api/v1/functions/clients", &narrow)
        .await
        .expect(200);
    let said = call_parts(&client, "clients", &PYTHON, &secure.certificate).await;
    are_not_resolved(&said, &PYTHON);
}

/// Neither client found the name of its server.
fn are_not_resolved(said: &Value, parts: &[&str]) {
    for part in parts {
        let error = said[part]["error"].as_str().unwrap_or_default();
        let is_clear = [
            "Temporary failure in name resolution",
            "EAI_AGAIN",
            "queryA EREFUSED",
            "queryAaaa EREFUSED",
            "queryA ECONNREFUSED",
            "queryAaaa ECONNREFUSED",
        ];
        let code = said[part]["errno"].as_str().unwrap_or_default();
        let is_clear = is_clear
            .iter()
            .any(|text| error.contains(text) || code == *text);
        assert!(is_clear, "{part}: {said}");
    }
}

#[tokio::test]
async fn node_clients_reach_what_a_policy_names() {
    let world = world();
    let _database = Database::start(&world);
    let secure = Secure::web(&world);
    let server = world.server();
    let client = server.client();
    let allowed = ["api.example.com", "both.example.com", "db.example.com:5432"];
    deploy(&client, "pg", &json!({ "allow": allowed })).await;
    world.name("api.example.com", &[SECURE, WEB6]);
    let parts = ["pg", "net", "lookup", "resolve4", "resolve6", "resolveTxt"];
    let said = call_parts(&client, "pg", &parts, "").await;
    assert_eq!(said["pg"], json!({ "answer": ["Ada", 42] }), "{said}");
    assert_eq!(
        said["net"],
        json!({ "answer": format!("reached {WEB6}") }),
        "{said}"
    );
    assert_eq!(
        said["lookup"],
        json!({ "answer": [WEB6, SECURE] }),
        "{said}"
    );
    assert_eq!(said["resolve4"], json!({ "answer": [SECURE] }), "{said}");
    assert_eq!(said["resolve6"], json!({ "answer": [WEB6] }), "{said}");
    // No other records: they would be a way out for data, and are no way to an address.
    assert_eq!(said["resolveTxt"]["errno"], "EREFUSED", "{said}");
    let said = call_parts(&client, "pg", &["https", "fetch"], &secure.certificate).await;
    assert_eq!(said["https"], json!({ "answer": "secure" }), "{said}");
    let fetched = said["fetch"]["answer"].as_str().unwrap_or_default();
    assert!(fetched.starts_with("reached "), "{said}");
    let said = call_parts(&client, "pg", &["address"], "").await;
    assert_eq!(said["address"]["errno"], "ECONNREFUSED", "{said}");
}

/// A function without a policy fails as fast as before, and says why.
#[tokio::test]
async fn without_a_policy_all_of_them_fail_at_once() {
    let world = world();
    let server = world.server();
    let client = server.client();
    for (name, parts) in [("clients", &PYTHON[..]), ("pg", &NODE)] {
        deploy(&client, name, &json!("none")).await;
        let said = call_parts(&client, name, parts, "").await;
        are_not_resolved(&said, parts);
        let address = if name == "pg" {
            "address"
        } else {
            "by_address"
        };
        let said = call_parts(&client, name, &[address], "").await;
        assert_eq!(said[address]["errno"], "ENETUNREACH", "{said}");
    }
    assert!(world.zone.lock().asked.is_empty());
}

#[tokio::test]
async fn boto3_reaches_buckets_by_a_wildcard() {
    let world = world();
    let secure = Secure::s3(&world);
    let server = world.server();
    let client = server.client();
    deploy(
        &client,
        "s3",
        &json!({ "allow": ["*.s3.eu-west-1.amazonaws.com"] }),
    )
    .await;
    let event = json!({ "ca": secure.certificate, "times": 500_000 });
    let said = call(&client, "s3", &event).await;
    assert_eq!(
        said,
        json!({ "listed": ["a/cat.txt"], "bytes": 2_000_000, "begins": "meow" })
    );
    let view = client
        .get("/api/v1/functions/s3/network")
        .await
        .expect(200)
        .json();
    let bytes = |key: &str| view["totals"][key].as_u64().unwrap_or_default();
    assert!(
        bytes("bytes_out") > 2_000_000 && bytes("bytes_in") > 2_000_000,
        "{view}"
    );
    let none = json!({ "network": "none" });
    client
        .patch("/api/v1/functions/s3", &none)
        .await
        .expect(200);
    let said = call(&client, "s3", &event).await;
    let error = said["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("EndpointConnectionError"), "{said}");
}

/// Connections outlive the time in which an instance is frozen. One that its server closed meanwhile is replaced by a pool that
/// looks, and is an error of the first query by one that does not.
#[tokio::test]
async fn pools_live_through_frozen_periods() {
    let world = world();
    let (_database, _cache) = (Database::start(&world), Cache::start(&world));
    let server = world.server();
    let client = server.client();
    let allowed = json!({ "allow": ["db.example.com:5432", "cache.example.com:6379"] });
    let python = ["use_pools", "use_connection"];
    for name in ["clients", "pg"] {
        deploy(&client, name, &allowed).await;
    }
    let numbers = async || {
        let said = call_parts(&client, "clients", &python, "").await;
        let node = call_parts(&client, "pg", &["pool"], "").await;
        [
            said["use_pools"].clone(),
            said["use_connection"].clone(),
            node["pool"].clone(),
        ]
    };
    let first = numbers().await;
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{first:?}")) as u32;
    let backends = [
        number(&first[0]["answer"][0]),
        number(&first[1]["answer"]),
        number(&first[2]["answer"][0]),
    ];
    tokio::time::sleep(FREEZES).await;
    assert_eq!(numbers().await, first, "the same connections");

    tokio::time::sleep(FREEZES).await;
    for backend in backends {
        signal(backend, Signal::TERM).expect("a backend");
    }
    Cache::disconnect_all(&world);
    let second = numbers().await;
    // The pool has looked before it handed a connection out.
    assert!(second[0]["answer"].is_array(), "{second:?}");
    assert_ne!(second[0], first[0]);
    // The others tell.
    let told = second[1]["error"].as_str().unwrap_or_default();
    assert!(
        told.contains("terminat") || told.contains("closed"),
        "{second:?}"
    );
    let third = numbers().await;
    assert_eq!(third[0], second[0], "the same connections");
    assert_ne!(third[1]["answer"], first[1]["answer"]);
    assert!(third[1]["answer"].is_u64(), "{third:?}");
    assert!(third[2]["answer"].is_array(), "{third:?}");
    assert_ne!(third[2]["answer"][0], first[2]["answer"][0]);
}
