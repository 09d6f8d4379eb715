//! Memory, in all the places where it can be taken.

use serde_json::json;

use super::Arena;

const CODE: &str = include_str!("memory.py");
const MIB: u64 = 1 << 20;

by_fork_and_restore!(
    memory_beyond_the_limit_ends_the_instance,
    CODE,
    json!({"memory_mb": 64, "max_concurrency": 1})
);

async fn memory_beyond_the_limit_ends_the_instance(arena: Arena) {
    for attack in ["heap", "shared", "in_memory_file"] {
        let answer = arena.attack(attack).await;
        let id = answer.header("x-hearth-invocation-id").to_owned();
        answer.problem(502, "function_out_of_memory");
        assert_eq!(
            arena.client.invocation(&id).await["status"],
            "out_of_memory"
        );
        arena.recovers(attack).await;
    }
    // Where groups are killed as a whole, the handler goes with its child; else it sees the child's end.
    let answer = arena.attack("in_a_child").await;
    if answer.status == 200 {
        assert!(
            [json!(-9), json!(1)].contains(&answer.json()),
            "{}",
            answer.text()
        );
    } else {
        answer.problem(502, "function_out_of_memory");
    }
    arena.recovers("a child that took too much").await;
    assert_eq!(arena.report("promise").await, 1_u64 << 33);
    arena.finish().await;
}

by_fork_and_restore!(
    file_systems_in_memory_fill_up_and_no_further,
    CODE,
    json!({"memory_mb": 128, "max_concurrency": 1})
);

async fn file_systems_in_memory_fill_up_and_no_further(arena: Arena) {
    for (directory, most) in [("/tmp", 64 * MIB), ("/dev/shm", 32 * MIB)] {
        let filled = arena
            .send(&json!({"attack": "fill", "directory": directory}))
            .await
            .expect(200)
            .json();
        assert_eq!(filled["refused"], "ENOSPC", "{directory}: {filled}");
        assert!(
            filled["written"].as_u64() <= Some(most),
            "{directory}: {filled}"
        );
        let files = arena
            .send(&json!({"attack": "inodes", "directory": directory}))
            .await
            .expect(200)
            .json();
        assert_eq!(files["refused"], "ENOSPC", "{directory}: {files}");
    }
    assert_eq!(arena.report("one_large_file").await, "EFBIG");
    assert_eq!(arena.recovers("full file systems").await, "warm");
    arena.finish().await;
}
