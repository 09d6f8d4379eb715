//! System calls that lead out of the sandbox, or that would let a function become somebody else.

use serde_json::json;

use super::Arena;

const CODE: &str = include_str!("kernel.py");

by_fork_and_restore!(dangerous_system_calls_are_refused, CODE, json!({}));

async fn dangerous_system_calls_are_refused(arena: Arena) {
    let calls = arena.report("calls").await;
    let calls = calls.as_object().expect("an object");
    assert!(calls.len() > 60, "{calls:?}");
    for (call, result) in calls {
        // These have fall-backs in C libraries, which look for this error.
        let absent = ["clone3", "io_uring_setup", "memfd_secret"].contains(&call.as_str());
        assert_eq!(result, if absent { "ENOSYS" } else { "EPERM" }, "{call}");
    }
    for (namespace, result) in arena
        .report("namespaces")
        .await
        .as_object()
        .expect("an object")
    {
        assert_eq!(result, "EPERM", "clone into a new {namespace} namespace");
    }
    for (option, result) in arena.report("prctls").await.as_object().expect("an object") {
        assert_eq!(result, "EPERM", "prctl {option}");
    }
    for (limit, result) in arena.report("limits").await.as_object().expect("an object") {
        assert!(
            [
                "PermissionError",
                "EPERM",
                "EACCES",
                "ValueError",
                "OverflowError"
            ]
            .contains(&result.as_str().unwrap_or_default()),
            "{limit}: {result}"
        );
    }
    assert_eq!(arena.recovers("hiding from /proc").await, "warm");
    arena.finish().await;
}

by_fork_and_restore!(
    another_architectures_system_calls_end_the_process,
    CODE,
    json!({})
);

async fn another_architectures_system_calls_end_the_process(arena: Arena) {
    assert_eq!(arena.report("x32_abi").await, "EPERM");
    let problem = arena
        .attack("other_abi")
        .await
        .problem(502, "function_crashed");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|text| text.contains("SIG")),
        "{problem}"
    );
    arena
        .recovers("a system call of another architecture")
        .await;

    let problem = arena
        .attack("dump_core")
        .await
        .problem(502, "function_crashed");
    assert!(
        problem["detail"].to_string().contains("SIGABRT"),
        "{problem}"
    );
    // 1 and not 0: the value by which the kernel does not even start a program that collects cores.
    assert_eq!(arena.report("cores").await, json!([1]));
    arena.finish().await;
}
