//! Requests through real members: what they get, what comes back, and every way in which a member can fail a request.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::CHAINS;
use crate::support::{Answer, Client, Server, eventually};

/// Longest time for what happens in the background.
const LIMIT: Duration = Duration::from_secs(30);

const PYTHON: &str = "\
def handler(event, context):
    print('python saw', event['path'])
    event['path'].append('python')
    event['ids'].append(context.aws_request_id)
    event['traces'].append(context.traceparent)
    event['left'] = context.get_remaining_time_in_millis()
    return event
";
const NODE: &str = "\
exports.handler = async (event, context) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    event.path.push('node');
    event.ids.push(context.awsRequestId);
    event.traces.push(context.traceparent ?? null);
    return event;
};
";

fn event() -> Value {
    json!({"path": [], "ids": [], "traces": []})
}

pub(super) async fn deploy_node(client: &Client, name: &str, code: &str) {
    client.deploy(name, code, json!({"runtime": "node"})).await;
}

/// Creates the chain `c`.
pub(super) async fn create(client: &Client, settings: Value) -> Value {
    let mut body = settings;
    body["name"] = "c".into();
    client.post(CHAINS, &body).await.expect(201).json()
}

pub(super) async fn invoke(client: &Client, route: &str, event: &Value) -> Answer {
    client
        .post(&format!("{CHAINS}/c/routes/{route}/invoke"), event)
        .await
}

/// A server with a chain of one Python member, `a`, and its only route, `r`.
async fn with_one(code: &str, settings: Value) -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("one", code, json!({})).await;
    let mut body = json!({"members": {"a": {"function": "one"}}, "routes": {"r": ["a"]}});
    for (name, value) in settings.as_object().expect("settings") {
        body[name] = value.clone();
    }
    create(&client, body).await;
    (server, client)
}

#[tokio::test]
async fn a_request_passes_python_and_node_members_in_the_routes_order() {
    let server = Server::start();
    let client = server.client();
    client.deploy("snake", PYTHON, json!({})).await;
    deploy_node(&client, "wave", NODE).await;
    create(
        &client,
        json!({
            "members": {"p": {"function": "snake"}, "n": {"function": "wave"}},
            "routes": {
                "there": ["p", "n"],
                "back": ["n", "p"],
                "loop": ["p", "gateway", "n", "p", "p", "gateway", "p"],
            },
        }),
    )
    .await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (route, path) in [
        ("there", vec!["python", "node"]),
        ("back", vec!["node", "python"]),
        ("loop", vec!["python", "node", "python", "python", "python"]),
    ] {
        let url = format!("{CHAINS}/c/routes/{route}/invoke");
        let request = client
            .request(reqwest::Method::POST, &url)
            .header("traceparent", trace)
            .json(&event());
        let answer = client.send(request).await.expect(200);
        let result = answer.json();
        assert_eq!(result["path"], json!(path), "{route}");
        let id = answer.header("x-hearth-invocation-id");
        for (seen, expected) in [("ids", id), ("traces", trace)] {
            let all = result[seen].as_array().expect("a list");
            assert_eq!(all.len(), path.len());
            assert!(all.iter().all(|one| one == expected), "{seen}: {all:?}");
        }
        let left = result["left"].as_u64().expect("milliseconds");
        assert!((1..=30_000).contains(&left), "{left}");
        let timing = answer.header("server-timing");
        assert_eq!(timing.matches(";dur=").count(), path.len() + 1, "{timing}");
    }
}

#[tokio::test]
async fn many_requests_at_once_share_a_members_instances() {
    let code = "import os\ndef handler(event, context):\n    return [event, os.getpid()]\n";
    let settings = json!({"members": {"a": {"function": "one", "concurrency": 3}}});
    let (_server, client) = with_one(code, settings).await;
    let answers = (0..100).map(|number| {
        let client = &client;
        async move { invoke(client, "r", &json!(number)).await.expect(200).json() }
    });
    let mut pids = std::collections::HashSet::new();
    for (answer, number) in join_all(answers).await.into_iter().zip(0..) {
        assert_eq!(answer[0], json!(number));
        pids.insert(answer[1].to_string());
    }
    assert_eq!(pids.len(), 3);
}

#[tokio::test]
async fn a_handlers_error_ends_its_request_and_no_other() {
    let code = "def handler(event, context):\n    return 10 // event\n";
    let (_server, client) = with_one(code, json!({})).await;
    let problem = invoke(&client, "r", &json!(0))
        .await
        .problem(502, "function_error");
    assert_eq!(problem["errorType"], "ZeroDivisionError");
    assert_eq!(problem["member"], "a");
    assert_eq!(
        invoke(&client, "r", &json!(5)).await.expect(200).json(),
        json!(2)
    );
}

#[tokio::test]
async fn an_instance_that_dies_loses_its_request_and_is_replaced() {
    let code = "import os\ndef handler(event, context):\n    if event == 'die':\n        os._exit(3)\n    return event\n";
    let (_server, client) = with_one(code, json!({})).await;
    for _ in 0..3 {
        let problem = invoke(&client, "r", &json!("die"))
            .await
            .problem(502, "function_crashed");
        assert!(
            problem["detail"].to_string().contains("status 3"),
            "{problem}"
        );
        // It waits for the replacement.
        assert_eq!(
            invoke(&client, "r", &json!(1)).await.expect(200).json(),
            json!(1)
        );
    }
}

#[tokio::test]
async fn a_request_beyond_its_time_names_the_hop_and_its_instance_is_replaced() {
    let code = "import time\ndef handler(event, context):\n    while event == 'hang':\n        time.sleep(1)\n    return event\n";
    let (_server, client) = with_one(code, json!({"timeout_ms": 3_000})).await;
    for _ in 0..3 {
        let problem = invoke(&client, "r", &json!("hang"))
            .await
            .problem(504, "chain_timeout");
        assert_eq!(problem["member"], "a");
        // Not lost with the one that is being ended: it waits for the replacement.
        let answer = invoke(&client, "r", &json!(1)).await;
        assert_eq!(answer.expect(200).json(), json!(1));
    }
}

#[tokio::test]
async fn an_empty_pool_is_said_at_once_and_fills_again() {
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(event)\n    return event\n";
    let (_server, client) = with_one(code, json!({"pool": {"block_kb": 4, "blocks": 2}})).await;
    let slow = |seconds: f64| {
        let client = client.clone();
        tokio::spawn(async move { invoke(&client, "r", &json!(seconds)).await })
    };
    let held = [slow(2.0), slow(2.0)];
    eventually("both blocks are taken", LIMIT, || async {
        let chain = client.get(&format!("{CHAINS}/c")).await.expect(200);
        (chain.json()["live"]["pool"]["in_use"] == 2).then_some(())
    })
    .await;
    let refused = invoke(&client, "r", &json!(0)).await;
    assert!(!refused.header("retry-after").is_empty());
    refused.problem(503, "chain_pool_exhausted");
    for held in held {
        held.await.expect("no panic").expect(200);
    }
    invoke(&client, "r", &json!(0)).await.expect(200);
}

#[tokio::test]
async fn what_does_not_fit_a_block_is_refused_on_either_side() {
    let code = "def handler(event, context):\n    return 'x' * event if isinstance(event, int) else len(event)\n";
    let (_server, client) = with_one(code, json!({"pool": {"block_kb": 4, "blocks": 8}})).await;
    let fits = json!("y".repeat(4094));
    assert_eq!(
        invoke(&client, "r", &fits).await.expect(200).json(),
        json!(4094)
    );
    let large = json!("y".repeat(4095));
    invoke(&client, "r", &large)
        .await
        .problem(413, "payload_too_large");
    assert_eq!(
        invoke(&client, "r", &json!(4094))
            .await
            .expect(200)
            .text()
            .len(),
        4096
    );
    invoke(&client, "r", &json!(4095))
        .await
        .problem(502, "result_too_large");
    invoke(&client, "r", &json!(1)).await.expect(200);
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(event)\n    return event\n";
    let (_server, client) = with_one(code, json!({"pool": {"block_kb": 4, "blocks": 1}})).await;
    let event = json!(1);
    let gone = tokio::time::timeout(Duration::from_millis(200), invoke(&client, "r", &event));
    assert!(gone.await.is_err());
    // The only block is in use until the handler is done with it, and then it is free.
    eventually("the block", LIMIT, || async {
        let answer = invoke(&client, "r", &json!(0)).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn versions_change_under_load_and_no_request_is_lost() {
    let server = Server::start();
    change_under_load(&server.client(), "auto").await;
}

/// Changes a chain's routes to and fro while requests come.
pub(super) async fn change_under_load(client: &Client, transport: &str) {
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(0.002)\n    return event + 1\n";
    client.deploy("one", code, json!({})).await;
    let settings = json!({
        "members": {"a": {"function": "one", "concurrency": 2}}, "routes": {"r": ["a"]}, "transport": transport,
    });
    create(client, settings).await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (client, stop) = (client.clone(), stop.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let answer = invoke(&client, "r", &json!(count)).await.expect(200);
                    assert!([1, 2].contains(&(answer.json().as_i64().unwrap() - count)));
                    count += 1;
                }
                count
            })
        })
        .collect();
    for _ in 0..2 {
        let longer = json!({"routes": {"r": ["a", "a"]}});
        client
            .patch(&format!("{CHAINS}/c"), &longer)
            .await
            .expect(200);
        let shorter = json!({"routes": {"r": ["a"]}});
        client
            .patch(&format!("{CHAINS}/c"), &shorter)
            .await
            .expect(200);
    }
    let back = format!("{CHAINS}/c/versions/1/activate");
    client.post(&back, &json!(null)).await.expect(200);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for load in load {
        assert!(load.await.expect("no request was lost") > 0);
    }
}

#[tokio::test]
async fn what_members_print_belongs_to_the_chains_invocation() {
    let code = "def handler(event, context):\n    print('saw', event)\n    return event\n";
    let (_server, client) = with_one(code, json!({"routes": {"r": ["a", "a"]}})).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let answer = invoke(&client, "r", &json!(number)).await.expect(200);
        ids.push(answer.header("x-hearth-invocation-id").to_owned());
    }
    for (id, number) in ids.iter().zip(0..) {
        let lines = eventually("the lines", LIMIT, || async {
            let logs = client.get("/api/v1/functions/one/logs").await.expect(200);
            let items: Vec<Value> = logs
                .text()
                .lines()
                .map(|line| serde_json::from_str(line).expect("a line of JSON"))
                .collect();
            let of_one: Vec<_> = items
                .into_iter()
                .filter(|line| line["invocation"] == json!(id))
                .collect();
            (of_one.len() == 2).then_some(of_one)
        })
        .await;
        for line in lines {
            assert_eq!(line["text"], format!("saw {number}"));
        }
    }
}
