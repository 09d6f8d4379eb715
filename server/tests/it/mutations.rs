//! A create document bent at random is answered, never with an error of the server's own.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::support::Server;

/// Any JSON, not too large.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u32..20_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "[a-z0-9.-]{1,12}".prop_map(Value::from),
        "[!-~]{60,140}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[A-Za-z_]{0,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A member of the document, sometimes one that does not exist.
fn member() -> impl Strategy<Value = String> {
    let known = [
        "name",
        "runtime",
        "handler",
        "code",
        "memory_mb",
        "timeout_ms",
        "max_concurrency",
        "idle_timeout_s",
        "min_instances",
        "keep_warm",
        "template_idle_timeout_s",
        "start",
        "network",
        "body",
        "public",
        "env",
    ];
    prop_oneof![
        9 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

#[derive(Debug, Clone)]
enum Mutation {
    Replace(String, Value),
    Remove(String),
    Nest(String, String, Value),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (member(), any_json()).prop_map(|(name, value)| Mutation::Replace(name, value)),
        1 => member().prop_map(Mutation::Remove),
        2 => (member(), "[A-Za-z_]{0,8}", any_json()).prop_map(|(name, key, value)| Mutation::Nest(name, key, value)),
    ]
}

fn mutated(mut document: Map<String, Value>, mutations: Vec<Mutation>) -> Value {
    for mutation in mutations {
        match mutation {
            Mutation::Replace(name, value) => {
                document.insert(name, value);
            }
            Mutation::Remove(name) => {
                document.remove(&name);
            }
            Mutation::Nest(name, key, value) => {
                let entry = document.entry(name).or_insert_with(|| json!({}));
                match entry.as_object_mut() {
                    Some(object) => drop(object.insert(key, value)),
                    None => *entry = json!({ key: value }),
                }
            }
        }
    }
    Value::Object(document)
}

/// Every field at a valid value. `node` is not on this node: what passes the parser is refused before it costs a sandbox.
fn document(runtime: &str) -> Map<String, Value> {
    let document = json!({
        "name": "bent", "runtime": runtime, "handler": "main.handler",
        "code": {"inline": "def handler(event, context):\n    return event\n"},
        "memory_mb": 64, "timeout_ms": 1000, "max_concurrency": 2, "idle_timeout_s": 5, "min_instances": 0,
        "keep_warm": false, "template_idle_timeout_s": 60,
        "start": "auto", "network": "none", "body": "bytes", "public": false, "env": {"A": "b"},
    });
    document.as_object().cloned().unwrap_or_default()
}

fn run(runtime: &'static str, cases: u32) {
    let server = Server::start();
    let client = server.client();
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let mutations = prop::collection::vec(mutation(), 1..4);
    let outcome = TestRunner::new(config).run(&mutations, |mutations| {
        let sent = mutated(document(runtime), mutations);
        tokio.block_on(async {
            let answer = client.post("/api/v1/functions", &sent).await;
            let status = answer.status.as_u16();
            match status {
                201 => {
                    let name = answer.json()["name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                    client
                        .delete(&format!("/api/v1/functions/{name}"))
                        .await
                        .expect(204);
                }
                422 => {
                    let problem = answer.json();
                    let code = problem["code"].as_str().unwrap_or_default();
                    prop_assert!(
                        ["invalid_field", "invalid_package", "import_failed"].contains(&code),
                        "{problem}"
                    );
                }
                _ => prop_assert!(false, "{status}: {}", answer.text()),
            }
            Ok(())
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let list = tokio.block_on(client.get("/api/v1/functions")).json();
    assert_eq!(list["items"], json!([]));
}

#[test]
fn a_bent_document_never_breaks_the_parser() {
    run("node", 400);
}

#[test]
fn a_bent_document_never_breaks_a_deploy() {
    run("python3", 24);
}
