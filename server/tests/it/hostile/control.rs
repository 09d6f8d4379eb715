//! The template's control socket, and the socket on which an instance says READY: user code runs in both processes.

use serde_json::json;

use super::Arena;

const CODE: &str = include_str!("control.py");
const IMPORT: &str = include_str!("control_import.py");

#[tokio::test]
async fn lies_on_the_control_socket_hurt_only_their_function() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 5000, "max_concurrency": 2})).await;
    let answer = arena.report("ready_socket").await;
    assert!(
        answer["last"] != "done",
        "a socket that nobody reads is full some day: {answer}"
    );
    assert_eq!(arena.report("lies").await, true);
    arena.recovers("lies").await;
    assert!(arena.report("garbage").await.as_u64() > Some(0));
    arena.recovers("garbage").await;
    arena.finish().await;
}

#[tokio::test]
async fn stolen_commands_end_in_a_new_template() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 5000, "max_concurrency": 2})).await;
    assert_eq!(arena.report("steal").await, "stealing");
    // The thief is idle and serves; who needs a second instance waits for a fork that was stolen.
    arena.recovers("stealing").await;
    arena.finish().await;
}

#[tokio::test]
async fn an_import_that_speaks_for_the_template_is_refused() {
    let arena = Arena::without_attacker().await;
    for attack in ["garbage", "huge", "closed"] {
        let problem = arena
            .client
            .try_deploy("attack", IMPORT, json!({"env": {"ATTACK": attack}}))
            .await
            .problem(422, "import_failed");
        assert!(
            problem["errorType"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("Runtime.")),
            "{problem}"
        );
    }
    arena.finish().await;
}

#[tokio::test]
async fn a_template_that_forks_nothing_but_lies_serves_nobody() {
    let arena = Arena::without_attacker().await;
    for attack in ["false_ready", "foreign_ready"] {
        let settings = json!({"env": {"ATTACK": attack}, "max_concurrency": 1, "timeout_ms": 2000});
        arena.client.deploy("attack", IMPORT, settings).await;
        let answer = arena.attack("nothing").await;
        assert!(
            [502, 503, 504].contains(&answer.status.as_u16()),
            "{attack}: {}",
            answer.text()
        );
        arena
            .client
            .delete("/api/v1/functions/attack")
            .await
            .expect(204);
    }
    arena.finish().await;
}
