//! The host's view of a function's processes, cgroups and directories.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use hearth_testkit::cgroups;

use crate::support::{Process, Server, descendants, eventually};

/// Host uids of sandboxes begin here.
pub const UID_BASE: u32 = 1_900_000_000;

/// The processes of a function (template, instances, whatever they started), without PID 1 of its sandbox.
pub fn processes_of(server: &Server, function: &str) -> Vec<Process> {
    let mut all = descendants(server.pid());
    all.retain(|process| !process.is_zombie());
    let uids: HashSet<u32> = all
        .iter()
        .filter(|process| process.function().as_deref() == Some(function))
        .map(|process| process.uid)
        .collect();
    all.into_iter()
        .filter(|process| uids.contains(&process.uid))
        .collect()
}

/// The processes of a function that has no instances: its template and a pre-forked instance.
const WITHOUT_INSTANCES: usize = 2;

/// Waits until a function has no instance and nothing that one left behind: no process in a cgroup of an instance, and
/// elsewhere no more than its template and a pre-forked instance.
pub async fn without_instances(server: &Server, function: &str) {
    let is_in_an_instance_cgroup = |process: &Process| cgroups::is_of_an_instance(process.pid);
    eventually(
        "no stray process remains",
        Duration::from_secs(20),
        || async {
            let all = processes_of(server, function);
            let rest = all.len() <= WITHOUT_INSTANCES && !all.iter().any(is_in_an_instance_cgroup);
            rest.then_some(())
        },
    )
    .await;
}

/// Directories of all cgroups whose path contains `part`.
pub fn cgroup_directories(part: &str) -> Vec<PathBuf> {
    cgroups::directories(|path| path.to_string_lossy().contains(part))
}

/// Names of the directories in a directory of the server's data; none when it is not there.
pub fn names(server: &Server, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(server.data_dir().join(dir));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Waits until no process, no cgroup and no directory of any sandbox of this server is left, then ends the server, with
/// which its own cgroups, the cpuset of all sandboxes among them, and its directory go.
pub async fn nothing_is_left(server: &mut Server) {
    let tags = names(server, "run");
    assert!(!tags.is_empty(), "a directory of sandboxes");
    eventually(
        "processes, cgroups and directories are gone",
        Duration::from_secs(20),
        || async {
            let sandboxes = tags.iter().all(|tag| {
                names(server, &format!("run/{tag}")).is_empty()
                    && cgroup_directories(tag)
                        .iter()
                        .all(|dir| dir.ends_with(tag) || dir.ends_with(format!("{tag}/shared")))
            });
            (sandboxes && descendants(server.pid()).is_empty() && names(server, "code").is_empty())
                .then_some(())
        },
    )
    .await;
    server.terminate();
    assert!(
        server.wait().success(),
        "a server without work ends at once"
    );
    assert_eq!(names(server, "run"), Vec::<String>::new());
    for tag in tags {
        assert_eq!(cgroup_directories(&tag), Vec::<PathBuf>::new());
    }
}
