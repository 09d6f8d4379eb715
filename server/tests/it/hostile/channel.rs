//! The channel: everything that a worker can write into memory it shares with the server, and every way to ring or not
//! to ring.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Arena, host};
use crate::support::{Answer, eventually};

const CODE: &str = include_str!("channel.py");

/// Checks that the server noticed a broken protocol by itself and said so.
#[track_caller]
fn broke_the_protocol(answer: Answer, attack: &Value) {
    let problem = answer.problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("protocol"),
        "{attack}: {problem}"
    );
}

#[tokio::test]
async fn frames_that_make_no_sense_end_the_instance_at_once() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 60_000})).await;
    for fields in [
        json!({"length": 0xffff_ffff_u32}),
        json!({"length": 131_041}),
        json!({"length": 1000}),
        json!({"crc": 1}),
        json!({"id": "00000000000000000000000000000000"}),
        json!({"kind": 0}),
        json!({"kind": 0xffff}),
        json!({"kind": 1}),
        json!({"kind": 0x10}),
        json!({"kind": 0x12, "payload": "{}"}),
        json!({"kind": 0x30}),
        json!({"kind": 0x21, "payload": "{\"statusCode\":200,\"headers\":[]}"}),
        json!({"kind": 0x22, "payload": "x"}),
        json!({"flags": 2}),
        json!({"reserved": 7}),
    ] {
        let mut event = fields;
        event["attack"] = json!("one_frame");
        broke_the_protocol(arena.send(&event).await, &event);
    }
    arena.recovers("bad frames").await;
    arena.finish().await;
}

#[tokio::test]
async fn wild_indices_and_random_bytes_end_the_instance() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 60_000})).await;
    for delta in [1_i64, -64, 32, 262_208, 1 << 40, i64::MIN, i64::MAX] {
        let event = json!({"attack": "head_index", "delta": delta});
        broke_the_protocol(arena.send(&event).await, &event);
    }
    for delta in [1_i64, -64, 64, 1 << 40, i64::MIN] {
        // The answer itself is fine, and the next caller does not meet what was written.
        let answer = arena
            .send(&json!({"attack": "tail_index", "delta": delta}))
            .await;
        assert_eq!(answer.status, 200, "{delta}: {}", answer.text());
        arena.recovers("a wild index").await;
    }
    for (start, end, seed, published) in [
        (0, 0, 1, 0),
        (4096, 0, 2, 65_536),
        (4096, 0, 3, 64),
        (640, 4096, 4, 0),
        (640, 648, 5, 0),
    ] {
        let event = json!({"attack": "random_bytes", "start": start, "end": end, "seed": seed, "published": published});
        arena.send(&event).await.problem(502, "function_crashed");
    }
    arena.recovers("random bytes").await;
    arena.finish().await;
}

#[tokio::test]
async fn writing_while_the_server_reads_harms_only_the_writer() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 2000})).await;
    let resized = arena.report("resize").await;
    assert!(resized["reopen"] != "done", "{resized}");
    assert!(
        resized
            .get("truncate")
            .is_none_or(|result| result == "EPERM"),
        "{resized}"
    );
    for _ in 0..3 {
        let answer = arena.attack("keep_writing").await;
        assert!(
            [200, 502, 504].contains(&answer.status.as_u16()),
            "{}",
            answer.text()
        );
    }
    arena.finish().await;
}

#[tokio::test]
async fn an_answer_without_end_is_ended_at_the_deadline() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 1500})).await;
    for (kind, payload) in [(0x20, true), (0x20, false), (0x23, false)] {
        let event = json!({"attack": "endless_answer", "kind": kind, "payload": payload});
        // Several at once: as many as there are threads to occupy.
        let (first, second, third) =
            tokio::join!(arena.send(&event), arena.send(&event), arena.send(&event));
        for answer in [first, second, third] {
            answer.problem(504, "function_timeout");
        }
        arena.recovers("an endless answer").await;
    }
    arena.finish().await;
}

#[tokio::test]
async fn bells_that_never_stop_and_bells_that_are_full_disturb_nobody_else() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 1500})).await;
    let endless = json!({"attack": "endless_bell"});
    let (first, second) = tokio::join!(arena.send(&endless), arena.send(&endless));
    first.problem(504, "function_timeout");
    second.problem(504, "function_timeout");
    arena.recovers("an endless bell").await;
    let answer = arena.attack("full_bell").await;
    assert!(
        [200, 504].contains(&answer.status.as_u16()),
        "{}",
        answer.text()
    );
    // The answer gets through without a bell when the server is looking at the ring anyway. Then a later request of that
    // instance ends at the bell; this one ends it in any case.
    let next = arena.send(&json!({"attack": "one_frame", "kind": 0})).await;
    assert!(
        [502, 504].contains(&next.status.as_u16()),
        "{}",
        next.text()
    );
    arena.recovers("a full bell").await;
    arena.finish().await;
}

#[tokio::test]
async fn who_stops_reading_is_ended_at_the_deadline() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 1500, "max_concurrency": 1})).await;
    assert_eq!(arena.report("stop_reading").await, "stopping");
    eventually("it has stopped", super::TIMEOUT, || async {
        host::processes_of(&arena.server, "attack")
            .iter()
            .any(|process| process.field("State").starts_with('T'))
            .then_some(())
    })
    .await;
    let large = json!({"attack": "nothing", "padding": "x".repeat(1 << 20)});
    arena.send(&large).await.problem(504, "function_timeout");
    assert_eq!(arena.recovers("stopping").await, "fork");
    arena.finish().await;
}

#[tokio::test]
async fn an_http_answer_that_makes_no_sense_or_never_ends_is_cut() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 1500})).await;
    let request = |event: &Value| arena.client.request(Method::POST, "/fn/attack").json(event);
    for fields in [
        json!({"kind": 0x21, "payload": "{}"}),
        json!({"kind": 0x21, "payload": "{\"statusCode\":200,\"headers\":[[1]]}"}),
        json!({"kind": 0x21, "flags": 1, "payload": "{\"statusCode\":200,\"headers\":[]}"}),
        json!({"kind": 0x22, "payload": "x"}),
        json!({"kind": 0x20}),
    ] {
        let mut event = fields;
        event["attack"] = json!("one_frame");
        broke_the_protocol(arena.client.send(request(&event)).await, &event);
    }
    let head = r#"{"statusCode":200,"headers":[["content-length","5"],["connection","close"]]}"#;
    let event = json!({"attack": "endless_answer", "kind": 0x22, "payload": false, "head": head});
    let mut response = request(&event).send().await.expect("the head is fine");
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("content-length").is_none());
    let cut = tokio::time::timeout(super::TIMEOUT, async {
        loop {
            match response.chunk().await {
                Ok(Some(_)) => {}
                end => break end.is_err(),
            }
        }
    });
    assert!(cut.await.expect("it ends"), "and not as if it were whole");
    arena.recovers("an endless body").await;
    arena.finish().await;
}

/// What an instance leaves in its channel, whichever way and whenever, costs the instance and no caller.
#[tokio::test]
async fn what_is_left_beside_an_answer_ends_the_instance_and_fails_nobody() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 60_000, "max_concurrency": 1})).await;
    let padding = "x".repeat(100_000);
    for event in [
        json!({"attack": "two_answers"}),
        json!({"attack": "two_answers", "half": true}),
        json!({"attack": "unread", "padding": padding}),
    ] {
        let answer = arena.send(&event).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json(), "first", "{event}");
        let id = answer.header("x-hearth-invocation-id");
        let path = format!("/api/v1/invocations/{id}");
        let record = arena.client.get(&path).await.expect(200).json();
        assert!(
            record["logs"].to_string().contains("was ended"),
            "{event}: {record}"
        );
        assert_eq!(arena.recovers("a leftover").await, "fork", "{event}");
    }
    for half in [false, true] {
        let event = json!({"attack": "two_answers", "half": half, "http": true});
        let request = arena.client.request(Method::POST, "/fn/attack");
        let answer = arena.client.send(request.json(&event)).await;
        assert_eq!(answer.text(), "\"first\"");
        assert_eq!(arena.recovers("a leftover").await, "fork", "{event}");
    }
    arena.finish().await;
}

#[tokio::test]
async fn what_an_idle_instance_writes_ends_it_before_the_next_request() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 60_000, "max_concurrency": 1})).await;
    for half in [false, true] {
        let answer = arena
            .send(&json!({"attack": "answers_later", "half": half}))
            .await;
        assert_eq!(answer.json(), "first");
        eventually("it is written", super::TIMEOUT, || async {
            host::processes_of(&arena.server, "attack")
                .iter()
                .any(|process| {
                    std::fs::exists(format!("/proc/{}/root/tmp/written", process.pid))
                        .unwrap_or(false)
                })
                .then_some(())
        })
        .await;
        assert_eq!(arena.recovers("what was not asked for").await, "fork");
    }
    arena.finish().await;
}

#[tokio::test]
async fn a_result_that_is_not_json_is_an_error_and_not_an_answer() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 60_000})).await;
    for payload in [
        "",
        "{",
        "<script>alert(1)</script>",
        "{} {}",
        "nul",
        "[1,]",
        "NaN",
    ] {
        let event = json!({"attack": "one_frame", "payload": payload});
        let problem = arena.send(&event).await.problem(502, "function_error");
        assert_eq!(problem["errorType"], "Runtime.InvalidResult", "{payload}");
    }
    arena.recovers("results that are not JSON").await;
    arena.finish().await;
}
