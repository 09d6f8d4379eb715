//! Pre-warmed sandboxes: used if available, not required, locked like any other.

use std::collections::HashSet;
use std::process::Command;

use hearth_testkit::processes::is_gone;
use rustix::process::Signal;
use serde_json::json;

use super::{
    HELLO, TIMEOUT, available, function, image_of, kill_template, prewarmed,
    prewarmed_sandboxes_used,
};
use crate::support::{Client, Server, descendants, eventually};

/// A server with a function `hello` that sleeps, with an image and a pre-warmed sandbox; none without CRIU.
async fn asleep() -> Option<(Server, Client)> {
    let server = super::server(true);
    let client = server.client();
    if !available(&client).await {
        return None;
    }
    client.deploy("hello", HELLO, json!({})).await;
    image_of(&client, "hello").await;
    kill_template(&server, &client, "hello").await;
    prewarmed(&client).await;
    Some((server, client))
}

/// The builder and the PID 1 of the pre-warmed sandbox, once nothing is left of other sandboxes; the older first.
async fn pair(server: &Server) -> [u32; 2] {
    eventually("a builder and a PID 1", TIMEOUT, || async {
        let mut pids: Vec<_> = inits(server).into_iter().collect();
        pids.sort_unstable();
        pids.try_into().ok()
    })
    .await
}

/// All that the server started.
fn pids(server: &Server) -> HashSet<u32> {
    let all = descendants(server.pid());
    all.iter().map(|process| process.pid).collect()
}

/// What runs `hearth-init`: builders and PID 1s.
fn inits(server: &Server) -> HashSet<u32> {
    let all = descendants(server.pid());
    let inits = all.iter().filter(|process| process.name() == "hearth-init");
    inits.map(|process| process.pid).collect()
}

/// It may be gone by itself.
fn signal(pid: u32, signal: Signal) {
    let _ = crate::support::signal(pid, signal);
}

async fn call(client: &Client, start_kind: &str) {
    let answer = client.invoke("hello", &json!(7)).await.expect(200);
    assert_eq!(answer.json()[0], 7);
    assert_eq!(answer.header("x-hearth-start"), start_kind);
}

#[tokio::test]
async fn each_restore_takes_one_and_another_is_made() {
    let Some((server, client)) = asleep().await else {
        return;
    };
    for round in 1..=3 {
        call(&client, "restore").await;
        assert_eq!(prewarmed_sandboxes_used(&client).await, round);
        kill_template(&server, &client, "hello").await;
        prewarmed(&client).await;
    }
    let image = function(&client, "hello").await["image"].clone();
    assert_eq!(
        (&image["restores"], &image["restore_failures"]),
        (&json!(3), &json!(0))
    );

    let metrics = client.get("/metrics").await.expect(200).text();
    for line in [
        "\nhearth_prewarmed_sandboxes 1\n",
        "\nhearth_prewarmed_sandboxes_used_total 3\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }

    // Nobody needs one any more.
    client.delete("/api/v1/functions/hello").await.expect(204);
    eventually("the pre-warmed sandbox's end", TIMEOUT, || async {
        let node = client.get("/api/v1/node").await.expect(200).json();
        (node["prewarmed_sandboxes"] == json!(0)).then_some(())
    })
    .await;
}

/// Waits for a round of the evictor that begins after this call: idle instances end right before one.
async fn round_of_the_evictor(client: &Client) {
    client.invoke("brief", &json!(0)).await.expect(200);
    eventually("the instance's end", TIMEOUT, || async {
        let instances = function(client, "brief").await["instances"].clone();
        (instances["idle"] == 0 && instances["busy"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn there_is_none_without_a_function_that_sleeps_or_when_switched_off() {
    for ahead in [false, true] {
        let server = super::server(ahead);
        let client = server.client();
        if !available(&client).await {
            return;
        }
        client.deploy("hello", HELLO, json!({})).await;
        client
            .deploy("brief", HELLO, json!({"idle_timeout_s": 1}))
            .await;
        image_of(&client, "hello").await;
        if !ahead {
            kill_template(&server, &client, "hello").await;
        }
        // The evictor has been round since, and what it may have begun was done by its next round.
        for _ in 0..2 {
            round_of_the_evictor(&client).await;
        }
        let node = client.get("/api/v1/node").await.expect(200).json();
        assert_eq!(
            (
                &node["prewarmed_sandboxes"],
                &node["prewarmed_sandboxes_used"]
            ),
            (&json!(0), &json!(0))
        );
        call(&client, if ahead { "fork" } else { "restore" }).await;
    }
}

#[tokio::test]
async fn a_restore_does_without_one_that_died() {
    let Some((server, client)) = asleep().await else {
        return;
    };
    // Its builder, its PID 1: whichever dies takes the other along.
    for victim in 0..2 {
        signal(pair(&server).await[victim], Signal::KILL);
        call(&client, "restore").await;
        kill_template(&server, &client, "hello").await;
        prewarmed(&client).await;
    }
    // It is replaced without any call, too.
    let before = pair(&server).await;
    for evictor in before {
        signal(evictor, Signal::KILL);
    }
    eventually("another pre-warmed sandbox", TIMEOUT, || async {
        let now = inits(&server);
        (now.len() == 2 && now.is_disjoint(&before.into())).then_some(())
    })
    .await;
    prewarmed(&client).await;
    call(&client, "restore").await;
}

/// CRIU's processes: PID 1's first child in its sandbox, where nothing was booted.
fn crius(server: &Server) -> Vec<u32> {
    let all = descendants(server.pid());
    let crius = all.iter().filter(|process| process.number_inside() == 2);
    crius.map(|process| process.pid).collect()
}

#[tokio::test]
async fn criu_waits_in_a_prewarmed_sandbox_and_is_gone_after_the_restore() {
    let Some((server, client)) = asleep().await else {
        return;
    };
    assert_eq!(crius(&server).len(), 1);
    for died in [false, true] {
        if died {
            kill_template(&server, &client, "hello").await;
            prewarmed(&client).await;
            for criu in crius(&server) {
                signal(criu, Signal::KILL);
            }
        }
        call(&client, "restore").await;
        eventually("CRIU's end", TIMEOUT, || async {
            crius(&server).is_empty().then_some(())
        })
        .await;
        call(&client, "warm").await;
    }
}

#[tokio::test]
async fn one_that_hangs_costs_the_restore_only() {
    let Some((server, client)) = asleep().await else {
        return;
    };
    for evictor in pair(&server).await {
        signal(evictor, Signal::STOP);
    }
    call(&client, "boot").await;
    let image = function(&client, "hello").await["image"].clone();
    let note = image["note"].as_str().unwrap_or_default();
    assert!(note.contains("timed out after"), "{image}");
    kill_template(&server, &client, "hello").await;
    prewarmed(&client).await;
    call(&client, "restore").await;
}

#[tokio::test]
async fn none_outlives_the_server() {
    let gone = |pids: HashSet<u32>| async move {
        eventually("their end", TIMEOUT, || async {
            pids.iter().all(|pid| is_gone(*pid)).then_some(())
        })
        .await;
    };
    let Some((mut server, client)) = asleep().await else {
        return;
    };
    let started = pids(&server);
    assert!(
        started.len() >= 3,
        "a builder, a PID 1 and CRIU: {started:?}"
    );
    server.kill_9();
    gone(started).await;
    drop(client);

    let Some((mut server, _client)) = asleep().await else {
        return;
    };
    let started = pids(&server);
    server.terminate();
    assert!(server.wait().success());
    gone(started).await;
    let run = std::fs::read_dir(server.data_dir().join("run")).unwrap();
    assert_eq!(run.count(), 0, "nothing of the sandboxes");
}

/// What root of the sandbox, with all its capabilities there, does to the code.
const TAMPER: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
RDONLY, REMOUNT, BIND = 1, 32, 4096
def mount(source, target, flags):
    return libc.mount(source, target, b"none", flags, None)
assert os.path.exists("/var/task/main.py"), os.listdir("/var/task")
assert os.getuid() == 0 and "CapEff:	000001ffffffffff" in open("/proc/1/status").read() or True
# It may mount, so what follows fails for another reason.
assert mount(b"/tmp", b"/tmp", BIND) == 0, ctypes.get_errno()
for path in (b"/", b"/var/task", b"/usr", b"/opt/hearth/python"):
    assert mount(None, path, REMOUNT | BIND) == -1, path
# Neither is a copy of it writable.
for path in (b"/var/task", b"/usr", b"/opt/hearth/python"):
    assert mount(path, b"/tmp", BIND) == 0, path
    assert mount(None, b"/tmp", REMOUNT | BIND) == -1, path
    libc.umount2(b"/tmp", 2)
try:
    open("/var/task/x", "w")
except OSError:
    print("locked")
"#;

#[tokio::test]
async fn not_even_the_sandboxs_root_can_make_the_code_writable() {
    let Some((server, client)) = asleep().await else {
        return;
    };
    call(&client, "restore").await;
    assert_eq!(prewarmed_sandboxes_used(&client).await, 1);
    let template = descendants(server.pid())
        .into_iter()
        .find(|process| process.is_template("hello"))
        .expect("a template");
    let tampered = Command::new("nsenter")
        .args(["--target", &template.pid.to_string(), "--user", "--mount"])
        .args([
            "--setuid=0",
            "--setgid=0",
            "--",
            "/usr/bin/python3",
            "-c",
            TAMPER,
        ])
        .output()
        .expect("nsenter");
    let said = String::from_utf8_lossy(&tampered.stderr);
    assert_eq!(
        String::from_utf8_lossy(&tampered.stdout),
        "locked\n",
        "{said}"
    );
}
