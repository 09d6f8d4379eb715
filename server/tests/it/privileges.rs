//! The two processes of a server: which rights each has, and that neither outlives the other.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{Server, descendants, eventually, is_alive};

/// Longest wait for something that takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(30);
const ECHO: &str = "def handler(event, context):\n    return event\n";

/// A field of a process's status.
fn field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn the_server_has_no_privilege_and_the_host_process_no_more_than_it_needs() {
    let server = Server::start();
    let pid = server.serve_pid();
    let uid = field(pid, "Uid:");
    let first = uid.split_whitespace().next().expect("a uid");
    assert_ne!(first, "0");
    assert!(uid.split_whitespace().all(|other| other == first), "{uid}");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(pid, set), "0000000000000000", "{set}");
    }
    assert_eq!(field(pid, "Groups:"), "");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    for task in tasks.flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("a thread");
        for line in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n"] {
            assert!(status.contains(line), "{line}: {status}");
        }
    }
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let capability = &node["capabilities"]["privilege_separation"];
    assert_eq!(capability["available"], true, "{capability}");
    assert_eq!(capability["version"], format!("uid {first}"));
    // What is root's of the data directory stays so, the rest is the server's.
    use std::os::unix::fs::MetadataExt as _;
    let owner = |name: &str| {
        let path = server.data_dir().join(name);
        std::fs::metadata(path).expect(name).uid().to_string()
    };
    for name in ["", "run", "images", "lock"] {
        assert_eq!(owner(name), "0", "{name}");
    }
    for name in ["hearth.db", "code", "manifests"] {
        assert_eq!(owner(name), first, "{name}");
    }
    // The host process: small, and one that parses nothing.
    let kib: u64 = field(server.pid(), "VmRSS:")
        .split_whitespace()
        .next()
        .and_then(|kib| kib.parse().ok())
        .expect("a figure");
    assert!(kib > 0);
}

#[tokio::test]
async fn when_one_process_is_killed_everything_ends() {
    for kills_the_host in [true, false] {
        let mut server = Server::start();
        let client = server.client();
        client.deploy("echo", ECHO, json!({})).await;
        client.invoke("echo", &json!(1)).await.expect(200);
        let (host, serve) = (server.pid(), server.serve_pid());
        let sandboxes = descendants(host);
        assert!(sandboxes.len() > 1, "{sandboxes:?}");
        let victim = if kills_the_host { host } else { serve };
        let victim = Pid::from_raw(victim.cast_signed()).expect("a pid");
        kill_process(victim, Signal::KILL).expect("killed");
        let status = server.wait();
        assert!(!status.success());
        eventually("everything ends", TIMEOUT, || async {
            let lives = sandboxes.iter().any(|process| is_alive(process.pid));
            (!lives && !is_alive(serve)).then_some(())
        })
        .await;
        if !kills_the_host {
            // It had the time to tidy up.
            let left = std::fs::read_dir(server.data_dir().join("run")).expect("run");
            assert_eq!(left.count(), 0);
        }
    }
}

#[test]
fn the_server_is_not_started_by_hand() {
    let output = Command::new(env!("CARGO_BIN_EXE_hearth"))
        .arg("serve")
        .output()
        .expect("started");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "hearth: `hearth serve` is started by `hearth`, not by hand\n"
    );
}
