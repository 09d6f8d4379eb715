//! Calls whose payloads or results are larger than a block: in each language, over each transport.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::path::{deploy_node, invoke};
use super::runs::{TRANSPORTS, in_use, is_whole, put};
use crate::native;
use crate::support::{Answer, Client, Server, eventually};

/// For what the server does by itself; far more than it needs.
const LIMIT: Duration = Duration::from_secs(60);
/// Blocks that an instance has for calls.
const GRANTED: u64 = 4;
const KIB: usize = 1024;

/// Calls a member with a payload of so many bytes, as JSON, and looks at each byte of the results.
const PYTHON: &str = "\
import asyncio

def handler(event, context):
    chain, bytes, want = context.chain, event['bytes'], event['want']
    payload = {'want': want, 'text': ''}
    payload['text'] = 'x' * (bytes - 19 - len(str(want)))
    def is_right(result):
        head = str(len(payload['text'])) + ':'
        return result == head + 'r' * (want - 2 - len(head))
    async def many():
        return await asyncio.gather(*(chain.call_async(event['to'], payload) for _ in range(3)))
    try:
        if event.get('how') == 'async':
            return [is_right(result) for result in asyncio.run(many())]
        return [is_right(chain.call(event['to'], payload))]
    except Exception as error:
        return [error.error_type, error.error and error.error['errorType']]
";
const NODE: &str = "\
exports.handler = async ({ to, bytes, want, how }, { chain }) => {
    const text = 'x'.repeat(bytes - 19 - String(want).length);
    const head = `${text.length}:`;
    const isRight = (result) => result === head + 'r'.repeat(want - 2 - head.length);
    const call = async () => isRight(await chain.call(to, { want, text }));
    try {
        return await Promise.all(how === 'async' ? [call(), call(), call()] : [call()]);
    } catch (error) {
        return [error.errorType, error.error?.errorType ?? null];
    }
};
";
/// The same with payloads in place: the payload in one block or run that it allocates, or in memory of its own.
const PYTHON_BLOCK: &str = "\
import json

def handler(event, context):
    chain, order = context.chain, json.loads(bytes(event))
    want = order['want']
    head = b'{\"want\": %d, \"text\": \"' % want
    text = b'x' * (order['bytes'] - len(head) - 2)
    payload = head + text + b'\"}'
    expected = b'\"%d:' % len(text)
    expected += b'r' * (want - 1 - len(expected)) + b'\"'
    try:
        if order.get('how') == 'allocate':
            room = chain.allocate(max(len(payload), want))
            room[:len(payload)] = payload
            first = bytes(chain.call(order['to'], room[:len(payload)])) == expected
            # The result was in the same place.
            return json.dumps([first and bytes(room[:want]) == expected]).encode()
        result = chain.call(order['to'], payload)
        right = bytes(result) == expected
        # It can be kept until the request is passed on, while others are called.
        again = bytes(chain.call(order['to'], payload)) == expected
        return json.dumps([right and again and bytes(result) == expected]).encode()
    except Exception as error:
        return json.dumps([error.error_type, error.error and error.error['errorType']]).encode()
";
const NODE_BLOCK: &str = "\
exports.handler = async (event, { chain }) => {
    const { to, bytes, want, how } = JSON.parse(event.toString());
    const head = `{\"want\": ${want}, \"text\": \"`;
    const length = bytes - head.length - 2;
    const payload = Buffer.from(head + 'x'.repeat(length) + '\"}');
    const begin = `\"${length}:`;
    const expected = Buffer.from(begin + 'r'.repeat(want - 1 - begin.length) + '\"');
    try {
        if (how === 'allocate') {
            const room = chain.allocate(Math.max(bytes, want));
            payload.copy(room);
            const result = await chain.call(to, room.subarray(0, bytes));
            return Buffer.from(JSON.stringify([result.equals(expected) && room.subarray(0, want).equals(expected)]));
        }
        const results = [await chain.call(to, payload), await chain.call(to, payload)];
        return Buffer.from(JSON.stringify([results.every((result) => result.equals(expected))]));
    } catch (error) {
        return Buffer.from(JSON.stringify([error.errorType, error.error?.errorType ?? null]));
    }
};
";
/// Those that are called: the result has as many bytes as the payload wants, and says how many there were of its text.
const ANSWERS: &str = "\
def handler(event, context):
    head = str(len(event['text'])) + ':'
    return head + 'r' * (event['want'] - 2 - len(head))
";
const ANSWERS_NODE: &str = "\
exports.handler = async ({ text, want }) => {
    const head = `${text.length}:`;
    return head + 'r'.repeat(want - 2 - head.length);
};
";
const ANSWERS_BLOCK: &str = "\
import json

def handler(event, context):
    event = json.loads(bytes(event))
    result = b'\"%d:' % len(event['text'])
    return result + b'r' * (event['want'] - 1 - len(result)) + b'\"'
";

fn order(to: &str, bytes: usize, want: usize, how: &str) -> Value {
    json!({"to": to, "bytes": bytes, "want": want, "how": how})
}

async fn deploy(client: &Client) {
    client.deploy("python", PYTHON, json!({})).await;
    client.deploy("python-block", PYTHON_BLOCK, json!({})).await;
    client.deploy("answers", ANSWERS, json!({})).await;
    client
        .deploy("answers-block", ANSWERS_BLOCK, json!({}))
        .await;
    deploy_node(client, "node", NODE).await;
    deploy_node(client, "node-block", NODE_BLOCK).await;
    deploy_node(client, "answers-node", ANSWERS_NODE).await;
    native::deploy(client, "relay", "native_relay", json!({})).await;
}

#[tokio::test]
async fn payloads_and_results_of_calls_are_as_large_as_the_chain_allows() {
    const MOST: usize = 1024 * KIB;
    let server = Server::start();
    let client = server.client();
    deploy(&client).await;
    let block = |function: &str| json!({"function": function, "payload": "block"});
    let callers = ["python", "node", "python-block", "node-block"];
    let called = ["answers", "answers-node", "answers-block"];
    let edges: Vec<[&str; 2]> = callers
        .into_iter()
        .flat_map(|from| called.map(|to| [from, to]))
        .chain([["relay", "answers"], ["relay", "other"]])
        .collect();
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {
                "python": {"function": "python"}, "node": {"function": "node"},
                "python-block": block("python-block"), "node-block": block("node-block"),
                "relay": {"function": "relay"}, "other": {"function": "relay"},
                "answers": {"function": "answers", "concurrency": 2}, "answers-node": {"function": "answers-node"},
                "answers-block": block("answers-block"),
            },
            "routes": {
                "python": ["python"], "node": ["node"], "python-block": ["python-block"], "node-block": ["node-block"],
                "relay": ["relay"],
            },
            "edges": edges,
            "pool": {"block_kb": 4, "blocks": 4096, "payload_kb": MOST / KIB},
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        let whole = GRANTED * (callers.len() as u64 + 1);
        for (route, to) in callers
            .into_iter()
            .flat_map(|from| called.map(|to| (from, to)))
        {
            for (bytes, want) in [
                (100, 100),
                (100, 5_000),
                (5_000, 100),
                (300_000, 400_000),
                (400_000, 300_000),
                (MOST, MOST),
            ] {
                let is_block = route.ends_with("block");
                let hows: &[&str] = match bytes {
                    MOST => &["call"],
                    _ if is_block => &["call", "allocate"],
                    _ => &["call", "async"],
                };
                for how in hows {
                    let answer = invoke(&client, route, &order(to, bytes, want, how)).await;
                    let results = answer.expect(200).json();
                    let results = results.as_array().expect("a list");
                    assert!(
                        !results.is_empty() && results.iter().all(|result| result == true),
                        "{transport}: {route} to {to}, {bytes} for {want}, {how}: {results:?}"
                    );
                }
            }
            // A byte too many.
            let answer = invoke(&client, route, &order(to, MOST + 1, 10, "call")).await;
            assert_eq!(
                answer.expect(200).json(),
                json!(["Chain.PayloadTooLarge", null]),
                "{route}"
            );
            let answer = invoke(&client, route, &order(to, 100, MOST + 1, "call")).await;
            let too_large = json!(["Chain.MemberFailed", "Runtime.ResultTooLarge"]);
            assert_eq!(answer.expect(200).json(), too_large, "{route} to {to}");
        }
        // A native member: with a value, in place, and with room for the result or without.
        for how in ["value", "block", "roomy"] {
            for (bytes, want) in [(100, 5_000), (5_000, 100), (500_000, 600_000), (MOST, 200)] {
                let text = format!("large {how} answers {bytes} {want}");
                let answer = invoke(&client, "relay", &json!(text)).await;
                assert_eq!(answer.expect(200).json(), true, "{transport}: {text}");
            }
        }
        // Of which the one that is called enlarges its result in place, several times.
        for bytes in [200, 5_000, MOST] {
            let text = format!("large grown other 0 {bytes}");
            let answer = invoke(&client, "relay", &json!(text)).await;
            assert_eq!(answer.expect(200).json(), true, "{transport}: {text}");
        }
        let answer = invoke(&client, "python", &order("answers", 300_000, 9_000, "call")).await;
        let timing = answer.header("server-timing").to_owned();
        answer.expect(200);
        assert_eq!(timing.matches("answers;dur=").count(), 1, "{timing}");
        is_whole(&client, whole).await;
    }
}

/// Has two calls take all runs, and others meanwhile; the two, which are answered some seconds later.
async fn refused_while_held(client: &Client, whole: u64) -> Vec<JoinHandle<Answer>> {
    loop {
        is_whole(client, whole).await;
        let held: Vec<_> = (0..2)
            .map(|_| {
                let client = client.clone();
                let slow = order("slow", 60_000, 100, "call");
                tokio::spawn(async move { invoke(&client, "r", &slow).await })
            })
            .collect();
        // Two runs of fifteen blocks, and a block for each request.
        let taken = || async {
            if held.iter().any(JoinHandle::is_finished) {
                return Some(false);
            }
            (in_use(client).await == whole + 32).then_some(true)
        };
        if !eventually("the runs are taken", LIMIT, taken).await {
            // Not both at a time, but both had theirs.
            for one in held {
                let answer = one.await.expect("no panic").expect(200);
                assert_eq!(answer.json(), json!([true]));
            }
            continue;
        }
        let payload = invoke(client, "r", &order("answers", 60_000, 10, "call")).await;
        let result = invoke(client, "r", &order("answers", 100, 60_000, "call")).await;
        let uncaught = invoke(client, "uncaught", &json!(60_000)).await;
        if held.iter().any(JoinHandle::is_finished) {
            // The host was too busy for that.
            continue;
        }
        let exhausted = json!(["Chain.PoolExhausted", null]);
        assert_eq!(payload.expect(200).json(), exhausted);
        let exhausted = json!(["Chain.MemberFailed", "Chain.PoolExhausted"]);
        assert_eq!(result.expect(200).json(), exhausted);
        let problem = uncaught.problem(502, "function_error");
        assert_eq!(problem["errorType"], "ChainError", "{problem}");
        return held;
    }
}

#[tokio::test]
async fn a_pool_without_room_for_a_calls_run_says_so_and_has_it_again() {
    let server = Server::start();
    let client = server.client();
    client.deploy("python", PYTHON, json!({})).await;
    client.deploy("answers", ANSWERS, json!({})).await;
    let slow = "\
import time
def handler(event, context):
    time.sleep(4)
    head = str(len(event['text'])) + ':'
    return head + 'r' * (event['want'] - 2 - len(head))
";
    client.deploy("slow", slow, json!({})).await;
    let uncaught = "\
def handler(event, context):
    return context.chain.call('answers', {'want': 10, 'text': 'x' * event})
";
    client.deploy("uncaught", uncaught, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {
                "python": {"function": "python", "concurrency": 3}, "uncaught": {"function": "uncaught"},
                "answers": {"function": "answers"}, "slow": {"function": "slow", "concurrency": 2},
            },
            "routes": {"r": ["python"], "uncaught": ["uncaught"]},
            "edges": [["python", "slow"], ["python", "answers"], ["uncaught", "answers"]],
            // Of the half for runs, two calls have all.
            "pool": {"block_kb": 4, "blocks": 64, "payload_kb": 64},
            "timeout_ms": 60_000,
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        let whole = 4 * GRANTED;
        let held = refused_while_held(&client, whole).await;
        // What is small has room.
        let small = invoke(&client, "r", &order("answers", 100, 100, "call")).await;
        assert_eq!(small.expect(200).json(), json!([true]));
        for one in held {
            let answer = one.await.expect("no panic").expect(200);
            assert_eq!(answer.json(), json!([true]), "{transport}");
        }
        let answer = invoke(&client, "r", &order("answers", 60_000, 60_000, "call")).await;
        assert_eq!(answer.expect(200).json(), json!([true]), "{transport}");
        is_whole(&client, whole).await;
    }
}

#[tokio::test]
async fn the_blocks_of_a_large_call_come_back_whichever_side_dies() {
    let server = Server::start();
    let client = server.client();
    let caller = "\
import os, threading, time
def handler(event, context):
    if event.get('die'):
        # While the other one has the call in hand.
        threading.Thread(target=lambda: (time.sleep(0.3), os._exit(7))).start()
    payload = {'do': event['do'], 'want': event['want'], 'text': 'x' * event['bytes']}
    try:
        result = context.chain.call(event.get('to', 'called'), payload)
        return len(result)
    except Exception as error:
        return error.error_type
";
    client.deploy("caller", caller, json!({})).await;
    let called = "\
import os, time
def handler(event, context):
    match event['do']:
        case 'die':
            os._exit(7)
        case 'wait':
            time.sleep(1.5)
    return 'r' * event['want']
";
    client.deploy("called", called, json!({})).await;
    // It dies when it has the room for its result.
    native::deploy(&client, "relay", "native_relay", json!({})).await;
    let native_caller = "\
def handler(event, context):
    try:
        context.chain.call('relay', 'enlarge-die 100000')
    except Exception as error:
        return error.error_type
";
    client
        .deploy("native-caller", native_caller, json!({}))
        .await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {
                "caller": {"function": "caller"}, "called": {"function": "called"},
                "other": {"function": "native-caller"}, "relay": {"function": "relay"},
            },
            "routes": {"r": ["caller"], "other": ["other"]},
            "edges": [["caller", "called"], ["other", "relay"]],
            // Room for one payload and one result of this size.
            "pool": {"block_kb": 4, "blocks": 128, "payload_kb": 128},
            "timeout_ms": 20_000,
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        let whole = 2 * GRANTED;
        let event = |what: &str, bytes: usize, want: usize| json!({"do": what, "bytes": bytes, "want": want});
        for _ in 0..3 {
            // Who is called.
            let dead = invoke(&client, "r", &event("die", 110_000, 10)).await;
            assert_eq!(
                dead.expect(200).json(),
                "Chain.MemberCrashed",
                "{transport}"
            );
            is_whole(&client, whole).await;
            let dead = invoke(&client, "other", &json!(null)).await;
            assert_eq!(
                dead.expect(200).json(),
                "Chain.MemberCrashed",
                "{transport}"
            );
            is_whole(&client, whole).await;
            // Who calls. The other one's result finds nobody, in the run that it came in, and in one of its own.
            for (bytes, want) in [(110_000, 10), (10, 110_000), (110_000, 120_000)] {
                let mut deadly = event("wait", bytes, want);
                deadly["die"] = true.into();
                let dead = invoke(&client, "r", &deadly).await;
                dead.problem(502, "function_crashed");
                is_whole(&client, whole).await;
            }
            let answer = invoke(&client, "r", &event("", 110_000, 120_000)).await;
            assert_eq!(answer.expect(200).json(), 120_000, "{transport}");
            is_whole(&client, whole).await;
        }
    }
}

#[tokio::test]
async fn a_large_call_that_takes_too_long_leaves_nothing_behind() {
    let server = Server::start();
    let client = server.client();
    let caller = "\
def handler(event, context):
    return len(context.chain.call('called', {**event, 'text': 'x' * event['bytes']}))
";
    client.deploy("caller", caller, json!({})).await;
    let called = "\
import time
def handler(event, context):
    time.sleep(event['seconds'])
    return 'r' * event['want']
";
    client.deploy("called", called, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {"caller": {"function": "caller"}, "called": {"function": "called"}},
            "routes": {"r": ["caller"]}, "edges": [["caller", "called"]],
            "pool": {"block_kb": 4, "blocks": 128, "payload_kb": 128},
            "timeout_ms": 1_000,
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        for (bytes, want) in [(110_000, 10), (10, 110_000), (110_000, 120_000)] {
            let late = json!({"seconds": 1.7, "bytes": bytes, "want": want});
            let late = invoke(&client, "r", &late).await;
            // Whoever notices it first, the gateway or who calls.
            if late.status == 504 {
                late.problem(504, "chain_timeout");
            } else {
                let problem = late.problem(502, "function_error");
                let message = problem["errorMessage"].to_string();
                assert!(message.contains("did not reply in time"), "{problem}");
            }
            is_whole(&client, GRANTED).await;
        }
        let event = json!({"seconds": 0, "bytes": 110_000, "want": 120_000});
        let goes_on = || async {
            let answer = invoke(&client, "r", &event).await;
            (answer.status == 200 && answer.json() == 120_000).then_some(())
        };
        eventually("calls go on", LIMIT, goes_on).await;
        is_whole(&client, GRANTED).await;
    }
}
