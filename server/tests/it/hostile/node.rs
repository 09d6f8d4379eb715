//! The same attacks from Node.js, where its own means differ from Python's: what a runtime offers, not what the kernel
//! refuses, is different. `node.js` has them by name.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::{Value, json};

use super::{Arena, PRELUDE, SECRET, host};

const CODE: &str = include_str!("node.js");
const KERNEL: &str = include_str!("kernel.py");
/// Processes and threads of a sandbox of one instance.
const PIDS_OF_ONE: u64 = 96;

impl Arena {
    /// As [`Arena::new`], with the attacks of Node.js.
    pub(super) async fn node(mut settings: Value) -> Self {
        settings["runtime"] = json!("node");
        let arena = Self::without_attacker().await;
        arena.client.deploy("attack", CODE, settings).await;
        arena
    }
}

fn one_instance() -> Value {
    json!({"timeout_ms": 5000, "max_concurrency": 1})
}

/// Checks that all that was tried was refused.
fn refused(results: &Value) {
    let results = results.as_object().expect("an object");
    assert!(!results.is_empty());
    for (what, result) in results {
        let result = result.as_str().unwrap_or_default();
        assert!(
            [
                "EROFS",
                "EPERM",
                "EACCES",
                "EXDEV",
                "EBUSY",
                "ENOENT",
                "ENETUNREACH",
                "ERR_SYSTEM_ERROR",
                "closed"
            ]
            .contains(&result),
            "{what}: {result}"
        );
    }
}

/// Checks that nothing that was tried was done, whoever refused it: some builds of Node.js do before the kernel can, each
/// with an error of its own.
fn not_done(results: &Value) {
    let results = results.as_object().expect("an object");
    assert!(!results.is_empty());
    for (what, result) in results {
        let result = result.as_str().unwrap_or_default();
        assert!(!["", "done"].contains(&result), "{what}: {result}");
    }
}

#[tokio::test]
async fn files_are_as_far_as_from_python() {
    let arena = Arena::node(json!({})).await;
    let data = arena.server.data_dir();
    let mut paths: Vec<String> = ["/etc/shadow", "/root", "/home", "/sys", "/boot", "/run"]
        .map(String::from)
        .into();
    for name in ["", "admin-token", "hearth.db", "run", "code"] {
        paths.push(data.join(name).display().to_string());
    }
    for pid in [arena.server.pid(), arena.server.serve_pid()] {
        paths.push(format!("/proc/{pid}/environ"));
    }
    let answer = arena.send(&json!({"attack": "read", "paths": paths})).await;
    assert_eq!(answer.expect(200).json(), json!({}));
    let event = json!({"attack": "search", "needle": SECRET});
    let found = arena.send(&event).await.expect(200).json();
    assert_eq!(found["hits"], json!([]));
    assert!(found["seen"].as_u64() > Some(0), "it did look: {found}");
    refused(&arena.report("change").await);
    arena.finish().await;
}

#[tokio::test]
async fn nobody_becomes_somebody_else() {
    let arena = Arena::node(json!({})).await;
    let mut tried = arena.report("identity").await;
    let user = tried.as_object_mut().expect("an object").remove("user");
    not_done(&tried);
    assert_eq!(user, Some(json!([1000, 1000, 1000, 1000, [1000]])));
    let source = format!("{PRELUDE}\n{KERNEL}");
    let event = json!({"attack": "kernel", "source": source});
    let report = arena.send(&event).await.expect(200).json();
    for (call, result) in report["calls"].as_object().expect("an object") {
        let absent = ["clone3", "io_uring_setup", "memfd_secret"].contains(&call.as_str());
        assert_eq!(result, if absent { "ENOSYS" } else { "EPERM" }, "{call}");
    }
    for (namespace, result) in report["namespaces"].as_object().expect("an object") {
        assert_eq!(result, "EPERM", "clone into a new {namespace} namespace");
    }
    assert_eq!(arena.recovers("system calls").await, "warm");
    arena.finish().await;
}

#[tokio::test]
async fn without_network_nobody_is_reached() {
    let arena = Arena::node(json!({"network": "none"})).await;
    let name = format!("hearth-node-test-{}", arena.server.pid());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("an abstract socket");
    let event = json!({"attack": "network", "url": format!("{}/healthz", arena.server.url), "abstract": name});
    let result = arena.send(&event).await.expect(200).json();
    assert_eq!(
        result,
        json!({"tcp": "ECONNREFUSED", "fetch": "ECONNREFUSED", "elsewhere": "ENETUNREACH", "name": "EAI_AGAIN", "abstract": "ECONNREFUSED"})
    );
    arena.finish().await;
}

#[tokio::test]
async fn memory_is_told_apart_from_a_crash_wherever_it_is_taken() {
    let arena = Arena::node(json!({"memory_mb": 64, "max_concurrency": 1})).await;
    for attack in ["objects", "buffers", "shared", "wasm", "text"] {
        let answer = arena.attack(attack).await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        assert_eq!(
            answer.problem(502, "function_out_of_memory")["code"],
            "function_out_of_memory",
            "{attack}"
        );
        let record = arena.client.invocation(&id).await;
        assert_eq!(record["status"], "out_of_memory", "{attack}: {record}");
        arena.recovers(attack).await;
    }
    // Where groups are killed as a whole, the handler goes with its child; else it sees the child's end.
    let answer = arena.attack("in_a_child").await;
    if answer.status == 200 {
        assert_ne!(answer.json(), 0);
    } else {
        answer.problem(502, "function_out_of_memory");
    }
    arena.recovers("a child that took too much").await;
    arena.finish().await;
}

#[tokio::test]
async fn bombs_are_bounded() {
    let arena = Arena::node(json!({"timeout_ms": 10_000, "max_concurrency": 1})).await;
    let children = arena.report("count_children").await;
    assert_eq!(children["refused"], "refused", "{children}");
    assert!(
        children["children"].as_u64() < Some(PIDS_OF_ONE),
        "{children}"
    );
    arena.recovers("many children").await;
    arena.attack("bomb").await.problem(504, "function_timeout");
    host::without_instances(&arena.server, "attack").await;
    arena.recovers("a bomb").await;
    arena.finish().await;
}

#[tokio::test]
async fn whoever_never_returns_is_ended() {
    let arena = Arena::node(json!({"timeout_ms": 1500, "max_concurrency": 1})).await;
    for attack in ["spin", "microtasks", "ticks", "ignore_everything"] {
        arena.attack(attack).await.problem(504, "function_timeout");
        host::without_instances(&arena.server, "attack").await;
        arena.recovers(attack).await;
    }
    arena.finish().await;
}

#[tokio::test]
async fn who_kills_the_template_hurts_only_itself() {
    let arena = Arena::node(one_instance()).await;
    for attack in ["kill_template", "kill_everything"] {
        arena.attack(attack).await.problem(502, "function_crashed");
        assert_eq!(arena.recovers(attack).await, "boot", "{attack}");
    }
    arena.finish().await;
}

#[tokio::test]
async fn descriptors_cost_the_instance_at_most() {
    let arena = Arena::node(one_instance()).await;
    for attack in ["close_all", "garbage_in_all", "given_to_a_child", "exhaust"] {
        let answer = arena.attack(attack).await;
        assert!(
            [200, 502, 504].contains(&answer.status.as_u16()),
            "{attack}: {}",
            answer.text()
        );
        arena.recovers_in_the_end(attack).await;
    }
    // Nor does it help a function to take Hearth's JavaScript apart.
    let answer = arena.attack("sabotage").await;
    assert!(
        [200, 502, 504].contains(&answer.status.as_u16()),
        "{}",
        answer.text()
    );
    arena.finish().await;
}
