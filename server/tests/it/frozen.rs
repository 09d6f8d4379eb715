//! What a handler leaves running, threads and child processes, is stopped between requests and goes on with the next one.
//!
//! Each of these notes, as it beats, the longest time in which it did not.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server};

/// Longer than an instance is let run on, by far. How long nothing beats is what is measured: no event could take its place.
const PAUSE: Duration = Duration::from_secs(4);
/// In seconds: what runs is never away for that long, and what is stopped during the pause is.
const GAP: f64 = 1.5;

/// A thread, and a process that has a process; the latter writes to a pipe. The import starts a thread if the environment says so.
const PYTHON: &str = r#"
import os, subprocess, sys, threading, time
BEAT = r'''
import sys, time
last, gap = time.monotonic(), 0
while True:
    time.sleep(0.005)
    now = time.monotonic()
    gap = max(gap, now - last)
    last = now
    print(gap, flush=True)
'''
class Thread:
    def __init__(self):
        self.gap = 0
        threading.Thread(target=self.run, daemon=True).start()
    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(0.005)
            now = time.monotonic()
            self.gap = max(self.gap, now - last)
            last = now
class Process:
    def __init__(self, command):
        self.gap = 0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()
    def read(self):
        for line in self.process.stdout:
            self.gap = max(self.gap, float(line))
hearts = {}
if os.environ.get("AT_IMPORT"):
    hearts["import"] = Thread()
def handler(event, context):
    if not event.get("import") and "thread" not in hearts:
        hearts["thread"] = Thread()
        hearts["child"] = Process([sys.executable, "-c", BEAT])
        hearts["grandchild"] = Process(["/bin/sh", "-c", '"$0" -c "$1"; exit 3', sys.executable, BEAT])
    # All of them get to note what there is to note.
    time.sleep(event.get("s", 0.3))
    alive = all(heart.process.poll() is None for heart in hearts.values() if isinstance(heart, Process))
    return {"gaps": {name: heart.gap for name, heart in hearts.items()}, "alive": alive, "pid": os.getpid()}
"#;

const NODE: &str = r#"
import { spawn } from "node:child_process";
import { Worker } from "node:worker_threads";
const BEAT = `
  let last = performance.now(), gap = 0;
  setInterval(() => {
    const now = performance.now();
    gap = Math.max(gap, (now - last) / 1000);
    last = now;
    note(gap);
  }, 5);`;
const gaps = {};
let started = false;
const start = () => {
  const child = spawn(process.execPath, ["-e", `const note = (gap) => console.log(gap);${BEAT}`]);
  child.stdout.on("data", (data) => { for (const line of String(data).trim().split("\n")) gaps.child = Number(line); });
  if (!process.env.WORKER) return;
  const worker = new Worker(`const note = (gap) => require("node:worker_threads").parentPort.postMessage(gap);${BEAT}`, { eval: true });
  worker.on("message", (gap) => { gaps.thread = gap; });
};
export const handler = async () => {
  if (!started) start();
  started = true;
  await new Promise((done) => setTimeout(done, 600));
  return { gaps, pid: process.pid };
};
"#;

async fn call(client: &Client, name: &str, event: Value) -> Value {
    client.invoke(name, &event).await.expect(200).json()
}

fn gap(answer: &Value, of: &str) -> f64 {
    let gap = answer["gaps"][of].as_f64();
    gap.unwrap_or_else(|| panic!("{of} has not beaten: {answer}"))
}

/// The same instance serves all of it: what runs in it while it is called all the time, and after a pause.
async fn stands_still(code: &str, settings: Value, hearts: &[&str]) {
    let server = Server::start();
    let client = server.client();
    client.deploy("heart", code, settings).await;
    let first = call(&client, "heart", json!({})).await;
    let before = call(&client, "heart", json!({})).await;
    assert_eq!(before["pid"], first["pid"]);
    for heart in hearts {
        assert!(gap(&before, heart) < GAP, "{heart}: {before}");
    }
    for _ in 0..2 {
        tokio::time::sleep(PAUSE).await;
        let after = call(&client, "heart", json!({})).await;
        assert_eq!(after["pid"], first["pid"], "it is the same instance");
        assert_ne!(after["alive"], false, "{after}");
        for heart in hearts {
            assert!(gap(&after, heart) > GAP, "{heart}: {after}");
        }
    }
}

#[tokio::test]
async fn a_python_functions_threads_and_processes_stand_still_between_requests() {
    let settings = json!({ "runtime": "python3" });
    stands_still(PYTHON, settings, &["thread", "child", "grandchild"]).await;
}

#[tokio::test]
async fn a_node_functions_processes_stand_still_between_requests() {
    stands_still(NODE, json!({ "runtime": "node" }), &["child"]).await;
}

#[tokio::test]
async fn a_node_functions_threads_stand_still_between_requests() {
    let settings = json!({ "runtime": "node", "start": "boot", "env": { "WORKER": "1" } });
    stands_still(NODE, settings, &["thread", "child"]).await;
}

/// The threads of an import, in what waits to become the next instance.
#[tokio::test]
async fn what_was_brought_up_ahead_stands_still_until_it_is_wanted() {
    let server = Server::start();
    let client = server.client();
    let settings =
        json!({ "env": { "AT_IMPORT": "1" }, "max_concurrency": 2, "timeout_ms": 30_000 });
    client.deploy("ahead", PYTHON, settings).await;
    call(&client, "ahead", json!({ "import": true })).await;
    tokio::time::sleep(PAUSE).await;
    let event = json!({ "import": true, "s": 3.0 });
    let both = join_all([0, 1].map(|_| client.invoke("ahead", &event))).await;
    // One has served before, and one had waited for its first request.
    let warm = |answer: &&Answer| answer.header("x-hearth-start") == "warm";
    assert_eq!(both.iter().filter(warm).count(), 1);
    for answer in both {
        let answer = answer.expect(200).json();
        assert!(gap(&answer, "import") > GAP, "{answer}");
    }
}

/// What waits ahead and is not wanted after all goes, stopped or not.
#[tokio::test]
async fn what_stands_still_can_be_ended() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({
        "env": { "AT_IMPORT": "1" }, "idle_timeout_s": 3, "template_idle_timeout_s": 3,
    });
    client.deploy("ended", PYTHON, settings).await;
    call(&client, "ended", json!({})).await;
    // What waits ahead is stopped a second after it came; its end, a second later, is waited for.
    tokio::time::sleep(Duration::from_secs(2)).await;
    crate::threads::asleep(&client, "ended").await;
    let again = call(&client, "ended", json!({})).await;
    assert_eq!(again["alive"], true);
}
