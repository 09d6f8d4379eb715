//! What the host sees of a function: its users, its namespaces, its limits.

use std::collections::HashSet;
use std::path::PathBuf;

use hearth_testkit::cgroups;
use hearth_testkit::processes::namespace;
use serde_json::json;

use super::{Arena, host};
use crate::support::descendants;

const CODE: &str = include_str!("processes.py");
const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "ipc", "uts", "net", "cgroup"];
const MIB: u64 = 1 << 20;

#[tokio::test]
async fn workers_are_nobody_in_namespaces_of_their_own() {
    let arena = Arena::new(CODE, json!({"max_concurrency": 2})).await;
    arena.recovers("nothing").await;
    let server = std::process::id();
    let mut namespaces: HashSet<String> = HashSet::new();
    for name in NAMESPACES {
        for pid in [arena.server.pid(), arena.server.serve_pid()] {
            namespaces.insert(namespace(pid, name));
        }
    }
    assert_ne!(server, arena.server.pid());
    let mut uids = Vec::new();
    for function in ["attack", "steady"] {
        let processes = host::processes_of(&arena.server, function);
        assert!(
            processes.len() >= 2,
            "a template and an instance: {processes:?}"
        );
        let mut own: HashSet<String> = HashSet::new();
        for process in &processes {
            for field in ["Uid", "Gid"] {
                for id in process.field(field).split_whitespace() {
                    assert!(
                        id.parse::<u32>().is_ok_and(|id| id > host::UID_BASE),
                        "{process:?}"
                    );
                }
            }
            assert_eq!(process.field("Groups"), "");
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(process.field(set), "0000000000000000", "{set}: {process:?}");
            }
            assert_eq!(process.field("NoNewPrivs"), "1");
            assert_eq!(process.field("Seccomp"), "2");
            own.extend(NAMESPACES.map(|name| process.namespace(name)));
        }
        assert_eq!(
            own.len(),
            NAMESPACES.len(),
            "one sandbox, one set of namespaces"
        );
        assert!(own.is_disjoint(&namespaces), "{own:?}");
        namespaces.extend(own);
        uids.push(processes[0].uid);
    }
    assert_ne!(uids[0], uids[1], "each function has a user of its own");
    // PID 1 of each sandbox: root inside only, with nothing but the right to kill.
    let inits: Vec<_> = descendants(arena.server.pid())
        .into_iter()
        .filter(|process| process.parent == arena.server.pid())
        .collect();
    assert_eq!(inits.len(), 2);
    for init in inits {
        assert!(
            init.uid >= host::UID_BASE && !uids.contains(&init.uid),
            "{init:?}"
        );
        assert_eq!(
            init.field("CapEff"),
            "0000000000000020",
            "CAP_KILL: {init:?}"
        );
        assert_eq!(init.field("NoNewPrivs"), "1");
    }
    arena.finish().await;
}

#[tokio::test]
async fn every_process_is_in_its_cgroups_with_its_limits() {
    let arena = Arena::new(CODE, json!({"memory_mb": 64, "max_concurrency": 1})).await;
    arena.recovers("nothing").await;
    let tag = host::names(&arena.server, "run")
        .pop()
        .expect("a directory of sandboxes");
    // The instance is moved into its instance cgroup right after it is ready.
    let processes = host::processes_of(&arena.server, "attack");
    let (template, instance) = (
        processes[0].pid.min(processes[1].pid),
        processes[0].pid.max(processes[1].pid),
    );
    crate::support::eventually(
        "the instance is in its instance cgroup",
        std::time::Duration::from_secs(5),
        || async {
            let dir = directory(instance, "memory", &tag);
            dir.to_string_lossy().contains("/instance-").then_some(())
        },
    )
    .await;
    for (pid, leaf, limit) in [
        (template, "/template", 132 * MIB),
        (instance, "/instance-", 64 * MIB),
    ] {
        let dir = directory(pid, "memory", &tag);
        assert!(dir.to_string_lossy().contains(leaf), "{dir:?}");
        assert_eq!(
            value(&dir, &["memory.limit_in_bytes", "memory.max"]),
            limit.to_string()
        );
        let sandbox = dir.parent().expect("a sandbox").to_owned();
        assert_eq!(
            value(&sandbox, &["memory.limit_in_bytes", "memory.max"]),
            (196 * MIB).to_string()
        );
        let pids = directory(pid, "pids", &tag);
        assert!(["96", "64"].contains(&value(&pids, &["pids.max"]).as_str()));
        let cpu = directory(pid, "cpu", &tag);
        assert!(cpu.starts_with("/sys/fs/cgroup"), "{cpu:?}");
        if cpu.join("cpu.cfs_quota_us").exists() {
            let quota: i64 = value(&cpu, &["cpu.cfs_quota_us"])
                .parse()
                .expect("a number");
            let period: i64 = value(&cpu, &["cpu.cfs_period_us"])
                .parse()
                .expect("a number");
            assert!(
                quota > 0 && quota <= period,
                "one instance has one core at most"
            );
        }
    }
    assert!(!host::cgroup_directories(&tag).is_empty());
    arena.finish().await;
}

/// The cgroup of a process in the hierarchy of a controller: its directory, which must be below the server's.
fn directory(pid: u32, controller: &str, tag: &str) -> PathBuf {
    let dir = cgroups::directory(pid, controller).expect("a hierarchy");
    let path = dir.display();
    assert!(
        path.to_string().contains(tag),
        "{controller}: {path} is not below {tag}"
    );
    dir
}

/// The content of the first of these files that is there.
fn value(dir: &std::path::Path, files: &[&str]) -> String {
    let file = files
        .iter()
        .map(|name| dir.join(name))
        .find(|path| path.exists());
    let file = file.unwrap_or_else(|| panic!("none of {files:?} in {}", dir.display()));
    std::fs::read_to_string(file)
        .expect("readable")
        .trim()
        .to_owned()
}
