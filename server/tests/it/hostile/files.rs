//! Files: what a function must not read, and what it must not write.

use std::fs::File;

use serde_json::{Value, json};

use super::{Arena, PRELUDE, SECRET, host};

const CODE: &str = include_str!("files.py");

by_fork_and_restore!(
    nothing_of_the_host_or_of_another_function_can_be_read,
    CODE,
    json!({})
);

async fn nothing_of_the_host_or_of_another_function_can_be_read(arena: Arena) {
    let data = arena.server.data_dir();
    let mut paths: Vec<String> = [
        "/etc/shadow",
        "/etc/machine-id",
        "/root",
        "/home",
        "/sys",
        "/boot",
        "/run",
    ]
    .map(String::from)
    .into();
    paths.extend(
        ["", "admin-token", "hearth.db", "run", "code"]
            .map(|name| data.join(name).display().to_string()),
    );
    paths.extend(
        host::names(&arena.server, "code")
            .iter()
            .map(|name| data.join("code").join(name).display().to_string()),
    );
    for pid in [arena.server.pid(), arena.server.serve_pid()] {
        paths.push(format!("/proc/{pid}/environ"));
    }
    let steady = host::processes_of(&arena.server, "steady");
    assert!(!steady.is_empty(), "the second function runs");
    let answer = arena.send(&json!({"attack": "read", "paths": paths})).await;
    assert_eq!(answer.expect(200).json(), json!({}));

    let found = arena
        .send(&json!({"attack": "search", "needle": SECRET}))
        .await
        .expect(200)
        .json();
    assert_eq!(found["hits"], json!([]));
    assert!(found["seen"].as_u64() > Some(0), "it did look: {found}");

    let inventory = arena.report("inventory").await;
    assert_eq!(inventory["users"], json!(["root", "sandbox"]));
    assert_eq!(inventory["opt"], json!(["hearth", "python"]));
    let known = [
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp",
        "usr", "var",
    ];
    only(&inventory["root"], &known);
    only(
        &inventory["etc"],
        &[
            "group",
            "hosts",
            "ld.so.cache",
            "localtime",
            "nsswitch.conf",
            "passwd",
            "ssl",
        ],
    );
    only(
        &inventory["dev"],
        &[
            "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero",
        ],
    );
    arena.finish().await;
}

/// Checks that a list of names holds none but these.
fn only(names: &Value, known: &[&str]) {
    for name in names.as_array().expect("a list") {
        let name = name.as_str().expect("a name");
        assert!(known.contains(&name), "{name} in {names}");
    }
}

by_fork_and_restore!(nothing_can_be_written_outside_tmp, CODE, json!({}));

async fn nothing_can_be_written_outside_tmp(arena: Arena) {
    let writable = arena.report("writable").await;
    let writable: Vec<&str> = writable
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        writable.contains(&"/tmp") && writable.contains(&"/dev/shm"),
        "{writable:?}"
    );
    for path in writable {
        let below = |dir: &str| path == dir || path.starts_with(&format!("{dir}/"));
        let device = ["null", "zero", "full", "random", "urandom"]
            .iter()
            .any(|name| path == format!("/dev/{name}"));
        assert!(
            below("/tmp") || below("/dev/shm") || device,
            "{path} is writable"
        );
    }
    let changes = arena.report("change").await;
    for (change, result) in changes.as_object().expect("an object") {
        assert!(
            [
                "EROFS", "EPERM", "EACCES", "EXDEV", "EINVAL", "EBUSY", "ENOENT"
            ]
            .contains(&result.as_str().unwrap_or_default()),
            "{change}: {result}"
        );
    }
    assert_eq!(
        arena.report("links").await,
        json!({"loop": "ELOOP", "up": "ENOENT", "sys": "ENOENT", "above_root": "ENOENT", "escape": true})
    );
    arena.finish().await;
}

by_fork_and_restore!(
    programs_that_are_roots_outside_give_nothing,
    CODE,
    json!({})
);

async fn programs_that_are_roots_outside_give_nothing(arena: Arena) {
    let report = arena.report("suid").await;
    assert!(
        report["programs"].as_u64() > Some(0),
        "Debian has su: {report}"
    );
    for (program, result) in report["results"].as_object().expect("an object") {
        assert_ne!(result[0], 0, "{program}: {result}");
        assert!(!result.to_string().contains("uid=0"), "{program}: {result}");
    }
    assert_eq!(report["own"], "1000");
    for (field, value) in report["status"].as_object().expect("an object") {
        let expected = match field.as_str() {
            "NoNewPrivs" => "1",
            "Seccomp" => "2",
            _ => "0000000000000000",
        };
        assert_eq!(value, expected, "{field}");
    }
    arena.finish().await;
}

/// A watch is on an inode, and the inodes of `/usr` are the host's.
async fn nothing_tells_which_programs_the_host_runs(arena: Arena) {
    let results = arena.report("watch_programs").await;
    assert_eq!(
        results,
        json!({"inotify_init": "ENOSYS", "inotify_init1": "ENOSYS", "fanotify_init": "EPERM"})
    );
    arena.finish().await;
}

by_fork_and_restore!(nothing_tells_which_programs_the_host_runs, CODE, json!({}));

async fn the_first_process_does_not_say_where_hearth_is(arena: Arena) {
    let line = arena.report("command_line_of_pid_1").await;
    assert_eq!(line, "hearth-init\0");
    arena.finish().await;
}

by_fork_and_restore!(
    the_first_process_does_not_say_where_hearth_is,
    CODE,
    json!({})
);

/// A lock is on an inode: none that a function can open may be one of the host's.
async fn a_lock_is_met_by_nobody_outside(arena: Arena) {
    let shared = [
        "/usr/bin/env",
        "/etc/ld.so.cache",
        "/etc/ssl/certs",
        "/dev/null",
    ];
    let mut inside = shared.to_vec();
    inside.extend(["/var/task", "/opt/hearth/python"]);
    let lock = json!({"attack": "lock", "paths": inside});
    assert_eq!(arena.send(&lock).await.expect(200).json(), json!({}));

    let code = arena.server.data_dir().join("code");
    let versions = host::names(&arena.server, "code");
    assert!(!versions.is_empty());
    let outside = shared.map(std::path::PathBuf::from);
    for path in outside
        .into_iter()
        .chain(versions.iter().map(|name| code.join(name)))
    {
        // Not exclusive: tests run beside each other.
        if let Err(error) = File::open(&path).expect("it opens").try_lock_shared() {
            panic!("the host cannot lock {}: {error}", path.display());
        }
    }

    let other = format!("{PRELUDE}\n{CODE}");
    arena.client.deploy("other", &other, json!({})).await;
    let answer = arena.client.invoke("other", &lock).await.expect(200);
    assert_eq!(
        answer.json(),
        json!({}),
        "another function meets the first one's"
    );
    let gone = arena.client.delete("/api/v1/functions/other").await;
    gone.expect(204);
    arena.finish().await;
}

by_fork_and_restore!(a_lock_is_met_by_nobody_outside, CODE, json!({}));

async fn mounts_do_not_say_where_hearth_is(arena: Arena) {
    let mounts = arena.report("mounts").await;
    let data = arena.server.data_dir().display().to_string();
    for (file, text) in mounts.as_object().expect("an object") {
        let text = text.as_str().expect("text");
        assert!(!text.is_empty(), "{file}");
        for secret in [&*data, "runtimes/python"] {
            assert!(!text.contains(secret), "{secret} is in {file}:\n{text}");
        }
    }
    arena.finish().await;
}

by_fork_and_restore!(mounts_do_not_say_where_hearth_is, CODE, json!({}));
