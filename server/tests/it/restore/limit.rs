//! How long a restore may take, and what follows one that takes longer.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::{HELLO, available, function, image_of, kill_template};
use crate::support::Server;

#[tokio::test]
async fn a_restore_that_takes_too_long_falls_to_a_boot() {
    let dir = tempfile::tempdir().unwrap();
    let program = stuck_criu(dir.path()).unwrap_or_default();
    let server = Server::start_with(&[
        ("HEARTH_CRIU", program.to_str().unwrap()),
        ("HEARTH_RESTORE_TIMEOUT_MS", "1"),
    ]);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("hello", HELLO, json!({})).await;
    image_of(&client, "hello").await;
    for round in 1..=3 {
        kill_template(&server, &client, "hello").await;
        let answer = client.invoke("hello", &json!(round)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "boot");
        let image = function(&client, "hello").await["image"].clone();
        assert_eq!(image["restore_failures"], round, "{image}");
        let note = image["note"].as_str().unwrap_or_default();
        assert!(note.contains("timed out after "), "{image}");
        // After the third in a row the image is given up.
        assert_eq!(image["bytes"].is_null(), round == 3, "{image}");
    }
}

#[tokio::test]
async fn a_restore_may_take_as_long_as_a_boot_of_the_function() {
    let server = Server::start_with(&[("HEARTH_RESTORE_TIMEOUT_MS", "1")]);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let code = format!("import time\ntime.sleep(8)\n{HELLO}");
    client.deploy("large", &code, json!({})).await;
    image_of(&client, "large").await;
    kill_template(&server, &client, "large").await;
    let answer = client.invoke("large", &json!(1)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    // The next server knows it from the image.
    let server = server.restart();
    let client = server.client();
    let answer = client.invoke("large", &json!(1)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    drop(server);
}

/// Makes, in `dir`, a program that is the CRIU of this host but for restores, which never end; none where there is none.
fn stuck_criu(dir: &Path) -> Option<PathBuf> {
    let private = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/criu");
    let system = Path::new("/usr/sbin/criu");
    let real = if private.is_dir() {
        let mut copy = Command::new("cp");
        copy.arg("-aL").arg(&private).arg(dir.join("copy"));
        assert!(copy.status().unwrap().success());
        r#"lib=$(echo "$here"/copy/usr/lib/*-linux-gnu)
exec "$lib"/ld-linux* --library-path "$lib" "$here/copy/usr/sbin/criu" "$@""#
    } else if system.is_file() {
        std::fs::copy(system, dir.join("real")).unwrap();
        r#"exec "$here/real" "$@""#
    } else {
        return None;
    };
    // Its arguments begin with: --work-dir DIR. A restore's end with: swrk FD.
    let script = format!(
        "#!/bin/sh\nhere=${{0%/*}}\ncase \"$*\" in *' swrk '*)\n  \
         echo '(00.1) Error (criu/stuck.c:1): waits for nothing' >\"$2/restore.log\"\n  exec sleep 1000\nesac\n{real}\n"
    );
    let program = dir.join("criu");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(program)
}

#[tokio::test]
async fn a_restore_that_is_stuck_is_shown_with_what_criu_said() {
    let dir = tempfile::tempdir().unwrap();
    let program = stuck_criu(dir.path()).unwrap_or_default();
    let server = Server::start_with(&[
        ("HEARTH_CRIU", program.to_str().unwrap()),
        ("HEARTH_RESTORE_TIMEOUT_MS", "5000"),
    ]);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("hello", HELLO, json!({})).await;
    image_of(&client, "hello").await;
    kill_template(&server, &client, "hello").await;
    let answer = client.invoke("hello", &json!(1)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "boot");
    let image = function(&client, "hello").await["image"].clone();
    let note = image["note"].as_str().unwrap_or_default();
    assert!(note.contains("timed out after 5000 ms"), "{image}");
    assert!(note.contains("waits for nothing"), "{image}");
}
