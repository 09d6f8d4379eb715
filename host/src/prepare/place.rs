//! Where in the trees of cgroups those of sandboxes are made.

use std::fs;
use std::io;
use std::path::Path;

use super::mounts::{self, Found};
use super::stale::{self, Tag};
use crate::SandboxError;
use crate::cgroup::{Directories, PROCS, Version, listed, put};
use crate::limits::{CpuWeight, SANDBOXES_CPU_WEIGHT, SERVER_CPU_WEIGHT};

/// What docker-compose.yml does. In a cgroup namespace of its own a container has its controllers too, but the kernel
/// lets it set `favordynmods` in the host's only.
const REMEDY: &str = "mount them (systemd does); in a container, run it privileged in the host's cgroup namespace \
    (docker run --privileged --cgroupns=host; compose: `privileged: true`, `cgroup: host`)";
/// Where the server itself goes when sandboxes are made below its own cgroup: one that distributes resources to others
/// must hold no process.
const SERVER_LEAF: &str = "server";
const SUBTREE_CONTROL: &str = "cgroup.subtree_control";
/// What a sandbox's cgroup needs.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// Times the processes of the server's cgroup are moved before that counts as failed: new ones may be forked meanwhile.
const MOVE_ROUNDS: usize = 10;

/// Finds the controllers, clears what dead servers left, and makes a directory for this server.
pub(super) fn open(tag: &Tag) -> Result<Directories, SandboxError> {
    let missing = |reason| SandboxError::Missing {
        what: "the cgroup controllers memory, pids and cpu".to_owned(),
        reason,
        remedy: REMEDY.to_owned(),
    };
    let place = mounts::find()
        .and_then(|found| match found {
            Found::V1(directories) => Ok(directories),
            Found::V2 { mount, own } => place(&mount, &own),
        })
        .map_err(missing)?;
    for parent in place.all() {
        stale::clear_stale_cgroups(parent);
    }
    let top = place.join(tag.as_str());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let weight = SANDBOXES_CPU_WEIGHT.times(cores);
    top.create()
        .and_then(|()| share_cpu(&top, weight))
        .map_err(|error| missing(error.to_string()))?;
    Ok(top)
}

/// What all sandboxes together get when the CPUs are contended; on v2, controllers for each of them.
pub(crate) fn share_cpu(top: &Directories, weight: CpuWeight) -> io::Result<()> {
    match top.version {
        Version::V1 => put(&top.cpu, "cpu.shares", weight.v1),
        Version::V2 => {
            put(&top.memory, "cpu.weight", weight.v2)?;
            put(&top.memory, SUBTREE_CONTROL, "+memory +pids +cpu")
        }
    }
}

/// Chooses the cgroup below which the server makes its own, and enables the controllers there.
///
/// `mount` is where the hierarchy is mounted, `own` the directory of the server's own cgroup. In this order:
/// 1. the server is in the hierarchy's root: there;
/// 2. it is alone in its cgroup (a service), or its cgroup is all there is (a container): there, after moving what is in
///    it into a leaf;
/// 3. it shares its cgroup with others (started from a shell): the hierarchy's root, when that is in sight.
pub(crate) fn place(mount: &Path, own: &Path) -> Result<Directories, String> {
    // This process may have been moved there before.
    let own = match own.parent() {
        Some(parent) if own.ends_with(SERVER_LEAF) && own != mount => parent,
        _ => own,
    };
    let at = if is_root(own) {
        own
    } else if own == mount || is_alone(own) {
        make_room(own).map_err(|error| error.to_string())?;
        own
    } else if is_root(mount) {
        mount
    } else {
        return Err(format!(
            "the server shares {} with other processes",
            own.display()
        ));
    };
    enable(at, &CONTROLLERS)?;
    let leaf = at.join(SERVER_LEAF);
    if leaf.is_dir() {
        put(&leaf, "cpu.weight", SERVER_CPU_WEIGHT).map_err(|error| error.to_string())?;
    }
    Ok(Directories {
        version: Version::V2,
        memory: at.to_owned(),
        pids: at.to_owned(),
        cpu: at.to_owned(),
        // Sandboxes do without where it cannot be had.
        cpuset: enable(at, &["cpuset"]).is_ok().then(|| at.to_owned()),
    })
}

/// Only the hierarchy's root has no type.
fn is_root(dir: &Path) -> bool {
    !dir.join("cgroup.type").exists()
}

fn is_alone(dir: &Path) -> bool {
    let me = rustix::process::getpid();
    listed(dir).iter().all(|pid| *pid == me)
}

/// Moves every process of a cgroup into a leaf below it.
fn make_room(dir: &Path) -> io::Result<()> {
    let leaf = dir.join(SERVER_LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for _ in 0..MOVE_ROUNDS {
        let processes = listed(dir);
        if processes.is_empty() {
            return Ok(());
        }
        for pid in processes {
            // One that has ended meanwhile is not there any more; one that cannot be moved stays listed.
            let _ = put(&leaf, PROCS, pid.as_raw_nonzero());
        }
    }
    Err(io::Error::other(format!(
        "cannot move the processes of {} into a leaf",
        dir.display()
    )))
}

/// Enables controllers for the cgroups below `dir`.
fn enable(dir: &Path, controllers: &[&str]) -> Result<(), String> {
    let there = fs::read_to_string(dir.join("cgroup.controllers"))
        .map_err(|error| format!("{}: {error}", dir.display()))?;
    for controller in controllers {
        if !there.split_whitespace().any(|name| name == *controller) {
            return Err(format!(
                "{} does not have the {controller} controller",
                dir.display()
            ));
        }
    }
    let list: Vec<_> = controllers.iter().map(|name| format!("+{name}")).collect();
    put(dir, SUBTREE_CONTROL, list.join(" ")).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn a_service_moves_into_a_leaf() {
        let tree = tempfile::tempdir().expect("a directory");
        let own = tree.path().join("hearth.service");
        fs::create_dir(&own).expect("mkdir");
        fs::write(own.join("cgroup.type"), "domain").expect("write");
        fs::write(own.join("cgroup.controllers"), "cpu memory pids").expect("write");
        fs::write(own.join(PROCS), "").expect("write");
        let place = place(tree.path(), &own).expect("a place");
        assert_eq!(place.memory, own);
        assert!(own.join(SERVER_LEAF).is_dir());
    }

    #[test]
    fn a_shared_cgroup_is_left_alone() {
        let tree = tempfile::tempdir().expect("a directory");
        let own = tree.path().join("session.scope");
        fs::create_dir(&own).expect("mkdir");
        fs::write(own.join("cgroup.type"), "domain").expect("write");
        fs::write(own.join(PROCS), "1\n2\n").expect("write");
        fs::write(tree.path().join("cgroup.controllers"), "cpu memory pids").expect("write");
        let found = place(tree.path(), &own).expect("a place");
        assert_eq!(found.memory, tree.path());
        assert_eq!(read(own.join(PROCS)), "1\n2\n");

        // And where the root is out of sight, that is said.
        fs::write(tree.path().join("cgroup.type"), "domain").expect("write");
        let refusal = place(tree.path(), &own).expect_err("no place");
        assert!(refusal.contains("shares"), "{refusal}");
    }

    #[test]
    fn a_missing_controller_is_named() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::write(tree.path().join("cgroup.controllers"), "cpu memory").expect("write");
        let refusal = place(tree.path(), tree.path()).expect_err("no pids");
        assert!(refusal.contains("pids controller"), "{refusal}");
    }

    #[test]
    fn the_remedy_is_what_compose_does_and_the_documentation_says() {
        let compose = include_str!("../../../docker-compose.yml");
        let docs = include_str!("../../../server/docs/sandbox.md");
        for setting in ["privileged: true", "cgroup: host"] {
            assert!(REMEDY.contains(&format!("`{setting}`")), "{REMEDY}");
            assert!(
                compose.lines().any(|line| line.trim() == setting),
                "docker-compose.yml has no `{setting}`"
            );
            assert!(docs.contains(&format!("`{setting}`")), "{setting}");
        }
        assert!(REMEDY.contains("--privileged --cgroupns=host"), "{REMEDY}");
    }
}
