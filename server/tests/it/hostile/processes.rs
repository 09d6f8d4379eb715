//! Processes: bombs, strays, and attacks on PID 1, the template and siblings.

use std::time::Duration;

use serde_json::json;

use super::{Arena, TIMEOUT, host};
use crate::support::eventually;

const CODE: &str = include_str!("processes.py");
/// Processes and threads of a sandbox of one instance.
const PIDS_OF_ONE: u64 = 96;

fn one_instance() -> serde_json::Value {
    json!({"timeout_ms": 1500, "max_concurrency": 1})
}

/// With memory for as many processes as there may be: a bomb of interpreters shall meet the limit of processes, and not
/// that of memory before it.
fn roomy_instance() -> serde_json::Value {
    let mut settings = one_instance();
    settings["memory_mb"] = json!(512);
    settings
}

by_fork_and_restore!(
    processes_of_the_host_are_out_of_sight_and_out_of_reach,
    CODE,
    json!({})
);

async fn processes_of_the_host_are_out_of_sight_and_out_of_reach(arena: Arena) {
    let event = json!({"attack": "visible", "host_pid": arena.server.pid()});
    // CRIU is stopped when it has restored, and taken away a moment later; a private copy runs under its loader's name.
    let seen = eventually("CRIU's end", TIMEOUT, || async {
        let seen = arena.send(&event).await.expect(200).json();
        let processes = seen["processes"].as_object().expect("an object");
        let is_criu = |name: &&str| name.starts_with("criu") || name.starts_with("ld-linux");
        let names = processes.values().filter_map(|name| name.as_str());
        let is_gone = names.filter(is_criu).count() == 0;
        is_gone.then_some(seen)
    })
    .await;
    // A pid of the host is either nobody inside, or by chance the number of somebody inside.
    assert!(
        seen["host"] == "ESRCH" || seen["host"] == "inside",
        "{seen}"
    );
    let processes = seen["processes"].as_object().expect("an object");
    assert!(processes.len() <= 4, "{seen}");
    assert_eq!(processes["1"], "hearth-init");
    for (pid, name) in processes {
        assert!(
            pid == "1" || name.as_str().is_some_and(|name| name.starts_with("python")),
            "{seen}"
        );
    }
    arena.finish().await;
}

by_fork_and_restore!(
    bombs_are_bounded_and_their_remains_are_removed,
    CODE,
    roomy_instance()
);

async fn bombs_are_bounded_and_their_remains_are_removed(arena: Arena) {
    let forks = arena.report("count_forks").await;
    assert_eq!(forks["refused"], "EAGAIN");
    assert!(forks["children"].as_u64() < Some(PIDS_OF_ONE), "{forks}");
    let threads = arena.report("thread_bomb").await;
    assert!(threads.as_u64() < Some(PIDS_OF_ONE), "{threads}");
    for bomb in ["fork_bomb", "process_bomb"] {
        arena.attack(bomb).await.problem(504, "function_timeout");
        host::without_instances(&arena.server, "attack").await;
        arena.recovers(bomb).await;
    }
    arena.finish().await;
}

by_fork_and_restore!(
    what_an_instance_leaves_behind_ends_with_it,
    CODE,
    one_instance()
);

async fn what_an_instance_leaves_behind_ends_with_it(arena: Arena) {
    let problem = arena
        .attack("daemon_and_die")
        .await
        .problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("status 7"),
        "{problem}"
    );
    host::without_instances(&arena.server, "attack").await;
    arena.recovers("a daemon").await;
    arena.finish().await;
}

#[tokio::test]
async fn processes_that_keep_changing_their_number_are_caught() {
    for early in ["", "yes"] {
        let mut settings = one_instance();
        settings["env"] = json!({"EARLY": early});
        // However long it takes until all of them have run.
        settings["timeout_ms"] = json!(20_000);
        let arena = Arena::new(CODE, settings).await;
        let answer = arena.attack("rabbits").await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        answer.problem(502, "function_crashed");
        let record = arena.client.invocation(&id).await;
        assert!(record["logs"].to_string().contains("they ran"), "{record}");
        host::without_instances(&arena.server, "attack").await;
        arena.finish().await;
    }
}

#[tokio::test]
async fn whoever_never_returns_is_ended_at_the_deadline() {
    let arena = Arena::new(CODE, one_instance()).await;
    for attack in ["ignore_everything", "burn"] {
        arena.attack(attack).await.problem(504, "function_timeout");
        host::without_instances(&arena.server, "attack").await;
        arena.recovers(attack).await;
    }
    arena.finish().await;
}

by_fork_and_restore!(pid_1_cannot_be_killed_from_inside, CODE, one_instance());

async fn pid_1_cannot_be_killed_from_inside(arena: Arena) {
    for (signal, result) in arena
        .report("kill_init")
        .await
        .as_object()
        .expect("an object")
    {
        assert_eq!(result, "EPERM", "signal {signal}");
    }
    assert_eq!(arena.recovers("signals to PID 1").await, "warm");
    arena.finish().await;
}

#[tokio::test]
async fn who_kills_the_template_or_its_siblings_hurts_only_itself() {
    let arena = Arena::new(CODE, json!({"timeout_ms": 10_000, "max_concurrency": 2})).await;
    for attack in ["kill_template", "kill_everything"] {
        arena.attack(attack).await.problem(502, "function_crashed");
        assert_eq!(arena.recovers(attack).await, "boot");
    }
    let sleeping = json!({"attack": "sleep", "seconds": 5});
    let (sibling, killer) = tokio::join!(arena.send(&sleeping), async {
        eventually("the sibling runs", Duration::from_secs(10), || async {
            let function = arena.client.get("/api/v1/functions/attack").await.json();
            (function["instances"]["busy"] == 1).then_some(())
        })
        .await;
        arena.attack("kill_siblings").await
    });
    let problem = sibling.problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("SIGKILL"),
        "{problem}"
    );
    assert_eq!(killer.expect(200).json(), "killed");
    arena.recovers("killing siblings").await;
    arena.finish().await;
}

#[tokio::test]
async fn a_template_that_was_stopped_is_replaced() {
    let arena = Arena::new(CODE, one_instance()).await;
    arena
        .attack("stop_template")
        .await
        .problem(502, "function_crashed");
    // It is replaced by a boot, which on a busy host may be over before the next request.
    let start = arena.recovers("stopping the template").await;
    assert!(["boot", "fork"].contains(&start.as_str()), "{start}");
    arena.finish().await;
}
