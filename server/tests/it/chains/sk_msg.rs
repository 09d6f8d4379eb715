//! The transport `sk_msg`: members in both languages as they are, and one that talks to its socket itself.

use std::time::Duration;

use hearth_testkit::skipped::skip;
use serde_json::{Value, json};

use super::path::{change_under_load, deploy_node, invoke};
use super::{CHAINS, ECHO};
use crate::support::{Browser, Client, Server, TOKEN, eventually};

/// For what the server does by itself; far more than it needs.
const LIMIT: Duration = Duration::from_secs(30);
/// Blocks of the pool: as many as the attacker tries.
const BLOCKS: u32 = 16;

const FIRST: &str = "\
def handler(event, context):
    if event.get('calls'):
        event['called'] = context.chain.call('double', 21)
    return event
";
/// Finds the connection to the gateway among its descriptors, and sends what it likes.
const ATTACKER: &str = "\
import os, socket

def connection():
    for fd in os.listdir('/proc/self/fd'):
        try:
            found = socket.socket(fileno=os.dup(int(fd)))
        except OSError:
            continue
        if found.family == socket.AF_INET and found.type == socket.SOCK_STREAM:
            return found
        found.detach()

def descriptor(target, block, kind):
    first = target << 48 | 1
    second = block | 2 << 16 | kind << 60
    return (first | second << 64).to_bytes(16, 'little')

def handler(event, context):
    attack = event.get('attack')
    if attack == 'edge':
        # Which block it has in hand it does not know: all of them, to each of these.
        with connection() as line:
            for target in event['targets']:
                for block in range(16):
                    line.sendall(descriptor(target, block, 0))
    if attack == 'flood':
        with connection() as line:
            while True:
                line.sendall(descriptor(1, 0, 0))
    if attack == 'close':
        with connection() as line:
            line.shutdown(socket.SHUT_RDWR)
    if attack == 'exit':
        os._exit(7)
    if attack == 'bytes':
        with connection() as line:
            line.send(b'no descriptor')
    return event
";
const NODE: &str = "exports.handler = async (event) => ({ ...event, node: true });";
const DOUBLE: &str = "def handler(event, context):\n    return event + event\n";

async fn live(client: &Client) -> Value {
    let chain = client.get("/api/v1/chains/c").await.expect(200).json();
    chain["live"].clone()
}

async fn refusals(client: &Client, reason: &str) -> Vec<Value> {
    let live = live(client).await;
    let all = live["refusals"].as_array().expect("a list").clone();
    all.into_iter()
        .filter(|one| one["reason"] == reason)
        .collect()
}

/// Whether this host has it; if not, that is what who asks for it is told.
pub(super) async fn is_here(client: &Client, chain: &Value) -> bool {
    let node = client.get("/api/v1/node").await.expect(200).json();
    let capability = &node["capabilities"]["sk_msg"];
    if capability["available"] == true {
        return true;
    }
    let refused = client.post(CHAINS, chain).await;
    let problem = refused.problem(422, "chain_not_started").to_string();
    assert!(problem.contains("no transport"), "{problem}");
    skip(&format!("no sk_msg here: {}", capability["reason"]));
    false
}

#[tokio::test]
async fn versions_change_under_load_and_no_request_is_lost() {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    let chain = json!({
        "name": "other", "members": {"a": {"function": "echo"}}, "routes": {"r": ["a"]}, "transport": "sk_msg",
    });
    if is_here(&client, &chain).await {
        change_under_load(&client, "sk_msg").await;
    }
}

/// Instances die again and again with requests in hand and others in their queues. Those fail at once, as such; all others are answered, no
/// request waits for its time limit, and no block is lost.
#[tokio::test]
async fn a_killed_member_loses_what_it_had_and_nothing_else() {
    const DIES: &str = "\
import os
def handler(event, context):
    if event == 'die':
        os._exit(7)
    return event
";
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    client.deploy("dies", DIES, json!({})).await;
    let chain = json!({
        "name": "c",
        "members": {
            "first": {"function": "echo", "concurrency": 2}, "dies": {"function": "dies", "concurrency": 2},
            "last": {"function": "echo"},
        },
        "routes": {"all": ["first", "dies", "last"], "short": ["first", "last"]},
        "pool": {"block_kb": 4, "blocks": 64}, "timeout_ms": 60_000, "transport": "sk_msg",
    });
    if !is_here(&client, &chain).await {
        return;
    }
    client.post(CHAINS, &chain).await.expect(201);
    let load = (0..8).map(|task| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut failed = 0;
            for number in 0..40 {
                let event = match (task, number % 10) {
                    (0, 5) => json!("die"),
                    _ => json!([task, number]),
                };
                let answer = invoke(&client, "all", &event).await;
                if answer.status == 200 {
                    assert_eq!(answer.json(), event);
                } else {
                    answer.problem(502, "function_crashed");
                    failed += 1;
                }
                let beside = invoke(&client, "short", &json!(number)).await.expect(200);
                assert_eq!(beside.json(), json!(number));
            }
            failed
        })
    });
    let failed: u32 = futures_util::future::try_join_all(load)
        .await
        .expect("each was answered")
        .into_iter()
        .sum();
    assert!(failed >= 4, "each death its own: {failed}");
    let settled = async || {
        let live = live(&client).await;
        let at_rest = live["pool"]["in_use"] == 0 && live["members"]["dies"]["restarts"] == 4;
        at_rest.then_some(live)
    };
    let live = eventually("no block is lost", LIMIT, settled).await;
    for refusal in live["refusals"].as_array().expect("a list") {
        let reason = refusal["reason"].as_str().expect("a reason");
        assert!(
            ["no_such_instance", "instance_gone"].contains(&reason),
            "{refusal}"
        );
    }
}

#[tokio::test]
async fn the_kernel_carries_what_routes_and_edges_allow_and_nothing_else() {
    let server = Server::start();
    let client = server.client();
    client.deploy("first", FIRST, json!({})).await;
    client.deploy("attacker", ATTACKER, json!({})).await;
    client.deploy("double", DOUBLE, json!({})).await;
    deploy_node(&client, "last", NODE).await;
    let chain = json!({
        "name": "c",
        "members": {
            "first": {"function": "first"}, "attacker": {"function": "attacker"}, "last": {"function": "last"},
            "double": {"function": "double", "concurrency": 2},
        },
        "routes": {"all": ["first", "attacker", "last"], "back": ["first", "gateway", "last"]},
        "edges": [["first", "double"]],
        "pool": {"block_kb": 4, "blocks": BLOCKS}, "timeout_ms": 5000, "transport": "sk_msg",
    });
    if !is_here(&client, &chain).await {
        return;
    }
    client.post(CHAINS, &chain).await.expect(201);

    // Ordinary members, calls and returns to the gateway.
    let whole = json!({"calls": true, "called": 42, "node": true});
    for route in ["all", "back"] {
        for _ in 0..20 {
            let answer = invoke(&client, route, &json!({"calls": true})).await;
            assert_eq!(answer.expect(200).json(), whole, "{route}");
        }
    }
    let shown = live(&client).await;
    assert_eq!(shown["transport"], "sk_msg");
    assert_eq!(shown["refusals"], json!([]));
    let kernel = &shown["members"]["first"]["kernel"];
    assert_eq!(
        (&kernel["received"], &kernel["in_hand"]),
        (&json!(40), &json!(0))
    );
    assert!(kernel["response_us"].as_u64() > Some(0), "{kernel}");
    assert_eq!(shown["members"]["double"]["kernel"]["received"], 40);
    let instances = shown["instances"].as_array().expect("a list");
    assert_eq!(instances.len(), 5);
    let edges = shown["edges"].as_array().expect("a list");
    let edge = edges
        .iter()
        .find(|edge| edge["from"] == "first" && edge["to"] == "attacker");
    assert_eq!(edge.expect("an edge")["sent"], 20);

    // What no edge allows: told with source and target, the block comes back, and later requests are as before.
    let number = |member: &str| {
        let found = instances.iter().find(|one| one["member"] == member);
        found.expect("an instance")["instance"].clone()
    };
    let nobody = 9;
    let attack = json!({"attack": "edge", "targets": [number("first"), nobody]});
    let refused = invoke(&client, "all", &attack).await;
    let problem = refused.problem(502, "chain_rule_broken");
    assert_eq!(problem["member"], "attacker", "{problem}");
    // The request's answer does not wait for what the attacker sends after its block is gone.
    for (reason, to) in [
        ("no_edge", json!("first")),
        ("no_such_instance", json!(null)),
    ] {
        let told = async || {
            let all = refusals(&client, reason).await;
            let is_that = |one: &&Value| one["from"] == "attacker" && one["to"] == to;
            all.iter().find(is_that).is_some().then_some(())
        };
        eventually("the refusal is told", LIMIT, told).await;
    }
    for _ in 0..2 * BLOCKS {
        let answer = invoke(&client, "all", &json!({"calls": true})).await;
        assert_eq!(answer.expect(200).json(), whole);
    }
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/chains/c?part=live").await.expect(200).text();
    assert!(page.contains("chain-refused") && page.contains("no route or edge allows it"));
    assert!(page.contains("chain-instances") && page.contains("sk_msg"));

    // What is not its request, where an edge allows one: the receiver does without it, and the request ends in time. So does all that
    // reaches this instance from now on, as its own count of what it sent is wrong, until it is replaced below.
    let nonsense = json!({"attack": "edge", "targets": [number("last")]});
    let failed = invoke(&client, "all", &nonsense).await;
    failed.problem(504, "chain_timeout");

    // A flood, and what is no descriptor, end the instance that sends it, as its death does. Another takes its place.
    for (attack, restarts) in [("flood", 1), ("bytes", 2), ("close", 3), ("exit", 4)] {
        let failed = invoke(&client, "all", &json!({"attack": attack})).await;
        // The kernel still carries what is sent through a socket that is shut down.
        let status = failed.status.as_u16();
        assert!(status >= 500 || attack == "close", "{attack}: {status}");
        let replaced = async || {
            (live(&client).await["members"]["attacker"]["restarts"] == restarts).then_some(())
        };
        eventually("the attacker is replaced", LIMIT, replaced).await;
        let goes_on = async || {
            let answer = invoke(&client, "all", &json!({"calls": true})).await;
            (answer.status.as_u16() == 200).then_some(())
        };
        eventually("the chain goes on", LIMIT, goes_on).await;
    }
    let free = async || (live(&client).await["pool"]["in_use"].as_u64() <= Some(4)).then_some(());
    eventually("no block is lost but those for calls", LIMIT, free).await;
}
