//! Handlers that have payloads in place: `payload: "block"`.

use serde_json::{Value, json};

use super::path::{create, deploy_node, invoke};
use crate::support::{Client, Server};

const PYTHON: &str = "\
import asyncio, json, resource

kept = []

def handler(event, context):
    chain = context.chain
    word, _, rest = bytes(event).strip(b'\"').decode().partition(' ')
    match word:
        case 'upper':
            event[:] = bytes(event).upper()
        case 'longer':
            result = json.dumps(rest * 3).encode()
            chain.block[:len(result)] = result
            return len(result)
        case 'bytes':
            return b'\"copied\"'
        case 'moved':
            chain.block[10:16] = b'\"back\"'
            return chain.block[10:16]
        case 'call':
            payload = json.dumps(rest).encode()
            block = chain.allocate()
            block[:len(payload)] = payload
            return chain.call('double', block[:len(payload)])
        case 'together':
            async def both():
                calls = (chain.call_async('double', json.dumps(n).encode()) for n in range(3))
                return [json.loads(bytes(result)) for result in await asyncio.gather(*calls)]
            return json.dumps(asyncio.run(both())).encode()
        case 'often':
            results = [bytes(chain.call('double', b'%d' % n)) for n in range(9)]
            return b'[' + b','.join(results) + b']'
        case 'left':
            return b'%d' % sum(map(bool, bytes(chain.allocate())))
        case 'failing':
            try:
                chain.call('double', b'null')
            except Exception as error:
                return json.dumps([error.error_type, error.error['errorType']]).encode()
        case 'refused':
            try:
                chain.send('nobody')
            except Exception as error:
                event[1:3] = b'ok'
        case 'respond':
            chain.respond(b'\"early\"')
            return b'late'
        case 'send':
            event[1:5] = b'SENT'
            chain.send('last')
            return b'late'
        case 'fail':
            raise LookupError(rest)
        case 'wrong':
            return 1.5
        case 'keep':
            kept[:] = [event, event[1:], memoryview(event.obj)]
        case 'starve':
            kept[:] = [event[1:]]
            resource.setrlimit(resource.RLIMIT_DATA, (0, 0))
            try:
                chain.respond()
            except BaseException:
                pass
        case 'kept':
            try:
                whole = bytes(kept[0]).decode()
            except ValueError as error:
                whole = str(error)
            seen = [bytes(view).decode() for view in kept[1:]]
            for view in kept[1:]:
                view[:] = b'x' * len(view)
            return json.dumps([whole, *seen, bytes(event).decode()]).encode()
";

const NODE: &str = "\
let kept = [];

// Moves memory to another object. Node.js 20 has that behind a flag.
function moved(buffer) {
    if (ArrayBuffer.prototype.transfer === undefined) {
        require('node:v8').setFlagsFromString('--harmony-rab-gsab-transfer');
        const transfer = require('node:vm').runInNewContext('ArrayBuffer.prototype.transfer');
        ArrayBuffer.prototype.transfer = transfer;
    }
    return buffer.transfer();
}

exports.handler = async (event, { chain }) => {
    const [, word, rest] = /^\"(\\S*) ?(.*)\"$/.exec(event.toString());
    switch (word) {
        case 'upper':
            event.write(event.toString().toUpperCase());
            return;
        case 'longer':
            return chain.block.write(JSON.stringify(rest.repeat(3)));
        case 'bytes':
            return Buffer.from('\"copied\"');
        case 'moved':
            chain.block.write('\"back\"', 10);
            return chain.block.subarray(10, 16);
        case 'call': {
            const block = chain.allocate();
            const length = block.write(JSON.stringify(rest));
            return chain.call('double', block.subarray(0, length));
        }
        case 'called': {
            // What is made of a block that is taken back with another that was moved.
            const block = chain.allocate();
            const length = block.write(JSON.stringify(rest));
            const result = await chain.call('double', block.subarray(0, length));
            kept = [moved(event.buffer)];
            return result;
        }
        case 'together': {
            const calls = [0, 1, 2].map((n) => chain.call('double', Buffer.from(String(n))));
            const results = await Promise.all(calls);
            return Buffer.from(JSON.stringify(results.map((result) => JSON.parse(result.toString()))));
        }
        case 'often': {
            const results = [];
            for (let n = 0; n < 9; n++) {
                results.push(await chain.call('double', Buffer.from(String(n))));
            }
            return Buffer.from(`[${results.join()}]`);
        }
        case 'left':
            return Buffer.from(String(chain.allocate().filter((byte) => byte !== 0).length));
        case 'failing':
            try {
                await chain.call('double', Buffer.from('null'));
            } catch (error) {
                return Buffer.from(JSON.stringify([error.errorType, error.error.errorType]));
            }
        case 'refused':
            try {
                chain.send('nobody');
            } catch {
                event.write('ok', 1);
            }
            return;
        case 'respond':
            chain.respond(Buffer.from('\"early\"'));
            return Buffer.from('late');
        case 'send':
            event.write('SENT', 1);
            chain.send('last');
            return Buffer.from('late');
        case 'fail':
            throw new RangeError(rest);
        case 'wrong':
            return 1.5;
        case 'keep':
            kept = [event, event.subarray(1)];
            if (rest === 'moved') {
                kept.push(Buffer.from(moved(event.buffer)));
            }
            return;
        case 'kept':
            return Buffer.from(JSON.stringify([...kept.map((one) => one.length), kept[2]?.subarray(0, 6).toString() ?? null]));
    }
};
";

const DOUBLE: &str = "def handler(event, context):\n    return event + event\n";

/// A chain whose first member has its payload in place, and whose last one gets what that is as a value.
async fn with(client: &Client, runtime: &str, handler: &str) {
    match runtime {
        "node" => deploy_node(client, "first", handler).await,
        _ => drop(client.deploy("first", handler, json!({})).await),
    }
    client.deploy("double", DOUBLE, json!({})).await;
    let last = "def handler(event, context):\n    return ['last', event]\n";
    client.deploy("last", last, json!({})).await;
    let block = json!({"function": "first", "payload": "block"});
    create(
        client,
        json!({
            "members": {"first": block, "double": {"function": "double"}, "last": {"function": "last"}},
            "routes": {"r": ["first", "double", "last"], "only": ["first"]},
            "edges": [["first", "double"], ["first", "last"]],
            "pool": {"block_kb": 4, "blocks": 64},
        }),
    )
    .await;
    // One block, which all requests get.
    let narrow = json!({
        "members": {"first": block}, "routes": {"r": ["first"]}, "pool": {"block_kb": 4, "blocks": 1},
    });
    client
        .put("/api/v1/chains/narrow", &narrow)
        .await
        .expect(201);
}

async fn check_all_ways(client: &Client) {
    for (route, event, result) in [
        ("only", "upper abc", json!("UPPER ABC")),
        ("r", "upper abc", json!(["last", "UPPER ABCUPPER ABC"])),
        ("only", "longer abc", json!("abcabcabc")),
        ("only", "bytes", json!("copied")),
        ("only", "moved", json!("back")),
        ("only", "call abc", json!("abcabc")),
        ("only", "together", json!([0, 2, 4])),
        ("only", "often", json!([0, 2, 4, 6, 8, 10, 12, 14, 16])),
        ("only", "left", json!(0)),
        (
            "only",
            "failing",
            json!(["Chain.MemberFailed", "TypeError"]),
        ),
        ("only", "refused", json!("okfused")),
        ("r", "respond", json!("early")),
        ("r", "send abc", json!(["last", "SENT abc"])),
    ] {
        let answer = invoke(client, route, &json!(event)).await.expect(200);
        assert_eq!(answer.json(), result, "{route}: {event}");
    }
    for (event, error) in [("fail why", "why"), ("wrong", "in place")] {
        let failed = invoke(client, "only", &json!(event)).await;
        let problem = failed.problem(502, "function_error");
        let message = problem["errorMessage"].to_string();
        assert!(message.contains(error), "{event}: {problem}");
    }
    // Ten times as many calls as an instance has blocks for.
    for _ in 0..40 {
        let answer = invoke(client, "only", &json!("call abc")).await.expect(200);
        assert_eq!(answer.json(), "abcabc");
    }
}

async fn narrow(client: &Client, event: &str) -> Value {
    let path = "/api/v1/chains/narrow/routes/r/invoke";
    client.post(path, &json!(event)).await.expect(200).json()
}

#[tokio::test]
async fn a_python_handler_has_its_payload_in_place() {
    let server = Server::start();
    let client = server.client();
    with(&client, "python3", PYTHON).await;
    check_all_ways(&client).await;
    // What was kept is released, or leads to what was there, and nowhere else.
    for round in ["one", "two"] {
        narrow(&client, &format!("keep {round}")).await;
        narrow(&client, "upper the secret of another").await;
        let found = narrow(&client, "kept now").await;
        let released = found[0].as_str().unwrap_or_default();
        assert!(released.contains("released"), "{found}");
        assert_eq!(found[1], format!("keep {round}\""));
        assert_eq!(found[2], format!("\"keep {round}\""));
        assert_eq!(found[3], "\"kept now\"", "{found}");
        assert_eq!(narrow(&client, "upper abc").await, "UPPER ABC");
    }
    // Without memory for a copy of what was kept, nothing is passed on.
    let starved = invoke(&client, "only", &json!("starve")).await;
    starved.problem(502, "function_crashed");
}

#[tokio::test]
async fn a_node_handler_has_its_payload_in_place() {
    let server = Server::start();
    let client = server.client();
    with(&client, "node", NODE).await;
    check_all_ways(&client).await;
    let called = invoke(&client, "only", &json!("called abc")).await;
    assert_eq!(called.expect(200).json(), "abcabc");
    for (event, left) in [("keep it", Value::Null), ("keep moved", json!("\"keep "))] {
        narrow(&client, event).await;
        narrow(&client, "upper the secret of another").await;
        let found = narrow(&client, "kept now").await;
        assert_eq!((&found[0], &found[1]), (&json!(0), &json!(0)), "{found}");
        let last = found.as_array().and_then(|all| all.last());
        assert_eq!(last, Some(&left), "{found}");
        assert_eq!(narrow(&client, "upper abc").await, "UPPER ABC");
    }
}
