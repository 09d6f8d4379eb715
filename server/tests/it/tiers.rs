//! The policy of the start tiers: what is started for a burst, what is kept under a memory budget, what is made ready ahead.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Server, eventually};

const SHORT: &str = "def handler(event, context):\n    return event\n";
const SLOW: &str =
    "import time\ndef handler(event, context):\n    time.sleep(event)\n    return event\n";
/// For what the server does in its own time; it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn function(client: &Client, name: &str) -> Value {
    let path = format!("/api/v1/functions/{name}");
    client.get(&path).await.expect(200).json()
}

async fn decided(client: &Client, name: &str, decision: &str) -> u64 {
    function(client, name).await["decisions"][decision]
        .as_u64()
        .unwrap_or_else(|| panic!("{decision} is counted"))
}

/// Waits until a function has nothing in memory.
async fn falls_asleep(client: &Client, name: &str) {
    eventually("it falls asleep", TIMEOUT, || async {
        let function = function(client, name).await;
        (function["state"] == "asleep" && function["template"] == false).then_some(())
    })
    .await;
}

/// Waits until a function has no instances.
async fn cools_down(client: &Client, name: &str) {
    eventually("its instances end", TIMEOUT, || async {
        let instances = function(client, name).await["instances"].clone();
        (instances == json!({"idle": 0, "busy": 0, "starting": 0})).then_some(())
    })
    .await;
}

/// Invokes a function this many times at once; every call is served.
async fn burst(client: &Client, name: &'static str, calls: usize, event: Value) {
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let (client, event) = (client.clone(), event.clone());
            tokio::spawn(async move { client.invoke(name, &event).await.expect(200).json() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), event);
    }
}

#[tokio::test]
async fn a_burst_of_short_calls_starts_few_instances() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"max_concurrency": 100, "idle_timeout_s": 1});
    client.deploy("short", SHORT, settings).await;
    for _ in 0..30 {
        client.invoke("short", &json!(1)).await.expect(200);
    }
    let mut fewest = u64::MAX;
    // A machine that stands still for a moment makes calls look long: not every burst need be a good one.
    for _ in 0..3 {
        cools_down(&client, "short").await;
        let before = decided(&client, "short", "forked").await;
        burst(&client, "short", 100, json!(1)).await;
        eventually("every start ends", TIMEOUT, || async {
            let instances = function(&client, "short").await["instances"].clone();
            (instances["starting"] == 0).then_some(())
        })
        .await;
        fewest = fewest.min(decided(&client, "short", "forked").await - before);
    }
    assert!((1..=50).contains(&fewest), "{fewest} starts");
}

#[tokio::test]
async fn a_burst_of_long_calls_starts_an_instance_for_each() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"max_concurrency": 24, "idle_timeout_s": 1});
    client.deploy("long", SLOW, settings).await;
    // What is known of it says that it is short.
    for _ in 0..30 {
        client.invoke("long", &json!(0)).await.expect(200);
    }
    let burst = burst(&client, "long", 24, json!(3));
    let busy = eventually("all are served at once", TIMEOUT, || async {
        let instances = function(&client, "long").await["instances"].clone();
        (instances["busy"] == 24).then_some(instances)
    });
    let (_, busy) = tokio::join!(burst, busy);
    assert_eq!(busy["starting"], 0);
}

/// What an instance writes before it has a cgroup of its own stays charged to its template's.
#[tokio::test]
async fn many_instances_of_a_small_function_have_room() {
    const MANY: usize = 400;
    let server = Server::start();
    let client = server.client();
    let settings = json!({"max_concurrency": MANY, "memory_mb": 32});
    client.deploy("small", SLOW, settings).await;
    // Long enough that they live side by side. Each caller expects a 200.
    burst(&client, "small", MANY, json!(8)).await;
}

#[tokio::test]
async fn a_short_call_waits_for_the_busy_instance() {
    let server = Server::start();
    let client = server.client();
    client.deploy("short", SHORT, json!({})).await;
    for _ in 0..30 {
        client.invoke("short", &json!(1)).await.expect(200);
    }
    // Sooner or later two of them meet, and one waits.
    for _ in 0..100 {
        burst(&client, "short", 16, json!(1)).await;
        if decided(&client, "short", "queued_behind_busy").await > 0 {
            return;
        }
    }
    panic!("every call met an idle instance or a start");
}

#[tokio::test]
async fn a_tiny_budget_keeps_nothing_that_is_not_used_and_everything_serves_again() {
    let server = Server::start_with(&[("HEARTH_MEMORY_BUDGET_MB", "1")]);
    let client = server.client();
    for name in ["one", "two"] {
        client.deploy(name, SHORT, json!({})).await;
    }
    client
        .deploy("warm", SHORT, json!({"keep_warm": true}))
        .await;
    client
        .deploy("minimum", SHORT, json!({"min_instances": 1}))
        .await;
    for round in 1..=2 {
        for name in ["one", "two"] {
            falls_asleep(&client, name).await;
        }
        for name in ["one", "two"] {
            let answer = client.invoke(name, &json!(round)).await.expect(200);
            assert_eq!(answer.json(), json!(round));
            assert_eq!(answer.header("x-hearth-start"), "boot");
        }
    }
    for name in ["one", "two"] {
        falls_asleep(&client, name).await;
        assert!(decided(&client, name, "template_evicted").await >= 2);
        assert!(decided(&client, name, "evicted_memory").await >= 1);
        assert!(decided(&client, name, "booted").await >= 2);
    }
    for name in ["warm", "minimum"] {
        let function = function(&client, name).await;
        assert_eq!(function["state"], "ready", "{function}");
        assert_eq!(function["instances"]["idle"], 1, "{function}");
        assert_eq!(function["decisions"]["evicted_memory"], 0, "{function}");
        assert_eq!(function["decisions"]["started_for_minimum"], 1);
        let answer = client.invoke(name, &json!(1)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "warm");
    }
    let node = client.get("/api/v1/node").await.expect(200).json();
    assert_eq!(node["memory_budget_bytes"], 1 << 20);
    assert!(node["memory_kept_bytes"].as_u64().unwrap() > 0, "{node}");
}

#[tokio::test]
async fn a_template_that_nobody_needs_for_long_falls_asleep() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"idle_timeout_s": 1, "template_idle_timeout_s": 2});
    client.deploy("rare", SHORT, settings).await;
    let settings = json!({"idle_timeout_s": 1, "template_idle_timeout_s": 2, "keep_warm": true});
    client.deploy("kept", SHORT, settings).await;
    let settings = json!({"idle_timeout_s": 1, "template_idle_timeout_s": 0});
    client.deploy("never", SHORT, settings).await;
    for name in ["rare", "kept", "never"] {
        client.invoke(name, &json!(1)).await.expect(200);
    }
    falls_asleep(&client, "rare").await;
    assert_eq!(decided(&client, "rare", "template_expired").await, 1);
    assert_eq!(decided(&client, "rare", "expired_idle").await, 1);
    let kept = function(&client, "kept").await;
    assert_eq!(kept["state"], "ready");
    assert_eq!(kept["instances"]["idle"], 1, "{kept}");
    assert_eq!(function(&client, "never").await["state"], "ready");
    client.invoke("rare", &json!(1)).await.expect(200);
    assert_eq!(function(&client, "rare").await["state"], "ready");
}

#[tokio::test]
async fn an_instance_is_ready_for_a_periodic_caller() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("clock", SHORT, json!({"idle_timeout_s": 1}))
        .await;
    let mut period = tokio::time::interval(Duration::from_secs(4));
    // Four calls make a rhythm; a loaded machine may need more to keep one.
    for _ in 0..15 {
        period.tick().await;
        let answer = client.invoke("clock", &json!(1)).await.expect(200);
        if decided(&client, "clock", "ahead_hit").await > 0 {
            assert_eq!(answer.header("x-hearth-start"), "warm");
            break;
        }
    }
    assert!(decided(&client, "clock", "started_ahead").await >= 1);
    // Nobody calls any more: it waits in vain, twice at most, and is let go.
    eventually("it gives up", TIMEOUT, || async {
        (decided(&client, "clock", "ahead_missed").await >= 1).then_some(())
    })
    .await;
    cools_down(&client, "clock").await;
}

#[tokio::test]
async fn the_starts_of_many_functions_take_turns_and_none_is_lost() {
    let server = Server::start();
    let client = server.client();
    let names = ["alpha", "beta", "gamma"];
    for name in names {
        let settings = json!({"max_concurrency": 12, "idle_timeout_s": 1});
        client.deploy(name, SLOW, settings).await;
    }
    let calls = names.map(|name| burst(&client, name, 12, json!(0.3)));
    futures_util::future::join_all(calls).await;
    let mut deferred = 0;
    for name in names {
        let counts = function(&client, name).await["decisions"].clone();
        let of = |decision: &str| counts[decision].as_u64().unwrap();
        let begun = of("started_for_request");
        assert!(begun >= 1);
        eventually("every start ends", TIMEOUT, || async {
            let counts = function(&client, name).await["decisions"].clone();
            let of = |decision: &str| counts[decision].as_u64().unwrap();
            let ended = of("forked") + of("booted") + of("start_withdrawn") + of("start_failed");
            (ended == of("started_for_request")).then_some(())
        })
        .await;
        deferred += of("start_deferred_by_cores");
    }
    assert!(deferred > 0, "36 starts do not fit the cores at once");
}

#[tokio::test]
async fn decisions_outlive_a_version_and_are_shown_everywhere() {
    let server = Server::start();
    let client = server.client();
    client.deploy("shown", SHORT, json!({})).await;
    client.invoke("shown", &json!(1)).await.expect(200);
    let settings = json!({"keep_warm": true, "template_idle_timeout_s": 7200});
    let changed = client
        .patch("/api/v1/functions/shown", &settings)
        .await
        .expect(200)
        .json();
    assert_eq!(changed["active_version"], 2);
    assert_eq!(changed["keep_warm"], true);
    assert_eq!(changed["template_idle_timeout_s"], 7200);
    eventually("the instance is there", TIMEOUT, || async {
        (decided(&client, "shown", "forked").await == 2).then_some(())
    })
    .await;
    assert_eq!(decided(&client, "shown", "started_for_request").await, 1);
    assert_eq!(decided(&client, "shown", "started_for_minimum").await, 1);
    let metrics = client.get("/metrics").await.expect(200).text();
    let line =
        "hearth_scheduler_decisions_total{function=\"shown\",decision=\"started_for_minimum\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("hearth_memory_budget_bytes "), "{metrics}");
    let server = server.restart();
    let function = function(&server.client(), "shown").await;
    assert_eq!(function["keep_warm"], true, "it is stored");
    assert_eq!(function["template_idle_timeout_s"], 7200);
}

/// Instances that are at work at a time are few while a function is short. When its calls are long all of a sudden, and
/// cannot end before all of them run, all instances there are must be put to work.
#[tokio::test]
async fn a_function_that_was_short_gets_all_its_instances_when_its_calls_turn_long() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let all = 2 * cores + 3;
    let server = Server::start();
    let client = server.client();
    // /tmp is common to the instances of a version.
    let code = "import os, time, uuid\n\
        def handler(event, context):\n\
        \x20   if event:\n\
        \x20       open(f'/tmp/here-{uuid.uuid4()}', 'x').close()\n\
        \x20   while len([name for name in os.listdir('/tmp') if name.startswith('here-')]) < event:\n\
        \x20       time.sleep(0.01)\n\
        \x20   return event\n";
    let settings = json!({"min_instances": all, "max_concurrency": all, "timeout_ms": 20_000});
    client.deploy("meets", code, settings).await;
    eventually("its instances are up", TIMEOUT, || async {
        let idle = function(&client, "meets").await["instances"]["idle"].as_u64();
        (idle == Some(all as u64)).then_some(())
    })
    .await;
    for _ in 0..10 {
        burst(&client, "meets", 2 * all, json!(0)).await;
    }
    burst(&client, "meets", all, json!(all)).await;
}
