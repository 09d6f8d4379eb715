//! Control files of cgroup v2, and where in its tree the host process may create cgroups.

use std::fs;
use std::io;
use std::path::Path;

use super::processes::listed;
use super::tree::put;
use super::{Directories, PROCS, Version};
use crate::limits::{CPU_PERIOD_US, CpuWeight, INSTANCE_PIDS, Limits, SERVER_CPU_WEIGHT};

/// Where the host process itself goes when sandboxes are made below its own cgroup: one that distributes resources to others
/// must hold no process.
const SERVER_LEAF: &str = "server";
const SUBTREE_CONTROL: &str = "cgroup.subtree_control";
/// What a sandbox's cgroup needs.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// Times the processes of the own cgroup are moved before that counts as failed: new ones may be forked meanwhile.
const MOVE_ROUNDS: usize = 10;

/// Chooses the cgroup below which the host process makes its own, and enables the controllers there.
///
/// `mount` is where the hierarchy is mounted, `own` the directory of its own cgroup. In this order:
/// 1. the host process is in the hierarchy's root: there;
/// 2. it is alone in its cgroup (a service), or its cgroup is all there is (a container): there, after moving what is in
///    it into a leaf;
/// 3. it shares its cgroup with others (started from a shell): the hierarchy's root, when that is in sight.
pub fn place(mount: &Path, own: &Path) -> Result<Directories, String> {
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
            "hearth shares {} with other processes",
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

/// What all sandboxes together get when the CPUs are contended, and controllers for each of them.
pub fn prepare_top(top: &Directories, weight: CpuWeight) -> io::Result<()> {
    put(&top.memory, "cpu.weight", weight.v2)?;
    put(&top.memory, SUBTREE_CONTROL, "+memory +pids +cpu")
}

/// Controllers for the leaves of a sandbox, before there are any.
pub fn prepare_sandbox(sandbox: &Directories) -> io::Result<()> {
    put(&sandbox.memory, SUBTREE_CONTROL, "+memory +pids")
}

pub fn limit_sandbox(sandbox: &Directories, limits: &Limits) -> io::Result<()> {
    let dir = &sandbox.memory;
    limit_memory(dir, limits.memory)?;
    put(dir, "pids.max", limits.pids)?;
    put(dir, "cpu.weight", limits.cpu_weight.v2)?;
    put(
        dir,
        "cpu.max",
        format!("{} {CPU_PERIOD_US}", limits.cpu_quota_us),
    )
}

/// Limits memory, and forbids swap where there is any.
pub fn limit_memory(dir: &Path, bytes: u64) -> io::Result<()> {
    const SWAP: &str = "memory.swap.max";
    put(dir, "memory.max", bytes)?;
    if dir.join(SWAP).exists() {
        put(dir, SWAP, 0)?;
    }
    Ok(())
}

/// An instance dies as a whole, and has a limit of processes of its own.
pub fn limit_instance_cgroup(dir: &Path) -> io::Result<()> {
    put(dir, "memory.oom.group", 1)?;
    put(dir, "pids.max", INSTANCE_PIDS)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Group, Leaf};
    use super::*;
    use crate::limits::{CPU_WEIGHT, SANDBOXES_CPU_WEIGHT};

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn limits() -> Limits {
        Limits {
            memory: 1000,
            template_memory: 300,
            cgroup_memory: 200,
            pids: 96,
            cpu_quota_us: 36_000,
            cpu_weight: CPU_WEIGHT,
            tmp: 0,
            shm: 0,
        }
    }

    /// A tree of plain files stands in for the kernel's: what is written where is all that is looked at.
    #[test]
    fn writes_every_limit() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::write(tree.path().join("cgroup.controllers"), "cpu io memory pids").expect("write");
        let place = place(tree.path(), tree.path()).expect("a place");
        assert_eq!(
            read(tree.path().join(SUBTREE_CONTROL)),
            "+memory +pids +cpu"
        );

        let top = place.join("hearth-1");
        top.create().expect("create");
        prepare_top(&top, SANDBOXES_CPU_WEIGHT.times(4)).expect("prepare");
        assert_eq!(read(top.memory.join("cpu.weight")), "400");

        let mut group = Group {
            directories: top.join("f-1"),
            template: top.memory.join("f-1/template"),
            limits: None,
        };
        group.create().expect("create");
        assert!(
            group.instance_cgroup(1).is_err(),
            "a pre-warmed sandbox has no instances"
        );
        group.limit(&limits()).expect("limit");
        let sandbox = &group.directories.memory;
        assert_eq!(read(sandbox.join("memory.max")), "1000");
        assert_eq!(read(sandbox.join("pids.max")), "96");
        assert_eq!(read(sandbox.join("cpu.max")), "36000 20000");
        assert_eq!(read(sandbox.join("cpu.weight")), "100");
        assert_eq!(read(sandbox.join(SUBTREE_CONTROL)), "+memory +pids");
        assert_eq!(read(sandbox.join("template/memory.max")), "300");
        assert_eq!(
            group.procs_of_init(),
            [sandbox.join("template/cgroup.procs")]
        );

        let instance_cgroup = group.instance_cgroup(7).expect("an instance cgroup");
        assert_eq!(read(instance_cgroup.dir.join("memory.max")), "200");
        assert_eq!(read(instance_cgroup.dir.join("memory.oom.group")), "1");
        assert_eq!(read(instance_cgroup.dir.join("pids.max")), "64");
        assert!(!instance_cgroup.dir.join("memory.swap.max").exists());
        fs::write(
            instance_cgroup.dir.join("memory.events"),
            "low 0\noom 1\noom_kill 2\n",
        )
        .expect("write");
        assert_eq!(instance_cgroup.oom_kills(), 2);
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

    /// The kernel's own v2 hierarchy, which has no controllers on a hybrid host, but moves and kills all the same.
    #[test]
    fn moves_and_kills_for_real() {
        let text = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let Some(mount) = super::super::mounts::v2_mount(&text) else {
            return; // this host has no v2 at all
        };
        let dir = mount.join(format!("hearth-unit-test-{}", std::process::id()));
        fs::create_dir(&dir).expect("mkdir, as root");
        let leaf = Leaf {
            version: Version::V2,
            dir,
        };
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("600")
            .spawn()
            .expect("sleep");
        fs::write(leaf.procs(), child.id().to_string()).expect("move");
        assert_eq!(listed(&leaf.dir).len(), 1);
        assert!(!leaf.remove(), "a cgroup in use cannot be removed");
        leaf.kill();
        let status = child.wait().expect("wait");
        assert!(!status.success());
        assert!(leaf.remove());
    }
}
