//! A server that is killed leaves nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hearth::sandbox::Host;

use crate::harness::{Harness, cgroups_named, names, processes_of, settings, until};

/// Variable with the directory in which [`a_server_to_be_killed`] works.
const SERVER_DIR: &str = "HEARTH_TEST_SERVER_DIR";

/// Not a test: the process that the next one kills.
#[tokio::test]
#[ignore = "started by the test that kills it"]
async fn a_server_to_be_killed() {
    let Some(dir) = std::env::var_os(SERVER_DIR) else {
        return;
    };
    let harness = Harness::in_directory(
        dir.into(),
        // The template is a session leader already.
        "import os, time\nfirst = os.getpid()\nos.fork(); os.fork()\n\
         if os.getpid() != first: os.setsid()\ntime.sleep(600)",
    );
    let _sandbox = harness.create().await;
    std::fs::write(harness.dir().join("uid"), harness.uid().to_string()).expect("write");
    tokio::time::sleep(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "killed::a_server_to_be_killed", "--ignored"])
        .env(SERVER_DIR, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the server");
    let uid = || -> Option<u32> {
        let text = std::fs::read_to_string(dir.path().join("uid")).ok()?;
        text.parse().ok()
    };
    until("its sandbox is up", || uid().is_some()).await;
    let uid = uid().expect("uid");
    until("its processes are there", || processes_of(uid).len() == 4).await;
    let prefix = format!("hearth-{}-", server.id());
    let left = |dir: &Path| names(dir).iter().any(|name| name.starts_with(&prefix));
    let run = dir.path().join("run");
    assert!(left(&run));
    assert!(!cgroups_named(|name| name.starts_with(&prefix)).is_empty());

    server.kill().expect("kill -9");
    server.wait().expect("wait");
    until("no process is left", || {
        processes_of(uid).is_empty() && processes_of(uid - 1).is_empty()
    })
    .await;

    // The next server clears its directory and its cgroups.
    let host = match Host::start(settings(dir.path()), env!("CARGO_BIN_EXE_hearth").into()) {
        Ok(host) => host,
        Err(error) => panic!("{error}"),
    };
    assert!(!left(&run));
    assert!(cgroups_named(|name| name.starts_with(&prefix)).is_empty());
    host.shutdown().await;
}
