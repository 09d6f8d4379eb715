//! Functions whose import starts threads: a fork would have none of them, so each instance is the restored or booted process
//! itself. Threads work in every instance, whatever became of the ones before it.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::restore::{available, image_of};
use crate::support::{Client, Server, eventually};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A pool that was used while the module was imported, a listener that writes what is logged, a heart that beats, and an event
/// loop that a thread runs.
const POOL: &str = r#"
import asyncio, concurrent.futures, logging, logging.handlers, os, queue, random, tempfile, threading, time, uuid
pool = concurrent.futures.ThreadPoolExecutor(2)
assert pool.submit(lambda: 41).result() == 41
lines = queue.Queue()
seen = []
class Keep(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
listener = logging.handlers.QueueListener(lines, Keep())
listener.start()
log = logging.getLogger("it")
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.QueueHandler(lines))
import ssl
ssl.RAND_bytes(1)
generator = random.Random()
tempfile.mktemp()
beats = 0
def beat():
    global beats
    while True:
        time.sleep(0.001)
        beats += 1
threading.Thread(target=beat, daemon=True).start()
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
threading.Thread(target=loop.run_forever, daemon=True).start()
async def double(number):
    await asyncio.sleep(0.001)
    return number * 2
def handler(event, context):
    before = beats
    assert asyncio.run_coroutine_threadsafe(double(event), loop).result(timeout=5) == event * 2
    log.info("got %s", event)
    while not any(line == f"got {event}" for line in seen):
        time.sleep(0.0005)
    doubled = pool.submit(lambda: event * 2).result(timeout=5)
    if isinstance(event, int) and event < 0:
        os._exit(3)
    while beats < before + 3:
        time.sleep(0.001)
    drawn = [random.random(), generator.random(), str(uuid.uuid4()), str(uuid.uuid1()), ssl.RAND_bytes(8).hex()]
    drawn += [os.urandom(8).hex(), tempfile.mktemp()]
    return [doubled, drawn]
"#;

/// A worker thread that is up when the import is over, and has drawn all kinds of random values.
const WORKER: &str = r#"
import { Worker } from "node:worker_threads";
import { randomBytes, randomInt, randomUUID } from "node:crypto";
const pool = crypto.getRandomValues(new Uint8Array(8));
const worker = new Worker(
  `const { parentPort } = require("node:worker_threads");
   const { randomBytes, randomInt, randomUUID } = require("node:crypto");
   const draw = () => [Math.random(), randomInt(2 ** 47), randomUUID(), crypto.randomUUID(), randomBytes(8).toString("hex")];
   draw();
   parentPort.on("message", ([id, n]) => parentPort.postMessage([id, [n * 2, draw()]]));`, { eval: true });
const open = new Map();
let next = 0;
worker.on("message", ([id, value]) => { open.get(id)(value); open.delete(id); });
const double = (n) => new Promise((done) => { open.set(next, done); worker.postMessage([next, n]); next += 1; });
if ((await double(20.5))[0] !== 41) throw new Error("the worker does not work");
let first = true;
export const handler = async (event) => {
  const [doubled, drawn] = await double(event);
  await new Promise((done) => setTimeout(done, 10));
  drawn.push(Math.random(), randomInt(2 ** 47), randomUUID(), randomBytes(8).toString("hex"));
  if (first) drawn.push(pool.join());
  first = false;
  return [doubled, drawn];
};
"#;

async fn function(client: &Client, name: &str) -> Value {
    let path = format!("/api/v1/functions/{name}");
    client.get(&path).await.expect(200).json()
}

/// Calls it so many times at a time, `rounds` times. Every answer is right, and nothing random comes twice. Returns the
/// start kinds that were seen.
async fn call(
    client: &Client,
    name: &str,
    at_a_time: i64,
    rounds: i64,
    drawn: &mut HashSet<String>,
) -> HashSet<String> {
    let mut kinds = HashSet::new();
    for round in 0..rounds {
        let events = (0..at_a_time).map(|index| round * at_a_time + index);
        let calls = events.map(|event| async move {
            let answer = client.invoke(name, &json!(event)).await.expect(200);
            (event, answer)
        });
        for (event, answer) in join_all(calls).await {
            let result = answer.json();
            assert_eq!(result[0], event * 2, "{result}");
            for value in result[1].as_array().expect("values") {
                assert!(drawn.insert(value.to_string()), "{value} came twice");
            }
            kinds.insert(answer.header("x-hearth-start").to_owned());
        }
    }
    kinds
}

/// Lets everything of the function go: instances after a second, the template after another.
pub(crate) async fn asleep(client: &Client, name: &str) {
    eventually("sleep", TIMEOUT, || async {
        (function(client, name).await["state"] == "asleep").then_some(())
    })
    .await;
}

/// Deployed, called, put to sleep, called, restarted with the server, called.
async fn lives_through_everything(name: &str, code: &str, runtime: &str) {
    let server = Server::start();
    let client = server.client();
    let restores = available(&client).await;
    let settings = json!({
        "runtime": runtime, "max_concurrency": 6, "idle_timeout_s": 1, "template_idle_timeout_s": 2,
    });
    let deployed = client.deploy(name, code, settings).await;
    assert_eq!(deployed["start"], "auto");
    let by = if restores { "restore" } else { "boot" };
    assert_eq!(deployed["starts_by"], by, "{deployed}");
    let reason = deployed["start_reason"].as_str().expect("a reason");
    assert!(reason.contains("running"), "{reason}");

    let mut drawn = HashSet::new();
    let kinds = call(&client, name, 16, 2, &mut drawn).await;
    assert!(!kinds.contains("fork"), "{kinds:?}");
    if restores {
        image_of(&client, name).await;
    }
    for _ in 0..2 {
        asleep(&client, name).await;
        let kinds = call(&client, name, 16, 4, &mut drawn).await;
        assert!(!kinds.contains("fork"), "{kinds:?}");
        assert!(!restores || kinds.contains("restore"), "{kinds:?}");
    }

    let server = server.restart();
    let client = server.client();
    eventually("the function", TIMEOUT, || async {
        let ready = client.get("/readyz").await;
        (ready.status == 200).then_some(())
    })
    .await;
    let shown = function(&client, name).await;
    assert_eq!(shown["starts_by"], by, "{shown}");
    assert_eq!(shown["start_reason"], reason, "{shown}");
    assert_eq!(shown["versions"][0]["starts_by"], by, "{shown}");
    let kinds = call(&client, name, 16, 4, &mut drawn).await;
    assert!(!kinds.contains("fork"), "{kinds:?}");
    assert_eq!(shown["image"]["restore_failures"], 0, "{shown}");
}

#[tokio::test]
async fn a_pool_and_a_listener_of_the_import_work_in_every_instance() {
    lives_through_everything("pool", POOL, "python3").await;
}

#[tokio::test]
async fn a_worker_thread_of_the_import_works_in_every_instance() {
    lives_through_everything("worker", WORKER, "node").await;
}

#[tokio::test]
async fn a_coroutine_runs_although_a_thread_has_the_loop() {
    let server = Server::start();
    let client = server.client();
    let code = "import asyncio, threading\nloop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\n\
                threading.Thread(target=loop.run_forever, daemon=True).start()\n\
                async def handler(event, context):\n    await asyncio.sleep(0.001)\n    return event\n";
    client.deploy("looped", code, json!({})).await;
    for event in 0..2 {
        let answer = client.invoke("looped", &json!(event)).await.expect(200);
        assert_eq!(answer.json(), event);
    }
}

#[tokio::test]
async fn each_way_to_start_gives_the_same_answers() {
    let server = Server::start();
    let client = server.client();
    let restores = available(&client).await;
    let python =
        "import random\ndef handler(event, context):\n    return [event * 2, [random.random()]]\n";
    let node = "export const handler = async (event) => [event * 2, [Math.random()]];\n";
    for (runtime, code) in [("python3", python), ("node", node)] {
        for start in ["fork", "restore", "boot"] {
            let name = format!("{runtime}-{start}");
            let settings = json!({
                "runtime": runtime, "start": start, "max_concurrency": 3, "idle_timeout_s": 1, "template_idle_timeout_s": 2,
            });
            let deployed = client.deploy(&name, code, settings).await;
            assert_eq!(deployed["start"], start);
            let by = if start == "restore" && !restores {
                "boot"
            } else {
                start
            };
            assert_eq!(deployed["starts_by"], by);
            assert_eq!(
                deployed["start_reason"].is_null(),
                by == start,
                "{deployed}"
            );
            let mut drawn = HashSet::new();
            call(&client, &name, 8, 2, &mut drawn).await;
            if by == "restore" {
                image_of(&client, &name).await;
                asleep(&client, &name).await;
            }
            let kinds = call(&client, &name, 8, 2, &mut drawn).await;
            if by != "fork" {
                assert!(!kinds.contains("fork"), "{name}: {kinds:?}");
            }
            // What a restore failed of is in the image's note.
            assert!(
                by != "restore" || kinds.contains("restore"),
                "{name}: {kinds:?}, {}",
                function(&client, &name).await["image"]
            );
            assert!(
                start != "boot" || !kinds.contains("restore"),
                "{name}: {kinds:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_import_drew_is_told_where_it_is_shared() {
    let server = Server::start();
    let client = server.client();
    let code =
        "import os\nTOKEN = os.urandom(16).hex()\ndef handler(event, context):\n    return TOKEN\n";
    for (start, shared) in [("fork", 1), ("restore", 1), ("boot", 0)] {
        let name = format!("drew-{start}");
        let deployed = client.deploy(&name, code, json!({"start": start})).await;
        let notes = deployed["notes"].as_array().expect("notes");
        assert_eq!(notes.len(), shared, "{start}: {deployed}");
    }
    // The same of what does not fork for its threads.
    let threads = format!("{POOL}\nTOKEN = os.urandom(16).hex()\n");
    let deployed = client.deploy("drew-threads", &threads, json!({})).await;
    assert_eq!(
        deployed["notes"][0]["code"], "random_at_import",
        "{deployed}"
    );
}

#[tokio::test]
async fn what_forks_in_spite_of_threads_is_warned_of() {
    let server = Server::start();
    let client = server.client();
    let deployed = client
        .deploy("forced", POOL, json!({"start": "fork"}))
        .await;
    assert_eq!(deployed["starts_by"], "fork");
    let reason = deployed["start_reason"].as_str().expect("a reason");
    assert!(reason.starts_with("warning: "), "{reason}");
    assert!(reason.contains("ThreadPoolExecutor"), "{reason}");
    // Another setting is another version, and says of itself what it does.
    let path = "/api/v1/functions/forced";
    let patched = client
        .patch(path, &json!({"start": "auto"}))
        .await
        .expect(200);
    assert_ne!(patched.json()["starts_by"], "fork");
    let versions = client
        .get(&format!("{path}/versions"))
        .await
        .expect(200)
        .json();
    assert_eq!(versions["items"][1]["starts_by"], "fork");
    assert!(versions["items"][1]["start_reason"].is_string());
}

#[tokio::test]
async fn threads_that_end_before_the_import_does_do_not_count() {
    let server = Server::start();
    let client = server.client();
    let code = "import concurrent.futures\nwith concurrent.futures.ThreadPoolExecutor(4) as pool:\n    \
                assert list(pool.map(abs, [-1, -2])) == [1, 2]\ndef handler(event, context):\n    return event\n";
    let deployed = client.deploy("ended", code, json!({})).await;
    assert_eq!(deployed["starts_by"], "fork", "{deployed}");
    // libuv's pool, of which a fork gets one of its own.
    let code = "import fs from 'node:fs/promises';\nawait fs.readFile(new URL(import.meta.url));\n\
                export const handler = async (event) => { await fs.stat('/'); return event; };\n";
    let deployed = client
        .deploy("libuv", code, json!({"runtime": "node"}))
        .await;
    assert_eq!(deployed["starts_by"], "fork", "{deployed}");
    let answer = client.invoke("libuv", &json!(1)).await.expect(200);
    assert_eq!(answer.json(), 1);
}

#[tokio::test]
async fn an_instance_that_is_no_fork_dies_like_any_other() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("dies", POOL, json!({"timeout_ms": 2000}))
        .await;
    for _ in 0..3 {
        let problem = client
            .invoke("dies", &json!(-1))
            .await
            .problem(502, "function_crashed");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains("it exited with status 3"), "{detail}");
        let answer = client.invoke("dies", &json!(4)).await.expect(200);
        assert_eq!(answer.json()[0], 8);
    }
    let shown = function(&client, "dies").await;
    assert_eq!(shown["image"]["restore_failures"], 0, "{shown}");
}
