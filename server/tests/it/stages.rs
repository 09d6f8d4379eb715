//! What the stages of an invocation say, against what its handler measured itself.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;

use crate::restore;
use crate::support::{Answer, Client, Server, descendants, figures};

/// Calls of each kind. On one processor some 7 to 14 % of the calls were measured wrong by the server's clock alone.
const CALLS: usize = 200;

/// Spins for 5 ms by its own clock, the one that the stamps are taken from, and answers how long that was, in µs.
const SPIN: &str = r#"
import time

def spin():
    begun = time.monotonic_ns()
    while time.monotonic_ns() - begun < 5_000_000:
        pass
    return (time.monotonic_ns() - begun) // 1000

def stream():
    yield str(spin())
    yield " " * 1000

def handler(event, context):
    if "streamed" in event.get("rawPath", ""):
        return stream()
    return [spin(), time.monotonic_ns()]
"#;

const SPIN_NODE: &str = r#"
function spin() {
  const begun = process.hrtime.bigint();
  while (process.hrtime.bigint() - begun < 5_000_000n);
  return Number((process.hrtime.bigint() - begun) / 1000n);
}
async function* stream() {
  yield String(spin());
  yield " ".repeat(1000);
}
export const handler = async (event) => {
  if (event.rawPath?.includes("streamed")) {
    return stream();
  }
  const micros = spin();
  return [micros, Number(process.hrtime.bigint())];
};
"#;

/// Puts every thread of the server and of its sandboxes on one processor, so that a bell hands it over.
fn pin(server: &Server) {
    let allowed = sched_getaffinity(None).expect("own affinity");
    let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    let mut one = CpuSet::new();
    one.set(cpu.expect("a processor"));
    let family = descendants(server.pid()).into_iter().map(|p| p.pid);
    for pid in family.chain([server.pid(), server.serve_pid()]) {
        // A process, or a thread, may end meanwhile.
        for thread in figures::threads(pid).unwrap_or_default() {
            let _ = sched_setaffinity(Pid::from_raw(thread.cast_signed()), &one);
        }
    }
}

/// A stage of an answer's `Server-Timing`, in µs; none if it is missing.
fn stage(answer: &Answer, name: &str) -> Option<u64> {
    let timing = answer.header("server-timing");
    let entry = timing.split(", ").find_map(|entry| {
        let rest = entry.strip_prefix(name)?.strip_prefix(";dur=")?;
        rest.split(';').next()
    })?;
    // Milliseconds with three decimals.
    entry.replace('.', "").parse().ok()
}

/// `run` holds what the handler measured, and the stages are parts of the whole.
#[track_caller]
fn check(answer: &Answer, measured: u64) {
    let run = stage(answer, "run").expect("run");
    let timing = answer.header("server-timing");
    assert!(measured >= 5000, "the handler spun for {measured} µs");
    assert!(
        run >= measured,
        "the handler spun for {measured} µs: {timing}"
    );
    if let Some(total) = stage(answer, "total") {
        let parts = ["queue", "start", "send", "run", "recv"].map(|name| stage(answer, name));
        let sum: u64 = parts.iter().flatten().sum();
        assert!(sum <= total, "{timing}");
    }
}

async fn refused_stamps(client: &Client) -> u64 {
    let text = client.get("/metrics").await.expect(200).text();
    text.lines()
        .find_map(|line| line.strip_prefix("hearth_refused_stamps_total "))
        .and_then(|count| count.parse().ok())
        .expect("the counter")
}

async fn spins(runtime: &str, code: &str) {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("spin", code, json!({"runtime": runtime}))
        .await;
    client.invoke("spin", &json!({})).await.expect(200);
    pin(&server);
    for _ in 0..CALLS {
        let answer = client.invoke("spin", &json!({})).await.expect(200);
        check(&answer, answer.json()[0].as_u64().expect("µs"));
    }
    for _ in 0..CALLS / 4 {
        // With a body, which follows the event.
        let answer = client.post("/fn/spin", &json!({"a": 1})).await.expect(200);
        check(&answer, answer.json()[0].as_u64().expect("µs"));
        // The handler's first piece is its end: what it did before is `run`.
        let answer = client.get("/fn/spin/streamed").await.expect(200);
        check(&answer, answer.text().trim().parse().expect("µs"));
    }
    assert_eq!(refused_stamps(&client).await, 0);
}

#[tokio::test]
async fn a_handlers_time_is_run_on_one_processor_too() {
    spins("python3", SPIN).await;
}

#[tokio::test]
async fn a_node_handlers_time_is_run_on_one_processor_too() {
    spins("node", SPIN_NODE).await;
}

/// CRIU can put a process into a time namespace. Then its clock would be another one than the server's, and every stamp
/// refused.
#[tokio::test]
async fn a_restored_instances_clock_is_the_hosts() {
    for (name, runtime, code) in [("spin", "python3", SPIN), ("spun", "node", SPIN_NODE)] {
        let server = restore::server(true);
        let client = server.client();
        if !restore::available(&client).await {
            return;
        }
        client.deploy(name, code, json!({"runtime": runtime})).await;
        restore::image_of(&client, name).await;
        restore::kill_template(&server, &client, name).await;
        for start_kind in ["restore", "warm", "warm"] {
            let before = hearth_abi::monotonic_ns();
            let answer = client.invoke(name, &json!({})).await.expect(200);
            let after = hearth_abi::monotonic_ns();
            assert_eq!(answer.header("x-hearth-start"), start_kind);
            let [measured, clock] = [0, 1].map(|at| answer.json()[at].as_u64().expect("a number"));
            // A double holds a month of nanoseconds exactly, and JavaScript has no other number.
            assert!(before <= clock + 64 && clock <= after + 64, "{runtime}");
            check(&answer, measured);
        }
        assert_eq!(refused_stamps(&client).await, 0, "{runtime}");
    }
}

/// Overwrites the stamps of its answer, from a thread until the process ends, or once between the runtime's last stamp and the
/// answer: there it flushes what was printed. Returns the stamps of the request at hand.
const LIAR: &str = r#"
import ctypes, sys, threading, time

def words(at):
    for line in open("/proc/self/maps"):
        if "hearth-channel" in line:
            return (ctypes.c_uint64 * 3).from_address(int(line.split("-")[0], 16) + at)
    raise LookupError("no region")

class Out:
    lie = staticmethod(lambda: None)
    def write(self, text): pass
    def flush(self): self.lie()

sys.stdout = Out()

def handler(event, context):
    stamps, claims = words(640 + 8), event["claims"]
    def lie():
        for at, claim in enumerate(claims):
            if claim is not None:
                stamps[at] = claim
    def keep_lying():
        while True:
            lie()
    Out.lie = staticmethod(lie)
    if event["keep"]:
        threading.Thread(target=keep_lying, daemon=True).start()
        time.sleep(0.02)
    return list(words(1152))
"#;

#[tokio::test]
async fn stamps_that_lie_leave_the_servers_own_times() {
    let server = Server::start();
    let client = server.client();
    client.deploy("liar", LIAR, json!({})).await;
    let honest = json!({"claims": [null, null, null], "keep": false});
    let seen = client.invoke("liar", &honest).await.expect(200).json();
    let now = hearth_abi::monotonic_ns();
    let [taken, began, ended] = [0, 1, 2].map(|at| seen[at].as_u64().expect("a stamp"));
    assert!(
        0 < taken && taken <= began && began <= now && ended == 0,
        "where the stamps are: {seen}"
    );
    assert_eq!(refused_stamps(&client).await, 0);
    let (past, future) = (1, now + 3_600_000_000_000);
    let lies = [
        json!([future, null, null]),
        json!([null, future, null]),
        json!([past, null, null]),
        json!([null, past, null]),
        json!([u64::MAX, u64::MAX, null]),
        json!([0, null, null]),
    ];
    let mut refused = 0;
    for claims in lies {
        let event = json!({"claims": claims, "keep": false});
        let answer = client.invoke("liar", &event).await.expect(200);
        bounded(&answer);
        refused += 1;
        assert_eq!(refused_stamps(&client).await, refused, "{event}");
    }
    // These race with the runtime's own stamps: whichever win, the figures stay within the call.
    for claims in [
        json!([null, null, future]),
        json!([future, past, 0]),
        json!([u64::MAX, 0, u64::MAX]),
    ] {
        let event = json!({"claims": claims, "keep": true});
        for _ in 0..5 {
            // The thread lives on in its instance, and meets its next requests as well.
            let answer = client.invoke("liar", &event).await.expect(200);
            bounded(&answer);
        }
        let code = format!("{LIAR}\n# {claims}\n");
        let path = "/api/v1/functions/liar/code";
        let code = json!({ "code": { "inline": code } });
        client.put(path, &code).await.expect(200);
    }
    assert!(refused_stamps(&client).await > refused, "some were seen");
}

/// No stage is longer than the invocation, nor are all together.
#[track_caller]
fn bounded(answer: &Answer) {
    let timing = answer.header("server-timing");
    let total = stage(answer, "total").expect("total");
    let parts = ["queue", "start", "send", "run", "recv"].map(|name| stage(answer, name));
    let sum: u64 = parts.iter().flatten().sum();
    assert!(sum <= total, "{timing}");
}
