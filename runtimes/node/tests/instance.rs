//! An instance: handlers of every kind, context, errors, the event loop, logs, large payloads.
#![deny(unsafe_code)]

use hearth_abi::Trigger;
use hearth_testkit::worker::{Answer, boot, contract};
use serde_json::{Value, json};

fn handler(body: &str) -> hearth_testkit::worker::Template {
    boot(&format!(
        "export const handler = async (event, context) => {{ {body} }};\n"
    ))
}

#[test]
fn json_goes_both_ways() {
    contract::check_json("export const handler = async (event) => event;\n");
}

#[test]
fn large_payloads_stream_through_the_ring() {
    contract::check_large_payloads(
        "export const handler = async ({ blob }) => [blob.length, blob];\n",
    );
}

#[test]
fn the_context_has_lambdas_fields() {
    let body = "const left = context.getRemainingTimeInMillis(); \
                return [context.awsRequestId, context.functionName, context.functionVersion, \
                context.memoryLimitInMB, context.invokedFunctionArn, context.logGroupName, \
                context.logStreamName, context.clientContext, context.identity, context.traceparent, \
                0 < left && left <= 30000, context.callbackWaitsForEmptyEventLoop]";
    let mut template = handler(body);
    let mut instance = template.fork();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let Answer::Result(first) = instance
        .request(Trigger::Async, Some(trace), b"{}", None)
        .answer
    else {
        panic!("no result")
    };
    let mut expected = json!([
        "01010101-0101-0101-0101-010101010101",
        "hello",
        "3",
        "128",
        "arn:hearth:lambda:local:0:function:hello:3",
        "/hearth/hello",
        format!("3/{}", instance.pid),
        null,
        null,
        trace,
        true,
        true,
    ]);
    assert_eq!(first, expected);
    expected[0] = json!("02020202-0202-0202-0202-020202020202");
    expected[9] = Value::Null;
    assert_eq!(instance.call(&json!({})), expected);
}

#[test]
fn every_kind_of_handler_answers() {
    let cases = [
        ("() => 5", json!(5)),
        ("async () => {}", json!(null)),
        ("() => {}", json!(null)),
        (
            "() => ({ then: (resolve) => setTimeout(resolve, 1, 'thenable') })",
            json!("thenable"),
        ),
        (
            "(event, context, callback) => callback(null, 'at once')",
            json!("at once"),
        ),
        (
            "(event, context, callback) => { setTimeout(callback, 5, null, 'later') }",
            json!("later"),
        ),
        // Lambda's default: what was begun ends before the answer goes out.
        (
            "(event, context, callback) => { const seen = []; callback(null, seen); setTimeout(() => seen.push('ended'), 5) }",
            json!(["ended"]),
        ),
        (
            "(event, context, callback) => { context.callbackWaitsForEmptyEventLoop = false; setInterval(() => {}, 1000); callback(null, 1) }",
            json!(1),
        ),
        (
            "(event, context) => { setTimeout(() => context.succeed('old'), 1) }",
            json!("old"),
        ),
        (
            "(event, context) => { context.done(null, 'older') }",
            json!("older"),
        ),
        // Nothing is left that could settle it.
        ("() => new Promise(() => {})", json!(null)),
        (
            "async () => { await null; return new Promise((resolve) => process.nextTick(resolve, 'tick')) }",
            json!("tick"),
        ),
    ];
    for (source, expected) in cases {
        let mut template = boot(&format!("export const handler = {source};\n"));
        let mut instance = template.fork();
        for _ in 0..2 {
            assert_eq!(instance.call(&json!(null)), expected, "{source}");
        }
    }
}

#[test]
fn the_event_loop_runs_in_a_fork() {
    let source = r#"
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip, gunzip } from "node:zlib";
import { randomBytes, scrypt } from "node:crypto";
import { createServer as listen, connect } from "node:net";
import path from "node:path";
import { execFile } from "node:child_process";
const echo = async () => {
  const where = `/tmp/hearth-node-${process.pid}.sock`;
  const server = listen((socket) => socket.pipe(socket)).listen(where);
  await new Promise((resolve) => server.once("listening", resolve));
  const client = connect(where);
  client.end("through a socket");
  let text = "";
  for await (const piece of client) text += piece;
  await new Promise((resolve) => server.close(resolve));
  return text;
};
const fetched = async () => {
  const server = createServer((request, response) => response.end("fetched")).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const text = await (await fetch(`http://127.0.0.1:${server.address().port}`)).text();
  server.closeAllConnections();
  server.close();
  return text;
};
export const handler = async () => {
  let held = [];
  for (let i = 0; i < 300_000; i += 1) { held.push({ i, s: `x${i}` }); if (i % 100_000 === 0) held = []; }
  const packed = await promisify(gzip)("x".repeat(100_000));
  return [
    (await readFile("/etc/passwd", "utf8")).includes("root"),
    (await promisify(gunzip)(packed)).length,
    (await promisify(randomBytes)(8)).length,
    (await promisify(scrypt)("a", "b", 8)).length,
    await echo(),
    await fetched(),
    (await promisify(execFile)("echo", ["program"])).stdout,
    await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => "wasm"),
    await new Promise((resolve) => setTimeout(resolve, 2, "timer")),
    held.length,
  ];
};
"#;
    let mut template = boot(source);
    let mut instances: Vec<_> = (0..3).map(|_| template.fork()).collect();
    for _ in 0..2 {
        for instance in &mut instances {
            assert_eq!(
                instance.call(&json!(null)),
                json!([
                    true,
                    100_000,
                    8,
                    8,
                    "through a socket",
                    "fetched",
                    "program\n",
                    "wasm",
                    "timer",
                    99_999
                ])
            );
        }
    }
}

#[test]
fn between_requests_an_instance_is_frozen() {
    // A timer is set by the time of its own invocation, however long the instance waited for it.
    let source = r#"
let fired = 0;
export const handler = async (event) => {
  if (event === "leave") { setTimeout(() => { fired += 1; }, 20); return 0; }
  const began = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 30));
  return [fired, performance.now() - began >= 29];
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    instance.call(&json!("leave"));
    // Only time makes a timer due, and a frozen instance does nothing that tells when.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(instance.call(&json!(null)), json!([1, true]));
}

#[test]
fn what_an_invocation_stores_does_not_reach_the_next() {
    let source = r#"
import { AsyncLocalStorage } from "node:async_hooks";
const storage = new AsyncLocalStorage();
export const handler = async (event) => {
  const before = storage.getStore() ?? null;
  storage.enterWith(event);
  await null;
  return [before, storage.getStore()];
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for event in 0..3 {
        assert_eq!(instance.call(&json!(event)), json!([null, event]));
    }
}

#[test]
fn errors_are_shaped_as_lambda_does() {
    let source = "const inner = () => {\n  throw new RangeError('bad ü');\n};\nexport const handler = async () => {\n  inner();\n};\n";
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        let error = instance.call_error(&json!(null));
        assert_eq!(
            (&error["errorType"], &error["errorMessage"]),
            (&json!("RangeError"), &json!("bad ü"))
        );
        let stack: Vec<String> =
            serde_json::from_value(error["stackTrace"].clone()).expect("strings");
        assert_eq!(stack.len(), 3, "{stack:?}");
        assert_eq!(stack[0], "RangeError: bad ü");
        assert!(stack[1].contains("at inner (") && stack[1].contains("main.mjs:2:9"));
        assert!(stack[2].contains("main.mjs:5:3"), "{stack:?}");
    }
}

#[test]
fn every_way_to_fail_leaves_the_instance_serving() {
    let source = r#"
class Odd extends Error { get message() { throw new Error("no text") } get name() { return "Odd" } }
const recurse = () => recurse();
export const handler = (event, context, callback) => {
  switch (event) {
    case "throw": throw new TypeError("t");
    case "reject": return Promise.reject(new TypeError("t"));
    case "value": throw "text";
    case "nothing": return Promise.reject();
    case "callback": return callback(new TypeError("t"));
    case "fail": return context.fail(new TypeError("t"));
    case "recursion": return recurse();
    case "odd": throw new Odd();
    case "long": throw new Error("x".repeat(1_000_000));
    case "proxy": throw new Proxy({}, { get() { throw new Error("no") }, getPrototypeOf() { throw new Error("no") } });
    case "stack": throw Object.defineProperty(new TypeError("t"), "stack", { get() { throw new Error("no") } });
    case "bigint": return Promise.resolve(1n);
    case "function": return Promise.resolve(() => 1);
    case "surrogate": return "\ud800";
    case "circle": { const a = []; a.push(a); return a; }
    case "deep": { let a = []; for (let i = 0; i < 100_000; i += 1) a = [a]; return a; }
    case "tojson": return { toJSON() { throw new TypeError("t") } };
    case "cause": throw new Error("outer", { cause: new TypeError("inner") });
    case "stray": setTimeout(() => { throw new RangeError("stray") }, 1); return new Promise((resolve) => setTimeout(resolve, 1000));
    case "unhandled": Promise.reject(new RangeError("unhandled")); return new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return "fine";
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    let cases = [
        ("throw", "TypeError"),
        ("reject", "TypeError"),
        ("value", "string"),
        ("nothing", "undefined"),
        ("callback", "TypeError"),
        ("fail", "TypeError"),
        ("recursion", "RangeError"),
        ("odd", "Odd"),
        ("long", "Error"),
        ("proxy", "Error"),
        ("stack", "TypeError"),
        ("bigint", "Runtime.MarshalError"),
        ("function", "Runtime.MarshalError"),
        ("surrogate", "Runtime.MarshalError"),
        ("circle", "Runtime.MarshalError"),
        ("deep", "Runtime.MarshalError"),
        ("tojson", "Runtime.MarshalError"),
        ("cause", "Error"),
        ("stray", "RangeError"),
        ("unhandled", "Runtime.UnhandledPromiseRejection"),
    ];
    for (event, expected) in cases {
        let error = instance.call_error(&json!(event));
        assert_eq!(error["errorType"], expected, "{event}: {error}");
        assert!(error.to_string().len() < 64 * 1024, "{event}");
        assert_eq!(instance.call(&json!(null)), "fine", "after {event}");
        if event == "cause" {
            assert!(
                error["stackTrace"]
                    .to_string()
                    .contains("Caused by: TypeError: inner"),
                "{error}"
            );
        }
    }
}

#[test]
fn everything_printed_is_there_when_the_answer_is() {
    let source = r#"
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
export const handler = async (event) => {
  console.log("console", { a: 1 });
  process.stdout.write(Buffer.from("bytes\n"));
  fs.writeSync(1, "descriptor\n");
  execFileSync("echo", ["process"], { stdio: "inherit" });
  await new Promise((resolve) => spawn("echo", ["spawned"], { stdio: "inherit" }).on("exit", resolve));
  console.error("error");
  await new Promise((resolve) => process.stdout.write("called back\n", resolve));
  process.stdout.write("no line end");
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        let reply = instance.invoke(&json!(null));
        assert_eq!(
            reply.stdout,
            "console { a: 1 }\nbytes\ndescriptor\nprocess\nspawned\ncalled back\nno line end"
        );
        assert_eq!(reply.stderr, "error\n");
    }
    assert_eq!(template.drain_stdout(), "");
}

#[test]
fn closed_streams_do_no_harm() {
    let source = r#"
export const handler = async (event) => {
  if (event === "end") { process.stdout.end(); process.stderr.destroy(); }
  console.log("here");
  return 1;
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for event in ["end", "print", "print"] {
        let reply = instance.invoke(&json!(event));
        assert!(
            matches!(reply.answer, Answer::Result(_)),
            "{event}: {reply:?}"
        );
    }
}

#[test]
fn an_instance_ends_quietly_with_its_server() {
    let mut template = boot("export const handler = () => 1;\n");
    let instance = template.fork();
    let pid = instance.pid;
    drop(instance);
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": pid, "code": 0})
    );
}

#[test]
fn process_replacements_are_not_visible() {
    let mut template = handler(
        "return [typeof gc, Object.keys(Math).length, process.argv.length, Math.random.name, process.stdout.fd, process.exitCode]",
    );
    let expected = json!(["undefined", 0, 2, "random", 1, null]);
    assert_eq!(template.fork().call(&json!(null)), expected);
}
