//! Descriptors: what a function does to those it was given, and how much it pushes through them.

use serde_json::{Value, json};

use super::{Arena, host};

const CODE: &str = include_str!("descriptors.py");
/// What the server keeps of one invocation's log, with room for the note that says that it was cut.
const LOG_BYTES: usize = 1100 * 1024;

fn log_bytes(record: &Value) -> usize {
    let lines = record["logs"].as_array().expect("a list");
    lines
        .iter()
        .filter_map(|line| line["text"].as_str())
        .map(str::len)
        .sum()
}

#[tokio::test]
async fn a_log_of_100_megabytes_is_cut() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 20_000})).await;
    let answer = arena
        .send(&json!({"attack": "print_much", "mebibytes": 100}))
        .await
        .expect(200);
    let record = arena
        .client
        .invocation(answer.header("x-hearth-invocation-id"))
        .await;
    assert!(log_bytes(&record) < LOG_BYTES);
    assert!(record["logs"].to_string().contains("the rest was dropped"));
    for attack in ["print_short_lines", "packets"] {
        let answer = arena.attack(attack).await.expect(200);
        let record = arena
            .client
            .invocation(answer.header("x-hearth-invocation-id"))
            .await;
        assert!(log_bytes(&record) < LOG_BYTES);
        let lines = record["logs"].as_array().map_or(0, Vec::len);
        assert!(lines <= 20_001, "{attack}: {lines} lines");
    }
    arena.finish().await;
}

#[tokio::test]
async fn a_log_without_end_is_ended_at_the_deadline() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 1500})).await;
    for line in ["x\n", "x"] {
        let event = json!({"attack": "print_for_ever", "line": line});
        let (first, second, third) =
            tokio::join!(arena.send(&event), arena.send(&event), arena.send(&event));
        for answer in [first, second, third] {
            answer.problem(504, "function_timeout");
        }
        host::without_instances(&arena.server, "attack").await;
    }
    arena.finish().await;
}

#[tokio::test]
async fn closed_and_replaced_descriptors_cost_the_instance_at_most() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 2000})).await;
    for attack in ["close_all", "junk_over_all", "exhaust", "blocking"] {
        let answer = arena.attack(attack).await;
        assert!(
            [200, 502, 504].contains(&answer.status.as_u16()),
            "{attack}: {}",
            answer.text()
        );
        arena.recovers_in_the_end(attack).await;
    }
    arena.finish().await;
}

/// Prints what processes share.
const SHARED: &str = include_str!("shared.py");

/// Template, instances and pre-forked instance of a function: what any two of them have both.
async fn shared_by_all(arena: &Arena) -> (usize, Value) {
    let sleep = json!({"attack": "wait"});
    let busy = tokio::join!(arena.send(&sleep), arena.send(&sleep), arena.send(&sleep));
    for answer in [busy.0, busy.1, busy.2] {
        answer.expect(200);
    }
    // The pre-forked instance is made when all is quiet.
    let pids = crate::support::eventually("a pre-forked instance", super::TIMEOUT, || async {
        let pids: Vec<String> = host::processes_of(&arena.server, "attack")
            .iter()
            .map(|process| process.pid.to_string())
            .collect();
        (pids.len() >= 4).then_some(pids)
    })
    .await;
    let output = std::process::Command::new("/usr/bin/python3")
        .args(["-c", SHARED])
        .args(&pids)
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found = serde_json::from_slice(&output.stdout).expect("JSON");
    (pids.len(), found)
}

async fn nothing_is_shared(arena: Arena) {
    let (processes, found) = shared_by_all(&arena).await;
    assert_eq!(found, json!([]), "of {processes} processes");
    // What else it has is its own: garbage in all of it harms nobody else.
    let template = templates(&arena);
    for _ in 0..3 {
        let answer = arena.attack("write_garbage").await;
        assert!(answer.status == 200 || answer.status == 502 || answer.status == 504);
        arena
            .recovers_in_the_end("garbage in every descriptor")
            .await;
    }
    // Another one may come and go, of which the image is made.
    let now = templates(&arena);
    let lives = template.iter().any(|pid| now.contains(pid));
    assert!(lives, "the template lives: {template:?}, {now:?}");
    arena.finish().await;
}

fn templates(arena: &Arena) -> Vec<u32> {
    crate::support::descendants(arena.server.pid())
        .iter()
        .filter(|process| process.is_template("attack"))
        .map(|process| process.pid)
        .collect()
}

by_fork_and_restore!(nothing_is_shared, CODE, json!({"timeout_ms": 5000}));

#[tokio::test]
async fn nothing_is_shared_by_node() {
    nothing_is_shared(Arena::node(json!({"timeout_ms": 5000})).await).await;
}

#[tokio::test]
async fn nothing_is_shared_by_node_out_of_an_image() {
    let arena = Arena::node(json!({"timeout_ms": 5000})).await;
    if !crate::restore::available(&arena.client).await {
        return;
    }
    crate::restore::image_of(&arena.client, "attack").await;
    crate::restore::kill_template(&arena.server, &arena.client, "attack").await;
    assert_eq!(arena.recovers("its template's end").await, "restore");
    nothing_is_shared(arena).await;
}
