//! Limits of the sandbox as a whole.

use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn tmp_is_full_when_it_is_full() {
    let harness = Harness::new(
        "import os
def fill(path):
    try:
        with open(path, 'wb', buffering=0) as f:
            for i in range(4096): f.write(bytes(1 << 20))
    except OSError as e: return e.errno, os.path.getsize(path) >> 20
say(*fill('/tmp/a')); os.unlink('/tmp/a'); say(*fill('/dev/shm/a'))",
    );
    let sandbox = harness.create().await;
    // ENOSPC at a half and a quarter of the 64 MiB.
    assert_eq!(sandbox.receive().await, json!([28, 32]));
    assert_eq!(sandbox.receive().await, json!([28, 16]));
    harness.end(sandbox).await;
}

#[tokio::test]
async fn a_fork_bomb_stops_at_the_limit() {
    let harness = Harness::new(
        "import os, time
made = 0
try:
    while True:
        if os.fork() == 0: time.sleep(600); os._exit(0)
        made += 1
except OSError as e: say(made, e.errno)",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.receive().await;
    assert_eq!(answer[1], 11, "EAGAIN");
    // 32 for the template and 64 for each of two instances, PID 1 and the template among them; on v2 the bomb is in
    // the template's leaf, which has no limit of its own.
    let made = answer[0].as_i64().expect("a number");
    assert!((150..160).contains(&made), "{made}");
    // While this one is full, another is made and answers.
    let other = Harness::new("say('well')\nimport time; time.sleep(600)");
    let second = other.create().await;
    assert_eq!(second.receive().await[0], "well");
    other.end(second).await;
    harness.end(sandbox).await;
}
