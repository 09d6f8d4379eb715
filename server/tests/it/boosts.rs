//! An instance that starts runs before the host's other programs, for a moment and no longer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Server, called_seldom, descendants, eventually, kill};

/// Long enough for a machine where other tests run as well.
const TIMEOUT: Duration = Duration::from_secs(120);

const ECHO: &str = "def handler(event, context):\n    return event\n";
/// Computes for far longer than a boost lasts, and returns which scheduling policies it has had meanwhile, in their order. As soon as
/// it is real-time it makes itself nicer and starts a thread.
const CODE: &str = "import os, threading, time

def handler(event, context):
    policies, thread = [], []
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        policy = os.sched_getscheduler(0)
        if policies[-1:] != [policy]:
            policies.append(policy)
            if policy == os.SCHED_RR:
                os.nice(3)
                started = threading.Thread(target=lambda: thread.append(os.sched_getscheduler(0)))
                started.start()
                started.join()
    return {'policies': policies, 'thread': thread, 'nice': os.getpriority(os.PRIO_PROCESS, 0)}
";

#[tokio::test]
async fn an_instance_that_starts_is_real_time_for_a_moment() {
    let server = Server::start();
    let (serve, client) = (server.serve_pid(), server.client());
    client.deploy("echo", ECHO, json!({})).await;
    let mut attempts = (1..).map(|attempt| format!("first-{attempt}"));
    let (name, boosted) = eventually("a start is boosted", TIMEOUT, || {
        let name = attempts.next().expect("numbers do not end");
        let client = client.clone();
        async move {
            client.deploy(&name, CODE, json!({})).await;
            called_seldom(&client, "echo", serve, TIMEOUT).await;
            let answer = start(&client, &name).await;
            had(&answer, libc::SCHED_RR).then_some((name, answer))
        }
    })
    .await;
    let at = Instant::now();
    assert_eq!(boosted["thread"], json!([libc::SCHED_OTHER]), "{boosted}");
    assert_eq!(boosted["nice"], json!(3), "as nice as it wanted to be");

    for fork in descendants(server.pid()) {
        if fork.is_fork(&name) {
            kill(fork.pid).unwrap();
        }
    }
    let next = start(&client, &name).await;
    // On a machine that stood still for so long it may be boosted again.
    assert!(
        !had(&next, libc::SCHED_RR) || at.elapsed() >= Duration::from_secs(9),
        "the function's next start is not: {next}"
    );
}

/// What the function says of its start.
async fn start(client: &Client, name: &str) -> Value {
    let answer = client.invoke(name, &json!(0)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "fork");
    let said = answer.json();
    let policies = said["policies"].as_array().expect("a list");
    let ordinary = json!(libc::SCHED_OTHER);
    assert_eq!(policies.last(), Some(&ordinary), "at the end: {said}");
    said
}

/// Whether it has had this policy.
fn had(said: &Value, policy: i32) -> bool {
    let policies = said["policies"].as_array().expect("a list");
    policies.contains(&json!(policy))
}
