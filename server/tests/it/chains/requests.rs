//! Requests to chains: events through members, answers, errors, history.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::CHAINS;
use crate::support::{Answer, Client, Server, eventually};

/// Adds its name to a list; does what the event tells it to.
const STEP: &str = "
import os, time
def handler(event, context):
    name = os.environ['HEARTH_FUNCTION']
    if isinstance(event, dict):
        order = event.get(name)
        if order == 'raise': raise ValueError('no')
        if order == 'exit': os._exit(7)
        if order == 'sleep': time.sleep(60)
        if order == 'large': return 'x' * 100_000
        if order == 'answer': return {'statusCode': 201, 'headers': {'x-by': name}, 'body': 'made'}
        return {**event, 'passed': event.get('passed', []) + [name]}
    print('a line of', name)
    return [event, name]
";
/// For what the server does by itself; far more than it needs.
const LIMIT: Duration = Duration::from_secs(30);
const NODE: &str = "exports.handler = async (event) => [event, 'node'];";

async fn deploy(client: &Client, name: &str, runtime: &str, code: &str) {
    let body =
        json!({"name": name, "runtime": runtime, "code": {"inline": code}, "timeout_ms": 5000});
    client.post("/api/v1/functions", &body).await.expect(201);
}

/// A server with a chain of two Python members and one of Node.js.
async fn with_chain(settings: Value) -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    for name in ["one", "two"] {
        deploy(&client, name, "python3", STEP).await;
    }
    deploy(&client, "three", "node", NODE).await;
    let mut chain = json!({
        "name": "c",
        "members": {"a": {"function": "one"}, "b": {"function": "two"}, "n": {"function": "three"}},
        "routes": {
            "all": ["a", "b", "n"], "back": ["a", "gateway", "b", "a"], "single": ["a"], "pair": ["a", "b"],
        },
        "pool": {"block_kb": 64, "blocks": 16}, "timeout_ms": 2000,
    });
    for (name, value) in settings.as_object().expect("settings") {
        chain[name] = value.clone();
    }
    client.post(CHAINS, &chain).await.expect(201);
    (server, client)
}

async fn invoke(client: &Client, route: &str, event: &Value) -> Answer {
    let path = format!("{CHAINS}/c/routes/{route}/invoke");
    client.post(&path, event).await
}

#[tokio::test]
async fn each_member_s_result_is_the_next_one_s_event() {
    let (_server, client) = with_chain(json!({})).await;
    let answer = invoke(&client, "all", &json!("x")).await.expect(200);
    assert_eq!(answer.json(), json!([[["x", "one"], "two"], "node"]));
    let timing = answer.header("server-timing").to_owned();
    let members: Vec<_> = timing
        .split(", ")
        .map(|entry| entry.split(';').next().unwrap_or_default())
        .collect();
    assert_eq!(members, ["a", "b", "n", "total"], "{timing}");
    assert_eq!(answer.header("x-hearth-version"), "1");
    assert!(!answer.header("x-hearth-invocation-id").is_empty());
    let back = invoke(&client, "back", &json!("x")).await.expect(200);
    assert_eq!(back.json(), json!([[["x", "one"], "two"], "one"]));
    let empty = client.request(Method::POST, &format!("{CHAINS}/c/routes/pair/invoke"));
    let passed = client.send(empty).await.expect(200).json();
    assert_eq!(passed["passed"], json!(["one", "two"]));

    for (path, code) in [
        ("/api/v1/chains/nobody/routes/r/invoke", "chain \"nobody\""),
        (
            "/api/v1/chains/c/routes/none/invoke",
            "route \"none\" of chain \"c\"",
        ),
    ] {
        let missing = client.post(path, &json!(1)).await.problem(404, "not_found");
        assert!(
            missing["detail"].as_str().unwrap().contains(code),
            "{missing}"
        );
    }
    let broken = client.request(Method::POST, &format!("{CHAINS}/c/routes/all/invoke"));
    client
        .send(broken.body("{"))
        .await
        .problem(400, "invalid_json");
}

#[tokio::test]
async fn a_failed_member_is_named_and_the_chain_goes_on() {
    let (_server, client) = with_chain(json!({})).await;
    for (order, status, code) in [
        ("raise", 502, "function_error"),
        ("exit", 502, "function_crashed"),
        ("large", 502, "result_too_large"),
        ("sleep", 504, "chain_timeout"),
    ] {
        let answer = invoke(&client, "all", &json!({"two": order})).await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        let problem = answer.problem(status, code);
        assert_eq!(problem["member"], "b", "{order}: {problem}");
        if order == "raise" {
            assert_eq!(problem["errorType"], "ValueError");
        }
        let record = client.invocation(&id).await;
        let expected = match order {
            "exit" => "crashed",
            "sleep" => "timed_out",
            _ => "failed",
        };
        assert_eq!(record["status"], expected, "{order}: {record}");
        // A member that was ended is there again.
        let works = || async {
            let answer = invoke(&client, "all", &json!(1)).await;
            (answer.status == 200).then_some(())
        };
        eventually("the chain works again", LIMIT, works).await;
    }
    let long = json!("x".repeat(70_000));
    let refused = invoke(&client, "all", &long)
        .await
        .problem(413, "payload_too_large");
    assert_eq!(refused["limit"], 65_536);
}

#[tokio::test]
async fn a_request_has_a_record_with_its_way_and_its_members_lines() {
    let (_server, client) = with_chain(json!({})).await;
    let answer = invoke(&client, "back", &json!("x")).await.expect(200);
    let id = answer.header("x-hearth-invocation-id").to_owned();
    let record = client.invocation(&id).await;
    assert_eq!(
        (&record["function"], &record["status"]),
        (&json!("c"), &json!("succeeded"))
    );
    assert_eq!(
        (&record["trigger"], &record["version"]),
        (&json!("invoke"), &json!(1))
    );
    let chain = &record["chain"];
    assert_eq!(chain["route"], "back");
    let hops = chain["hops"].as_array().expect("hops");
    let members: Vec<_> = hops
        .iter()
        .map(|hop| hop["member"].as_str().unwrap())
        .collect();
    assert_eq!(members, ["a", "b", "a"]);
    let mut before = 0;
    for hop in hops {
        let (entered, left) = (
            hop["entered_us"].as_u64().unwrap(),
            hop["left_us"].as_u64().unwrap(),
        );
        assert!(before <= entered && entered <= left, "{hops:?}");
        before = left;
    }
    assert!(before <= record["stages_us"]["total"].as_u64().unwrap());
    // Lines are read beside the request.
    let lines = || async {
        let record = client.invocation(&id).await;
        let lines = record["logs"].as_array().expect("lines").clone();
        let texts: BTreeSet<_> = lines.iter().map(|line| line["text"].to_string()).collect();
        (lines.len() == 3 && texts.len() == 2).then_some(())
    };
    eventually("each member's line is there", LIMIT, lines).await;
}

#[tokio::test]
async fn a_route_is_a_web_server() {
    let (server, client) = with_chain(json!({"public": true})).await;
    let open = server.client_with(None);
    let request = open.request(Method::PUT, "/chain/c/pair/a%20b?x=1");
    let request = request.header("content-type", "text/plain").body("héllo");
    let answer = open.send(request).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let event = answer.json();
    assert_eq!(
        (&event["version"], &event["rawPath"]),
        (&json!("2.0"), &json!("/a%20b"))
    );
    assert_eq!(event["requestContext"]["http"]["method"], "PUT");
    assert_eq!(
        (&event["body"], &event["isBase64Encoded"]),
        (&json!("héllo"), &json!(false))
    );
    assert_eq!(event["passed"], json!(["one", "two"]));
    assert!(answer.header("server-timing").contains("total;dur="));
    // The last member's result may be a response of its own: here its event says so.
    let code = "def handler(event, context):\n    return {'statusCode': 418, 'headers': {'x-by': 'two'}, 'body': event.get('body'), \
                'isBase64Encoded': event['isBase64Encoded']}\n";
    let body = json!({"code": {"inline": code}});
    let put = client.put("/api/v1/functions/two/code", &body);
    put.await.expect(200);
    let follows = || async {
        let request = open
            .request(Method::POST, "/chain/c/pair")
            .body(vec![0xff, 0, 1]);
        let answer = open.send(request).await;
        let is_new = answer.status == 418 && answer.header("x-by") == "two";
        (is_new && answer.bytes == [0xff, 0, 1]).then_some(())
    };
    eventually("the chain follows its function", LIMIT, follows).await;

    client
        .patch("/api/v1/chains/c", &json!({"public": false}))
        .await
        .expect(200);
    open.get("/chain/c/pair").await.problem(401, "unauthorized");
    client.get("/chain/c/none").await.problem(404, "not_found");
    client.get("/chain/c/pair").await.expect(418);
}

#[tokio::test]
async fn versions_are_changed_under_load_without_a_lost_request() {
    let (_server, client) = with_chain(json!({})).await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut load = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (client, stop) = (client.clone(), stop.clone());
        load.spawn(async move {
            let mut answers = BTreeSet::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let answer = invoke(&client, "pair", &json!("x")).await.expect(200);
                answers.insert(answer.json().to_string());
            }
            answers
        });
    }
    let chain = "/api/v1/chains/c";
    for _ in 0..3 {
        let reverse = json!({"routes": {"pair": ["b", "a"]}});
        client.patch(chain, &reverse).await.expect(200);
        let back = format!("{chain}/versions/1/activate");
        client.post(&back, &json!(null)).await.expect(200);
    }
    // A member's function changes, too.
    let code = STEP.replace("[event, name]", "[event, name + ' 2']");
    let body = json!({"code": {"inline": code}});
    let put = client.put("/api/v1/functions/one/code", &body);
    put.await.expect(200);
    let followed = || async {
        let answer = invoke(&client, "pair", &json!("x")).await.expect(200);
        (answer.json() == json!([["x", "one 2"], "two"])).then_some(())
    };
    eventually("the chain follows its function", LIMIT, followed).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut answers = BTreeSet::new();
    while let Some(some) = load.join_next().await {
        answers.extend(some.expect("no request failed"));
    }
    let whole = [
        json!([["x", "one"], "two"]),
        json!([["x", "two"], "one"]),
        json!([["x", "one 2"], "two"]),
    ]
    .map(|answer| answer.to_string());
    for answer in &answers {
        assert!(whole.contains(answer), "{answer}");
    }
}

#[tokio::test]
async fn a_chain_is_in_service_again_after_a_restart_and_its_state_is_shown() {
    let (server, _) = with_chain(json!({})).await;
    let server = server.restart();
    let client = server.client();
    // Requests wait for the members.
    let answer = invoke(&client, "all", &json!("x")).await.expect(200);
    assert_eq!(answer.json(), json!([[["x", "one"], "two"], "node"]));
    let chain = client.get("/api/v1/chains/c").await.expect(200).json();
    assert_eq!(
        (&chain["state"], &chain["url"]),
        (&json!("ready"), &json!("/chain/c"))
    );
    let live = &chain["live"];
    assert!(
        ["ring", "poll"].contains(&live["transport"].as_str().unwrap()),
        "{live}"
    );
    assert_eq!(live["pool"]["blocks"], 16);
    assert_eq!(live["members"]["a"]["instances"], 1);
    let edges = live["edges"].as_array().expect("edges");
    let sent = edges
        .iter()
        .find(|edge| edge["from"] == "a" && edge["to"] == "b");
    assert!(
        sent.is_some_and(|edge| edge["sent"].as_u64() >= Some(1)),
        "{edges:?}"
    );
}

#[tokio::test]
async fn a_member_that_cannot_start_is_refused_and_what_was_goes_on() {
    let (_server, client) = with_chain(json!({})).await;
    let code = "raise RuntimeError('no')\ndef handler(event, context): pass\n";
    let body =
        json!({"name": "late", "runtime": "python3", "code": {"inline": STEP}, "env": {"X": "1"}});
    client.post("/api/v1/functions", &body).await.expect(201);
    // It does not import: no version of the function, and nothing for chains to follow.
    let body = json!({"code": {"inline": code}});
    let put = client.put("/api/v1/functions/late/code", &body);
    put.await.problem(422, "import_failed");
    let member = json!({"members": {"a": {"function": "one", "concurrency": 9}}});
    client
        .patch("/api/v1/chains/c", &member)
        .await
        .problem(422, "invalid_field");
    let chain = client.get("/api/v1/chains/c").await.expect(200).json();
    assert_eq!(
        (&chain["active_version"], &chain["state"]),
        (&json!(1), &json!("ready"))
    );
    invoke(&client, "all", &json!("x")).await.expect(200);
}
