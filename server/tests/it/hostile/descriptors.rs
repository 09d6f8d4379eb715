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
