//! Explanations of slow invocations: each names what was done to the function.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::provided;
use crate::support::{Browser, Client, Server, TOKEN, descendants, eventually};

/// Uses so many ms of processor time, allocates so many MiB, and collects a graph of so many objects.
const CODE: &str = "
import gc
import time

def handler(event, context):
    end = time.process_time() + event.get('cpu_ms', 0) / 1000
    while time.process_time() < end:
        pass
    block = bytearray(event.get('mib', 0) << 20)
    graph = [[] for _ in range(event.get('objects', 0))]
    for index, entry in enumerate(graph):
        entry.append(graph[index - 1])
    if graph:
        gc.collect()
    return len(block)
";

/// Keeps a million objects alive and has V8 collect, by filling its heap.
const NODE: &str = "
export const handler = async (event) => {
  const kept = [];
  for (let index = 0; index < (event.objects ?? 0); index++) kept.push({ index, text: `entry ${index}` });
  return kept.length;
};
";

/// A Lambda runtime of its own that allocates so many MiB.
const PROVIDED: &str = r#"#!/usr/bin/python3 -IS
import http.client, json, os

API = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
ROOT = "/2018-06-01/runtime/invocation/"
while True:
    API.request("GET", ROOT + "next")
    response = API.getresponse()
    event, request = json.loads(response.read()), response.headers["Lambda-Runtime-Aws-Request-Id"]
    block = bytearray(event.get("mib", 0) << 20)
    API.request("POST", ROOT + request + "/response", json.dumps(len(block)))
    API.getresponse().read()
"#;

/// Invokes, and explains that.
async fn explained(client: &Client, function: &str, event: Value) -> Value {
    let answer = client.invoke(function, &event).await.expect(200);
    let id = answer.header("x-hearth-invocation-id").to_owned();
    let path = format!("/api/v1/invocations/{id}/explain");
    client.get(&path).await.expect(200).json()
}

/// Enough calls for a median.
async fn warm_up(client: &Client, function: &str, event: &Value) {
    for _ in 0..12 {
        client.invoke(function, event).await.expect(200);
    }
}

fn cause<'a>(found: &'a Value, kind: &str) -> &'a Value {
    let causes = found["causes"].as_array().expect("causes");
    let cause = causes.iter().find(|cause| cause["kind"] == kind);
    cause.unwrap_or_else(|| panic!("no {kind}: {found}"))
}

#[tokio::test]
async fn page_faults_and_the_collector_are_counted() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({"memory_mb": 256})).await;
    warm_up(&client, "f", &json!({"cpu_ms": 1})).await;

    // Each page of a new block is touched for the first time.
    let found = explained(&client, "f", json!({"mib": 64})).await;
    let faults = found["counters"]["minor_faults"].as_u64().expect("faults");
    assert!(
        faults >= 64 << 20 >> 21,
        "at least one a large page: {found}"
    );
    assert!(cause(&found, "page_faults")["us"].as_u64() > Some(0));
    assert!(found["window"].is_object(), "{found}");
    assert!(found["median_us"]["total"].as_u64() > Some(0), "{found}");

    let found = explained(&client, "f", json!({"objects": 400_000})).await;
    let counters = &found["counters"];
    assert!(counters["pauses"].as_u64() > Some(0), "{found}");
    let paused = counters["paused_us"].as_u64().expect("µs");
    assert!(paused > 1_000, "a graph of 400,000 objects: {found}");
    assert!(paused <= found["stages_us"]["run"].as_u64().expect("µs"));
    cause(&found, "collector");

    // The quick ones in between are not charged with it.
    let found = explained(&client, "f", json!({"cpu_ms": 1})).await;
    assert_eq!(found["counters"]["pauses"], 0, "{found}");
    assert!(found["counters"]["minor_faults"].as_u64() < Some(faults));
    // It is in the history, too.
    let path = "/api/v1/functions/f/invocations?limit=1";
    let page = client.get(path).await.expect(200).json();
    assert_eq!(page["items"][0]["counters"], found["counters"], "{page}");
}

#[tokio::test]
async fn v8s_collections_are_counted() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"runtime": "node", "memory_mb": 512});
    client.deploy("f", NODE, settings).await;
    let found = explained(&client, "f", json!({"objects": 600_000})).await;
    let counters = &found["counters"];
    assert!(counters["pauses"].as_u64() > Some(0), "{found}");
    assert!(counters["paused_us"].as_u64() > Some(100), "{found}");
}

#[tokio::test]
async fn page_faults_of_a_program_that_runs_as_a_lambda_binary_are_counted() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"memory_mb": 256});
    let deployed = provided::try_deploy(&client, "f", PROVIDED.into(), settings).await;
    deployed.expect(201);
    warm_up(&client, "f", &json!({})).await;
    let found = explained(&client, "f", json!({"mib": 64})).await;
    let counters = &found["counters"];
    let faults = counters["minor_faults"].as_u64().expect("faults");
    assert!(
        faults >= 64 << 20 >> 21,
        "at least one a large page: {found}"
    );
    cause(&found, "page_faults");
    // Nobody knows those.
    for unknown in ["preemptions", "pauses", "paused_us"] {
        assert_eq!(counters[unknown], json!(null), "{found}");
    }
    let page = client.get("/api/v1/functions/f/invocations?limit=1").await;
    let page = page.expect(200).json();
    assert_eq!(page["items"][0]["counters"], found["counters"], "{page}");
    let id = found["id"].as_str().expect("an id");
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get(&format!("/functions/f/invocations/{id}")).await;
    let page = page.expect(200).text();
    assert!(
        page.contains("<dt>Page faults</dt>") && !page.contains("<dt>Preempted</dt>"),
        "{page}"
    );
}

/// Where the quota of a function's sandbox is.
fn quota_of(server: &Server, function: &str) -> PathBuf {
    for process in descendants(server.pid()) {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid)) else {
            continue;
        };
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let parts: Vec<&str> = path.split('/').collect();
            let sandbox = format!("{function}-1-");
            let Some(at) = parts.iter().position(|part| part.starts_with(&sandbox)) else {
                continue;
            };
            let path = parts[1..=at].join("/");
            if controllers.split(',').any(|name| name == "cpu") {
                let dir = PathBuf::from("/sys/fs/cgroup").join(controllers);
                return dir.join(path).join("cpu.cfs_quota_us");
            }
            let v2 = PathBuf::from("/sys/fs/cgroup").join(path).join("cpu.max");
            if controllers.is_empty() && v2.exists() {
                return v2;
            }
        }
    }
    panic!("no sandbox of {function}")
}

#[tokio::test]
async fn a_function_that_its_quota_holds_back_is_said_to_be_throttled() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({})).await;
    warm_up(&client, "f", &json!({"cpu_ms": 2})).await;
    // A tenth of a processor: 2 of every 20 ms.
    let quota = quota_of(&server, "f");
    let text = match quota.ends_with("cpu.max") {
        true => "2000 20000",
        false => "2000",
    };
    std::fs::write(&quota, text).expect("a quota");
    let found = explained(&client, "f", json!({"cpu_ms": 60})).await;
    let summary = found["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("Most likely CPU throttling"), "{found}");
    assert_eq!(found["causes"][0]["kind"], "throttling", "{found}");
    assert!(
        found["window"]["throttled_periods"].as_u64() > Some(5),
        "{found}"
    );
}

#[tokio::test]
async fn an_explanation_names_what_else_ran_only_to_those_who_may_know() {
    // To take one that was forked ahead is no cause of anything.
    let server = Server::start_with(&[("HEARTH_PREFORK", "off")]);
    let client = server.client();
    client
        .deploy(
            "slow",
            "import time\ndef handler(event, context):\n    time.sleep(2)\n",
            json!({}),
        )
        .await;
    client.deploy("f", CODE, json!({})).await;
    let slow = {
        let client = client.clone();
        tokio::spawn(async move { client.invoke("slow", &json!({})).await.expect(200) })
    };
    // It is under way before the other begins.
    eventually("it runs", Duration::from_secs(30), || async {
        let view = client
            .get("/api/v1/functions/slow")
            .await
            .expect(200)
            .json();
        (view["instances"]["busy"] == 1).then_some(())
    })
    .await;
    let answer = client.invoke("f", &json!({"cpu_ms": 5})).await.expect(200);
    let id = answer.header("x-hearth-invocation-id").to_owned();
    slow.await.expect("it ended");
    let path = format!("/api/v1/invocations/{id}/explain");
    let found = client.get(&path).await.expect(200).json();
    let ran = found["meanwhile"]["invocations"]
        .as_array()
        .expect("a list");
    assert!(ran.iter().any(|ran| ran["function"] == "slow"), "{found}");
    let deployed = found["meanwhile"]["deployments"]
        .as_array()
        .expect("a list");
    assert!(
        deployed.iter().any(|version| version["function"] == "f"),
        "{found}"
    );
    assert_eq!(found["start"], "fork");
    cause(&found, "start");

    let scoped = json!({"name": "scoped", "rights": ["read"], "scope": ["f"]});
    let made = client
        .post("/api/v1/tokens", &scoped)
        .await
        .expect(201)
        .json();
    let scoped = server.client_with(made["token"].as_str());
    let seen = scoped.get(&path).await.expect(200).json();
    assert_eq!(seen["meanwhile"]["invocations"], json!([]), "{seen}");
    assert_eq!(seen["meanwhile"]["unnamed"], 1, "{seen}");
    assert_eq!(seen["meanwhile"]["deployments"], json!([]), "{seen}");
    client
        .get("/api/v1/invocations/00000000-0000-7000-8000-000000000000/explain")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn an_invocation_from_before_a_restart_keeps_its_own_counters_only() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({})).await;
    let found = explained(&client, "f", json!({"mib": 8})).await;
    let id = found["id"].as_str().expect("an id").to_owned();
    let server = server.restart();
    let client = server.client();
    let path = format!("/api/v1/invocations/{id}/explain");
    let later = client.get(&path).await.expect(200).json();
    assert_eq!(later["counters"], found["counters"], "{later}");
    assert_eq!(later["window"], Value::Null, "{later}");
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = format!("/functions/f/invocations/{id}");
    let page = browser.get(&page).await.expect(200).text();
    assert!(page.contains("They reach back to"), "{page}");
    // Nothing is left of a cell of long ago.
    let cell = "/functions/f/latency/cell?at=1000000000&seconds=5&above=100&up_to=133";
    let page = browser.get(cell).await.expect(200).text();
    assert!(
        page.contains("The history has none of them any more"),
        "{page}"
    );
    browser
        .get("/functions/f/latency/cell?at=9223372036854775807&seconds=5&above=100&up_to=133")
        .await
        .expect(404);
}
