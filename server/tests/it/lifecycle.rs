//! The server's own life: start, restart, power loss, drain; and functions through their versions.

use std::collections::HashSet;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::CapabilitySet;
use serde_json::json;

use crate::support::{Server, command, descendants, eventually, is_alive, signal};

#[tokio::test]
async fn what_was_deployed_serves_again_after_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(&dir.path().join("data"));
    let client = server.client();
    client
        .deploy(
            "kept",
            "def handler(event, context):\n    return ['v1', event]\n",
            json!({"env": {"A": "b"}}),
        )
        .await;
    client.put("/api/v1/functions/kept/code", &json!({"code": {"inline": "import os\ndef handler(event, context):\n    return ['v2', os.environ['A']]\n"}})).await.expect(200);
    client.invoke("kept", &json!(1)).await.expect(200);
    let processes = descendants(server.pid());
    assert!(!processes.is_empty(), "a sandbox is up");
    server.kill_9();
    eventually(
        "every process of the sandboxes ends with the server",
        Duration::from_secs(5),
        || async {
            processes
                .iter()
                .all(|process| !is_alive(process.pid))
                .then_some(())
        },
    )
    .await;

    let server = server.restart();
    let client = server.client();
    assert_eq!(
        client.invoke("kept", &json!(1)).await.expect(200).json(),
        json!(["v2", "b"])
    );
    let function = client
        .get("/api/v1/functions/kept")
        .await
        .expect(200)
        .json();
    assert_eq!(function["active_version"], 2);
    eventually(
        "the server says that it is ready",
        Duration::from_secs(20),
        || async { (client.get("/readyz").await.status == 200).then_some(()) },
    )
    .await;
}

#[tokio::test]
async fn a_network_that_this_node_cannot_give_is_refused_and_nothing_changes() {
    // What this thread starts cannot have it, whoever it is.
    rustix::thread::remove_capability_from_bounding_set(CapabilitySet::NET_ADMIN)
        .expect("given up");
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return 1\n";
    let outbound = json!({"network": "outbound"});
    let refused = client.try_deploy("far", code, outbound.clone()).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "network", "{problem}");
    let node = client.get("/api/v1/node").await.expect(200).json();
    let reason = node["capabilities"]["network_outbound"]["reason"]
        .as_str()
        .unwrap();
    assert!(
        problem["detail"].as_str().unwrap().contains(reason),
        "{problem}"
    );
    client.deploy("far", code, json!({})).await;
    let refused = client.patch("/api/v1/functions/far", &outbound).await;
    refused.problem(422, "invalid_field");
    let function = client.get("/api/v1/functions/far").await.expect(200).json();
    assert_eq!(
        (&function["network"], &function["active_version"]),
        (&json!("none"), &json!(1))
    );
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start();
    let output = command(server.data_dir())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("another server is using it"), "{said}");
}

#[tokio::test]
async fn settings_that_make_no_sense_stop_the_server_with_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy_address = busy.local_addr().unwrap().to_string();
    for (name, value, expected) in [
        ("HEARTH_LISTEN", "nowhere", "nowhere"),
        (
            "HEARTH_LISTEN",
            busy_address.as_str(),
            busy_address.as_str(),
        ),
        (
            "HEARTH_DATA_DIR",
            file.to_str().unwrap(),
            "must be a directory",
        ),
        ("HEARTH_ADMIN_TOKEN", "short", "at least 16"),
        ("HEARTH_LOG", "a=b=c", "tracing filter"),
        ("HEARTH_PYTHON", "/opt/python", "below /usr"),
        (
            "HEARTH_XDP_INTERFACE",
            "not/one",
            "names of network interfaces",
        ),
        ("HEARTH_XDP_INTERFACE", "hearth-none", "no interface"),
    ] {
        let output = command(&dir.path().join("data"))
            .env(name, value)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(!output.status.success(), "{name}={value}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(expected), "{name}={value}: {said}");
    }
}

#[tokio::test]
async fn sigterm_lets_running_requests_finish_and_refuses_new_ones() {
    let mut server = Server::start();
    let client = server.client();
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(1.5)\n    return 'finished'\n";
    client.deploy("slow", code, json!({})).await;
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.invoke("slow", &json!(0)).await }
    });
    eventually("the call runs", Duration::from_secs(5), || async {
        let function = client.get("/api/v1/functions/slow").await.json();
        (function["instances"]["busy"] == 1).then_some(())
    })
    .await;
    let processes = descendants(server.pid());
    server.terminate();
    assert_eq!(running.await.unwrap().expect(200).json(), "finished");
    assert!(server.wait().success(), "a drained server exits with 0");
    assert!(
        processes.iter().all(|process| !is_alive(process.pid)),
        "nothing outlives the server"
    );
}

#[tokio::test]
async fn versions_change_without_a_failed_request() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "moving",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (client, stop) = (client.clone(), stop.clone());
        callers.spawn(async move {
            let mut answers = HashSet::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                answers.insert(client.invoke("moving", &json!(0)).await.expect(200).text());
            }
            answers
        });
    }
    let code = json!({"code": {"inline": "def handler(event, context):\n    return 2\n"}});
    let function = client
        .put("/api/v1/functions/moving/code", &code)
        .await
        .expect(200)
        .json();
    assert_eq!(function["active_version"], 2);
    let function = client
        .post("/api/v1/functions/moving/versions/1/activate", &json!(null))
        .await
        .expect(200)
        .json();
    assert_eq!(function["active_version"], 1);
    let function = client
        .patch("/api/v1/functions/moving", &json!({"memory_mb": 256}))
        .await
        .expect(200)
        .json();
    assert_eq!(function["active_version"], 3);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let answers: HashSet<String> = callers.join_all().await.into_iter().flatten().collect();
    assert_eq!(answers, HashSet::from(["1".to_owned(), "2".to_owned()]));
    let versions = client
        .get("/api/v1/functions/moving/versions")
        .await
        .expect(200)
        .json();
    let numbers: Vec<_> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].clone())
        .collect();
    assert_eq!(numbers, [json!(3), json!(2), json!(1)]);
    client
        .post("/api/v1/functions/moving/versions/9/activate", &json!(null))
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn idle_instances_end_and_the_minimum_stays() {
    let server = Server::start();
    let client = server.client();
    let code = "import time\ndef handler(event, context):\n    time.sleep(0.2)\n";
    client
        .deploy(
            "rest",
            code,
            json!({"idle_timeout_s": 1, "min_instances": 1, "max_concurrency": 3}),
        )
        .await;
    let calls = (0..3).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.invoke("rest", &json!(0)).await.expect(200) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    eventually(
        "all but the minimum are stopped",
        Duration::from_secs(10),
        || async {
            let function = client.get("/api/v1/functions/rest").await.json();
            (function["instances"] == json!({"idle": 1, "busy": 0, "starting": 0})).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn a_deleted_function_leaves_nothing() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "gone",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    client.invoke("gone", &json!(0)).await.expect(200);
    client.delete("/api/v1/functions/gone").await.expect(204);
    client
        .invoke("gone", &json!(0))
        .await
        .problem(404, "not_found");
    client
        .delete("/api/v1/functions/gone")
        .await
        .problem(404, "not_found");
    eventually(
        "its processes and its code are gone",
        Duration::from_secs(5),
        || async {
            let code = std::fs::read_dir(server.data_dir().join("code"))
                .unwrap()
                .count();
            (code == 0 && descendants(server.pid()).is_empty()).then_some(())
        },
    )
    .await;
    client
        .deploy(
            "gone",
            "def handler(event, context):\n    return 2\n",
            json!({}),
        )
        .await;
    assert_eq!(client.invoke("gone", &json!(0)).await.expect(200).json(), 2);
    let list = client
        .get("/api/v1/functions/gone/invocations")
        .await
        .expect(200)
        .json();
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        1,
        "the namesake's history is not inherited"
    );
}

#[tokio::test]
async fn a_refused_deploy_leaves_nothing() {
    let server = Server::start();
    let client = server.client();
    for (code, error_type) in [
        ("def handler(event, context)\n    return 1\n", "SyntaxError"),
        ("import nowhere\n", "ModuleNotFoundError"),
        (
            "print('so far')\nraise RuntimeError('no')\n",
            "RuntimeError",
        ),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("import os\nos._exit(3)\n", "Runtime.ExitError"),
        ("x = 1\n", "Runtime.HandlerNotFound"),
        ("handler = 1\n", "Runtime.HandlerNotCallable"),
        ("x = bytearray(500 << 20)\n", "Runtime.OutOfMemory"),
    ] {
        let problem = client
            .try_deploy("bad", code, json!({}))
            .await
            .problem(422, "import_failed");
        assert_eq!(problem["errorType"], error_type, "{problem}");
    }
    client
        .get("/api/v1/functions/bad")
        .await
        .problem(404, "not_found");
    eventually("nothing is left", Duration::from_secs(5), || async {
        let code = std::fs::read_dir(server.data_dir().join("code"))
            .unwrap()
            .count();
        (code == 0 && descendants(server.pid()).is_empty()).then_some(())
    })
    .await;
    client
        .deploy(
            "bad",
            "def handler(event, context):\n    return 'good'\n",
            json!({}),
        )
        .await;
    let refused = client
        .try_deploy("bad", "def handler(e, c): pass", json!({}))
        .await;
    refused.problem(409, "already_exists");
    let broken = json!({"code": {"inline": "raise OSError('later')"}});
    client
        .put("/api/v1/functions/bad/code", &broken)
        .await
        .problem(422, "import_failed");
    assert_eq!(
        client.invoke("bad", &json!(0)).await.expect(200).json(),
        "good",
        "the active version answers still"
    );
}

/// Starts the server as `through` does (itself when that is empty), reads what it logs up to the first record, and stops it.
fn first_record(through: &[&str], no_color: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let server = command(dir.path());
    let program = server.get_program().to_owned();
    let mut started = match through {
        [] => server,
        [name, arguments @ ..] => {
            let mut wrapped = std::process::Command::new(name);
            let set = server.get_envs();
            wrapped.envs(set.filter_map(|(name, value)| Some((name, value?))));
            wrapped.args(arguments).stdin(Stdio::null());
            wrapped
        }
    };
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut process = started
        .env("SERVER", program)
        .env("NO_COLOR", no_color)
        .env("HEARTH_LOG", "debug")
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    // Its copies of the pipe's end would keep it open.
    drop(started);
    let mut seen = String::new();
    let mut piece = [0; 4096];
    while !["DEBUG", " INFO", " WARN"]
        .iter()
        .any(|level| seen.contains(level))
    {
        let count = reader.read(&mut piece).unwrap();
        assert!(count > 0, "it ended without a record: {seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    signal(process.id(), Signal::TERM).unwrap();
    // What else it says must not fill the pipe.
    let _ = std::io::copy(&mut reader, &mut std::io::sink());
    process.wait().unwrap();
    seen
}

#[test]
fn log_lines_are_coloured_on_a_terminal_only() {
    const ESCAPE: char = '\u{1b}';
    let on_a_terminal = ["script", "-qec", "exec \"$SERVER\"", "/dev/null"];
    let piped = first_record(&[], "");
    assert!(!piped.contains(ESCAPE), "{piped:?}");
    let coloured = first_record(&on_a_terminal, "");
    assert!(coloured.contains(ESCAPE), "{coloured:?}");
    let refused = first_record(&on_a_terminal, "1");
    assert!(!refused.contains(ESCAPE), "{refused:?}");
}
