//! Control files of cgroup v2.

use std::io;
use std::path::Path;

use super::Directories;
use super::tree::put;
use crate::limits::{CPU_PERIOD_US, INSTANCE_PIDS, Limits};

const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

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

/// Limits an instance's share of the sandbox's processor time. From the first such limit on, instances without one compete as
/// groups, each for as much as the others.
pub fn limit_cpu(sandbox: &Path, leaf: &Path, quota_us: u64) -> io::Result<()> {
    put(sandbox, SUBTREE_CONTROL, "+cpu")?;
    put(leaf, "cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))
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
    use std::fs;
    use std::path::PathBuf;

    use super::super::{Group, Leaf, Version, listed};
    use super::*;
    use crate::limits::{CPU_WEIGHT, SANDBOXES_CPU_WEIGHT};
    use crate::prepare::mounts::v2_mount;
    use crate::prepare::place::{place, share_cpu};

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
        share_cpu(&top, SANDBOXES_CPU_WEIGHT.times(4)).expect("prepare");
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
    fn cores_are_a_leafs() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::write(
            tree.path().join("cgroup.controllers"),
            "cpuset cpu memory pids",
        )
        .expect("write");
        let place = place(tree.path(), tree.path()).expect("a place");
        let mut top = place.join("hearth-1");
        top.create().expect("create");
        fs::write(top.memory.join("cpuset.cpus.effective"), "0-8191").expect("write");
        let found = super::super::prepare_cpuset(&mut top);
        let own = std::thread::available_parallelism().expect("cores").get();
        let cores = found.version.as_deref().and_then(crate::cores::parse);
        assert!(
            cores.is_some_and(|cores| cores.len() >= own),
            "{:?}",
            found.reason
        );
        assert_eq!(read(top.memory.join(SUBTREE_CONTROL)), "+cpuset");
        let group = top.sandbox("f-1", Some(&limits())).expect("a sandbox");
        let leaf = group.instance_cgroup(1).expect("a leaf");
        group.set_cores(&leaf, &[1, 2, 5].into()).expect("cores");
        assert_eq!(read(leaf.dir.join("cpuset.cpus")), "1-2,5");
        assert_eq!(
            read(group.directories.memory.join(SUBTREE_CONTROL)),
            "+cpuset"
        );

        // A host without the controller says so, and goes on.
        top.cpuset = None;
        let found = super::super::prepare_cpuset(&mut top);
        assert!(!found.available && found.reason.is_some());
    }

    /// The kernel's own v2 hierarchy, which has no controllers on a hybrid host, but moves and kills all the same.
    #[test]
    fn moves_and_kills_for_real() {
        let text = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let Some(mount) = v2_mount(&text) else {
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
