//! Payloads that are larger than a block: events and results, in each language, over each transport.

use std::time::Duration;

use serde_json::{Value, json};

use super::path::{deploy_node, invoke};
use super::sk_msg::is_here;
use super::{CHAINS, ECHO};
use crate::native;
use crate::support::{Client, Server, eventually};

/// For what the server does by itself; far more than it needs.
const LIMIT: Duration = Duration::from_secs(30);
pub(super) const TRANSPORTS: [&str; 3] = ["ring", "poll", "sk_msg"];

/// Adds itself to the event, or makes a result of as many bytes as the event says, in one of several ways.
const PYTHON: &str = "\
def handler(event, context):
    if 'bytes' not in event:
        return {**event, 'by': event['by'] + ['python']}
    result = 'p' * (event['bytes'] - 2)
    match event.get('how'):
        case 'respond':
            context.chain.respond(result)
        case 'send':
            context.chain.send('echo', result)
        case _:
            return result
";
const NODE: &str = "\
exports.handler = async (event, { chain }) => {
    if (event.bytes === undefined) {
        return { ...event, by: [...event.by, 'node'] };
    }
    const result = 'n'.repeat(event.bytes - 2);
    switch (event.how) {
        case 'respond':
            return chain.respond(result);
        case 'send':
            return chain.send('echo', result);
        default:
            return result;
    }
};
";
/// Handlers that have their payloads in place. They leave those of others alone.
const PYTHON_BLOCK: &str = "\
import json
def handler(event, context):
    if bytes(event[:9]) == b'{\"bytes\":':
        return b'\"' + b'b' * (json.loads(bytes(event))['bytes'] - 2) + b'\"'
";
const NODE_BLOCK: &str = "\
exports.handler = async (event) => {
    if (event.subarray(0, 9).toString() === '{\"bytes\":') {
        const { bytes } = JSON.parse(event.toString());
        return Buffer.concat([Buffer.from('\"'), Buffer.alloc(bytes - 2, 'b'), Buffer.from('\"')]);
    }
};
";

async fn deploy(client: &Client) {
    client.deploy("python", PYTHON, json!({})).await;
    client.deploy("python-block", PYTHON_BLOCK, json!({})).await;
    client.deploy("echo", ECHO, json!({})).await;
    deploy_node(client, "node", NODE).await;
    deploy_node(client, "node-block", NODE_BLOCK).await;
    native::deploy(client, "values", "native_hello", json!({})).await;
    native::deploy(client, "relay", "native_relay", json!({})).await;
}

/// Puts the chain `c` in service with this transport; false if the host does not have that.
pub(super) async fn put(client: &Client, transport: &str, settings: &Value) -> bool {
    let mut chain = settings.clone();
    chain["transport"] = transport.into();
    chain["name"] = "c".into();
    if transport == "sk_msg" && !is_here(client, &chain).await {
        return false;
    }
    chain.as_object_mut().expect("an object").remove("name");
    let answer = client.put(&format!("{CHAINS}/c"), &chain).await;
    assert!([200, 201].contains(&answer.status.as_u16()), "{transport}");
    true
}

fn members() -> Value {
    let block = |function: &str| json!({"function": function, "payload": "block"});
    json!({
        "python": {"function": "python"}, "node": {"function": "node"}, "echo": {"function": "echo"},
        "python-block": block("python-block"), "node-block": block("node-block"),
        "relay": {"function": "relay"}, "values": {"function": "values"},
    })
}

pub(super) async fn in_use(client: &Client) -> u64 {
    let chain = client.get(&format!("{CHAINS}/c")).await.expect(200);
    let in_use = chain.json()["live"]["pool"]["in_use"].as_u64();
    in_use.expect("a number")
}

/// Waits until no more blocks are in use than those that instances have for calls.
pub(super) async fn is_whole(client: &Client, for_calls: u64) {
    let whole = || async { (in_use(client).await == for_calls).then_some(()) };
    eventually("all blocks are back", LIMIT, whole).await;
}

#[tokio::test]
async fn an_event_larger_than_a_block_passes_all_kinds_of_members_over_each_transport() {
    let server = Server::start();
    let client = server.client();
    deploy(&client).await;
    for (transport, block_kb, blocks) in [
        ("ring", 4, 1024),
        ("ring", 64, 64),
        ("poll", 4, 1024),
        ("poll", 64, 64),
        ("sk_msg", 4, 1024),
        ("sk_msg", 64, 64),
    ] {
        let chain = json!({
            "members": members(),
            "routes": {"all": ["relay", "python", "python-block", "gateway", "node", "node-block", "echo"]},
            "pool": {"block_kb": block_kb, "blocks": blocks, "payload_kb": 2048},
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        for bytes in [10, 4096, 300_000, 1_000_000, 2_000_000] {
            let text = "x".repeat(bytes);
            let event = json!({"text": text, "by": []});
            let answer = invoke(&client, "all", &event).await.expect(200).json();
            assert_eq!(answer["by"], json!(["python", "node"]), "{transport}");
            assert!(answer["text"] == text.as_str(), "{transport}: {bytes}");
        }
        let large = json!({"text": "x".repeat(2048 * 1024), "by": []});
        let refused = invoke(&client, "all", &large).await;
        let problem = refused.problem(413, "payload_too_large");
        assert!(problem.to_string().contains("2097152"), "{problem}");
        is_whole(&client, 0).await;
    }
}

#[tokio::test]
async fn a_result_larger_than_what_came_is_moved_to_where_it_fits() {
    let server = Server::start();
    let client = server.client();
    deploy(&client).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": members(),
            "routes": {
                "python": ["python"], "node": ["node"], "python-block": ["python-block"], "node-block": ["node-block"],
                "relay": ["relay"], "values": ["values"], "python-on": ["python", "relay", "echo"], "node-on": ["node", "gateway", "echo"],
                // Who may send ahead to the last one.
                "python-ahead": ["python", "echo"], "node-ahead": ["node", "echo"],
            },
            "pool": {"block_kb": 4, "blocks": 1024, "payload_kb": 2048},
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        let most = 2048 * 1024;
        for route in ["python", "node", "python-block", "node-block"] {
            for bytes in [100, 4097, 1_000_000, most] {
                let answer = invoke(&client, route, &json!({"bytes": bytes})).await;
                assert_eq!(
                    answer.expect(200).text().len(),
                    bytes,
                    "{transport}: {route}"
                );
            }
            let answer = invoke(&client, route, &json!({"bytes": most + 1})).await;
            let problem = answer.problem(502, "result_too_large");
            assert_eq!(
                (&problem["member"], &problem["limit"]),
                (&json!(route), &json!(most))
            );
        }
        for (route, how) in [
            ("python", "respond"),
            ("node", "respond"),
            ("python-on", "send"),
            ("node-on", "send"),
            ("python-on", "return"),
            ("node-on", "return"),
        ] {
            let answer = invoke(&client, route, &json!({"bytes": 500_000, "how": how})).await;
            assert_eq!(
                answer.expect(200).text().len(),
                500_000,
                "{transport}: {route} {how}"
            );
        }
        // Native members: one whose result has a byte more than its event, which fills a block, and one that has it in place.
        for bytes in [4085, 1_000_000] {
            let name = "x".repeat(bytes);
            let answer = invoke(&client, "values", &json!({"name": name})).await;
            assert!(
                answer.expect(200).json() == json!({"hello": name}),
                "{bytes}"
            );
        }
        for bytes in [200, 5_000, most] {
            let answer = invoke(&client, "relay", &json!(format!("enlarge {bytes}"))).await;
            let text = answer.expect(200).json();
            let text = text.as_str().unwrap_or_default();
            assert!(
                text.len() == bytes - 2 && text.bytes().all(|byte| byte == b'l'),
                "{bytes}"
            );
        }
        let answer = invoke(&client, "relay", &json!(format!("enlarge {}", most + 1))).await;
        answer.problem(502, "function_error");
        is_whole(&client, 0).await;
    }
}

#[tokio::test]
async fn a_pool_without_room_for_a_run_says_so_and_has_it_again() {
    let server = Server::start();
    let client = server.client();
    let code = "\
import time
def handler(event, context):
    if 'bytes' in event:
        return 'x' * (event['bytes'] - 2)
    time.sleep(event['seconds'])
    return len(event['text'])
";
    client.deploy("one", code, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {"a": {"function": "one", "concurrency": 2}}, "routes": {"r": ["a"]},
            // Four of the eight blocks are for runs: one of 16 KiB, at most.
            "pool": {"block_kb": 4, "blocks": 8, "payload_kb": 16},
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        let large = |seconds: f64| json!({"seconds": seconds, "text": "x".repeat(13_000)});
        let slow = {
            let (client, event) = (client.clone(), large(2.0));
            tokio::spawn(async move { invoke(&client, "r", &event).await })
        };
        let taken = || async { (in_use(&client).await == 4).then_some(()) };
        eventually("a run is taken", LIMIT, taken).await;
        let refused = invoke(&client, "r", &large(0.0)).await;
        assert!(!refused.header("retry-after").is_empty());
        refused.problem(503, "chain_pool_exhausted");
        // A result that finds no room is refused in the same way; what is small is served.
        let refused = invoke(&client, "r", &json!({"bytes": 5_000})).await;
        assert!(!refused.header("retry-after").is_empty());
        refused.problem(503, "chain_pool_exhausted");
        let small = json!({"seconds": 0, "text": ""});
        assert_eq!(invoke(&client, "r", &small).await.expect(200).json(), 0);
        slow.await.expect("no panic").expect(200);
        let answer = invoke(&client, "r", &large(0.0)).await.expect(200);
        assert_eq!(answer.json(), 13_000);
        let answer = invoke(&client, "r", &json!({"bytes": 16 * 1024})).await;
        assert_eq!(answer.expect(200).text().len(), 16 * 1024);
        is_whole(&client, 0).await;
    }
}

#[tokio::test]
async fn a_member_that_dies_with_a_run_in_hand_gives_all_of_it_back() {
    let server = Server::start();
    let client = server.client();
    let dies = "\
import os
def handler(event, context):
    if 'die' in event:
        os._exit(7)
    return event
";
    client.deploy("dies", dies, json!({})).await;
    client.deploy("python", PYTHON, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {"python": {"function": "python"}, "dies": {"function": "dies"}},
            "routes": {"event": ["dies"], "result": ["python", "dies"]},
            // Only one payload of this size has room.
            "pool": {"block_kb": 4, "blocks": 256, "payload_kb": 512},
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        for _ in 0..3 {
            let event = json!({"die": true, "text": "x".repeat(500_000)});
            let crashed = invoke(&client, "event", &event).await;
            let problem = crashed.problem(502, "function_crashed");
            assert_eq!(problem["member"], "dies", "{transport}: {problem}");
            is_whole(&client, 0).await;
            // It has moved to a run meanwhile.
            let event = json!({"die": true, "by": [], "text": "x".repeat(8_155)});
            let crashed = invoke(&client, "result", &event).await;
            crashed.problem(502, "function_crashed");
            is_whole(&client, 0).await;
        }
        let event = json!({"by": [], "text": "x".repeat(500_000)});
        let answer = invoke(&client, "result", &event).await.expect(200);
        assert_eq!(answer.json()["by"], json!(["python"]), "{transport}");
        is_whole(&client, 0).await;
    }
}

#[tokio::test]
async fn a_result_that_grows_when_its_client_is_gone_leaves_nothing_behind() {
    let server = Server::start();
    let client = server.client();
    let code = "\
import time
def handler(event, context):
    time.sleep(event['seconds'])
    return 'x' * event['bytes']
";
    client.deploy("one", code, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {"a": {"function": "one"}}, "routes": {"r": ["a"]},
            "pool": {"block_kb": 4, "blocks": 8, "payload_kb": 16},
            // Longer than this test waits: a member that waited for room until then would fail it.
            "timeout_ms": 600_000,
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        for _ in 0..3 {
            let event = json!({"seconds": 0.5, "bytes": 10_000});
            let gone = invoke(&client, "r", &event);
            let gone = tokio::time::timeout(Duration::from_millis(200), gone);
            assert!(gone.await.is_err(), "{transport}");
        }
        let event = json!({"seconds": 0, "bytes": 10_000});
        let answer = tokio::time::timeout(LIMIT, invoke(&client, "r", &event));
        let answer = answer.await.expect("the member takes it");
        assert_eq!(answer.expect(200).text().len(), 10_002, "{transport}");
        is_whole(&client, 0).await;
    }
}

#[tokio::test]
async fn the_largest_payload_of_all_passes_in_place() {
    const MOST: usize = 64 << 20;
    let server = Server::start();
    let client = server.client();
    client.deploy("python-block", PYTHON_BLOCK, json!({})).await;
    native::deploy(&client, "relay", "native_relay", json!({})).await;
    let chain = json!({
        "members": {
            "relay": {"function": "relay"}, "python": {"function": "python-block", "payload": "block"},
        },
        "routes": {"r": ["relay", "python", "relay"]},
        "pool": {"block_kb": 8192, "blocks": 16, "payload_kb": 65_536},
    });
    put(&client, "ring", &chain).await;
    let text = format!("pass{}", "x".repeat(MOST - 6));
    let answer = invoke(&client, "r", &json!(text)).await.expect(200);
    assert!(answer.json() == text.as_str());
    let refused = invoke(&client, "r", &json!(format!("{text}x"))).await;
    refused.problem(413, "payload_too_large");
    is_whole(&client, 0).await;
}

/// As before for chains that do not say how large payloads may be.
#[tokio::test]
async fn without_a_larger_payload_a_call_has_a_block_and_no_more() {
    let server = Server::start();
    let client = server.client();
    let code = "\
def handler(event, context):
    try:
        return len(context.chain.call('echo', 'x' * event))
    except Exception as error:
        return error.error_type
";
    client.deploy("caller", code, json!({})).await;
    client.deploy("echo", ECHO, json!({})).await;
    let chain = json!({
        "members": {"caller": {"function": "caller"}, "echo": {"function": "echo"}},
        "routes": {"r": ["caller"]}, "edges": [["caller", "echo"]],
        "pool": {"block_kb": 4, "blocks": 64},
    });
    put(&client, "ring", &chain).await;
    let called = invoke(&client, "r", &json!(4094)).await.expect(200);
    assert_eq!(called.json(), 4094);
    let refused = invoke(&client, "r", &json!(4095)).await.expect(200);
    assert_eq!(refused.json(), "Chain.PayloadTooLarge");
}
