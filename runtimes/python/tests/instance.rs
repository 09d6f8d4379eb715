//! An instance: handlers of every kind, context, errors, logs, large payloads.
#![deny(unsafe_code)]

use hearth_abi::Trigger;
use hearth_testkit::worker::{Answer, boot, contract};
use serde_json::{Value, json};

fn handler(body: &str) -> hearth_testkit::worker::Template {
    boot(&format!("def handler(event, context):\n    {body}\n"))
}

#[test]
fn json_goes_both_ways() {
    contract::check_json("def handler(event, context):\n    return event\n");
}

#[test]
fn large_payloads_stream_through_the_ring() {
    contract::check_large_payloads(
        "def handler(event, context):\n    return [len(event['blob']), event['blob']]\n",
    );
}

#[test]
fn the_context_has_lambdas_fields() {
    let body = "return [context.aws_request_id, context.function_name, context.function_version, \
                context.memory_limit_in_mb, context.invoked_function_arn, context.log_group_name, \
                context.log_stream_name, context.client_context, context.identity, context.traceparent, \
                0 < context.get_remaining_time_in_millis() <= 30000]";
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
        128,
        "arn:hearth:lambda:local:0:function:hello:3",
        "/hearth/hello",
        format!("3/{}", instance.pid),
        null,
        null,
        trace,
        true,
    ]);
    assert_eq!(first, expected);
    expected[0] = json!("02020202-0202-0202-0202-020202020202");
    expected[9] = Value::Null;
    assert_eq!(instance.call(&json!({})), expected);
}

#[test]
fn async_handlers_share_one_loop() {
    let source = r#"
import asyncio
queue = None
async def handler(event, context):
    global queue
    if queue is None:
        queue = asyncio.Queue()
    await asyncio.sleep(0.001)
    queue.put_nowait(event)
    return [queue.qsize(), await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))]
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    assert_eq!(instance.call(&json!("a")), json!([1, [1, 2]]));
    assert_eq!(instance.call(&json!("b")), json!([2, [1, 2]]));
    // An awaitable from a plain function, without asyncio in the template.
    let mut template = boot(
        "async def work(e):\n    return e + 1\ndef handler(event, context):\n    return work(event)\n",
    );
    assert_eq!(template.fork().call(&json!(1)), 2);
}

#[test]
fn a_loop_made_at_import_is_each_instances_own() {
    let source = r#"
import asyncio, socket
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(asyncio.sleep(0))
async def work(event):
    return await loop.run_in_executor(None, lambda: event + 1)
def handler(event, context):
    return loop.run_until_complete(work(event))
"#;
    let mut template = boot(source);
    let mut instances: Vec<_> = (0..4).map(|_| template.fork()).collect();
    for round in 0..5 {
        for instance in &mut instances {
            assert_eq!(instance.call(&json!(round)), round + 1);
        }
    }
}

#[test]
fn exceptions_are_shaped_as_lambda_does() {
    let source =
        "def inner():\n    raise ValueError('bad ü')\ndef handler(event, context):\n    inner()\n";
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        let error = instance.call_error(&json!(null));
        assert_eq!(
            (&error["errorType"], &error["errorMessage"]),
            (&json!("ValueError"), &json!("bad ü"))
        );
        let stack: Vec<String> =
            serde_json::from_value(error["stackTrace"].clone()).expect("strings");
        assert_eq!(stack.len(), 2, "{stack:?}");
        assert!(
            stack[0].ends_with("main.py\", line 4, in handler\n    inner()\n"),
            "{stack:?}"
        );
        assert!(
            stack[1].ends_with("main.py\", line 2, in inner\n    raise ValueError('bad ü')\n"),
            "{stack:?}"
        );
    }
}

#[test]
fn an_async_error_shows_no_event_loop_frames() {
    let mut template = boot("async def handler(event, context):\n    raise KeyError('k')\n");
    let error = template.fork().call_error(&json!(null));
    assert_eq!(error["errorType"], "KeyError");
    assert_eq!(
        error["stackTrace"].as_array().map(Vec::len),
        Some(1),
        "{error}"
    );
}

#[test]
fn every_way_to_fail_leaves_the_instance_serving() {
    let source = r#"
import sys
class Odd(Exception):
    def __str__(self): raise RuntimeError("no text")
def recurse(): recurse()
def handler(event, context):
    match event:
        case "exit": sys.exit(3)
        case "interrupt": raise KeyboardInterrupt
        case "recursion": recurse()
        case "memory": return bytearray(1 << 60)
        case "odd": raise Odd
        case "long": raise ValueError("x" * 1_000_000)
        case "nan": return [float("nan")]
        case "set": return {1}
        case "bytes": return b"x"
        case "surrogate": return "\ud800"
        case "circle":
            a = []; a.append(a); return a
        case "deep":
            a = []
            for _ in range(100_000): a = [a]
            return a
        case "cause":
            try: {}["k"]
            except KeyError as error: raise ValueError("outer") from error
    return "fine"
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    let cases = [
        ("exit", "SystemExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("recursion", "RecursionError"),
        ("memory", "MemoryError"),
        ("odd", "Odd"),
        ("long", "ValueError"),
        ("nan", "Runtime.MarshalError"),
        ("set", "Runtime.MarshalError"),
        ("bytes", "Runtime.MarshalError"),
        ("surrogate", "Runtime.MarshalError"),
        ("circle", "Runtime.MarshalError"),
        ("deep", "Runtime.MarshalError"),
        ("cause", "ValueError"),
    ];
    for (event, expected) in cases {
        let error = instance.call_error(&json!(event));
        assert_eq!(error["errorType"], expected, "{event}: {error}");
        assert!(error.to_string().len() < 64 * 1024, "{event}");
        assert_eq!(instance.call(&json!(null)), "fine", "after {event}");
        if event == "cause" {
            assert!(
                error["stackTrace"][1]
                    .as_str()
                    .expect("text")
                    .starts_with("Caused by: KeyError"),
                "{error}"
            );
        }
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let Answer::Error(error) = instance
        .request(Trigger::Invoke, None, deep.as_bytes(), None)
        .answer
    else {
        panic!("no error")
    };
    assert_eq!(error["errorType"], "Runtime.UnmarshalError");
}

#[test]
fn decimals_are_numbers_as_on_lambda() {
    let mut template =
        boot("import decimal\ndef handler(event, context):\n    return decimal.Decimal('1.5')\n");
    assert_eq!(template.fork().call(&json!(null)), 1.5);
}

#[test]
fn everything_printed_is_there_when_the_answer_is() {
    let source = r#"
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None)
def handler(event, context):
    print("python")
    os.write(1, b"descriptor\n")
    subprocess.run(["echo", "process"])
    libc.printf(b"native\n")
    print("error", file=sys.stderr)
    print("no line end", end="")
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        let reply = instance.invoke(&json!(null));
        let mut lines: Vec<_> = reply.stdout.lines().collect();
        lines.sort_unstable();
        let text = lines.join("|");
        for part in ["python", "descriptor", "process", "native", "no line end"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(reply.stderr, "error\n");
    }
    assert_eq!(template.drain_stdout(), "");
}

#[test]
fn replaced_and_closed_streams_do_no_harm() {
    let source = r#"
import io, sys
def handler(event, context):
    if event == "close": sys.stdout.close(); sys.stderr.close()
    if event == "replace": sys.stdout = io.StringIO()
    if event == "none": sys.stdout = None
    if event == "restore": sys.stdout = sys.__stdout__
    if event == "print": print("here")
    return 1
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for event in [
        "close", "print", "replace", "print", "none", "print", "restore",
    ] {
        let reply = instance.invoke(&json!(event));
        assert!(
            matches!(reply.answer, Answer::Result(_)),
            "{event}: {reply:?}"
        );
    }
    let mut instance = template.fork();
    instance.call(&json!("close"));
    assert_eq!(instance.invoke(&json!("print")).stdout, "here\n");
}

#[test]
fn a_fork_that_returns_from_the_handler_does_not_answer() {
    let source = r#"
import multiprocessing, os
def work(queue): queue.put(os.getpid())
def handler(event, context):
    pid = os.fork()
    if pid == 0:
        return "child"
    os.waitpid(pid, 0)
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    process = multiprocessing.get_context("spawn").Process(target=work, args=(queue,))
    process.start()
    process.join()
    return [process.exitcode, queue.get() == process.pid]
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        let reply = instance.invoke(&json!(null));
        assert_eq!(reply.answer, Answer::Result(json!([0, true])), "{reply:?}");
        assert!(reply.stderr.contains("forked"), "{reply:?}");
    }
}

#[test]
fn an_instance_ends_quietly_with_its_server() {
    let mut template = boot("def handler(event, context): pass\n");
    let instance = template.fork();
    let pid = instance.pid;
    drop(instance);
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": pid, "code": 0})
    );
}

#[test]
fn an_idle_instance_keeps_nothing_of_a_request() {
    let source = r#"
import gc, weakref
class Thing(dict): pass
last = None
def handler(event, context):
    global last
    alive = last is not None and last() is not None
    thing = Thing()
    last = weakref.ref(thing)
    return [alive, gc.isenabled(), gc.get_freeze_count() > 0]
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        assert_eq!(instance.call(&json!(null)), json!([false, true, true]));
    }
}
