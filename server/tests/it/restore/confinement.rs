//! A restored instance has what a booted one has, property by property, and may do what a booted one may.

use std::collections::BTreeMap;
use std::path::Path;

use hearth_testkit::cgroups::{self, Cgroup};
use serde_json::{Value, json};

use super::{available, image_of, kill_template, prewarmed, prewarmed_sandboxes_used};
use crate::support::{Server, descendants};

/// Reports what the kernel says of the process, and what becomes of things it must not do.
const PROBE: &str = r#"
import ctypes, errno, os, re, resource, socket, threading, time
import snapshot_restore_py as hooks

libc = ctypes.CDLL(None, use_errno=True)
restored = []
snapshots = []
hooks.register_before_snapshot(lambda: snapshots.append(1))
hooks.register_after_restore(lambda: restored.append(os.getpid()))
# Not only the main thread must be confined again.
stay = threading.Event()
background = threading.Thread(target=stay.wait, daemon=True)
background.start()

def status(path):
    wanted = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
              "Seccomp", "Seccomp_filters", "Speculation_Store_Bypass", "SigBlk", "SigIgn", "SigCgt")
    lines = dict(line.rstrip("\n").split(":", 1) for line in open(path))
    return {name: lines.get(name, "").strip() for name in wanted}

# The C library takes signals 32 and 33 for itself when a process makes its first thread, as PID 1 does for a restore.
def own(name, value):
    return hex(int(value, 16) & ~(3 << 31)) if name in ("SigIgn", "SigCgt") else value

def mounts():
    found = []
    for line in open("/proc/self/mountinfo"):
        before, after = line.split(" - ")
        fields = before.split()
        kind, source, options = after.split(" ", 2)
        # Not numbers and not where the root is on the host, which every sandbox has of its own.
        found.append([fields[4], fields[5], fields[6:], kind, re.sub(r"[ug]id=\d+", "", options.strip()) if kind == "tmpfs" else ""])
    # A prewarmed's code is mounted last.
    return sorted(found)

def outcome(act):
    try:
        value = act()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except ValueError as error:
        return str(error)
    return "allowed" if value is None else value

def call(name, *arguments):
    def act():
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)
    return act

def ask(listener):
    socket.create_connection(listener.getsockname(), 5).close()

def write(path):
    def act():
        with open(path, "w") as file:
            file.write("x")
    return act

ATTEMPTS = {
    "unshare user": call("unshare", 0x10000000),
    "setns": call("setns", 0, 0),
    "mount": call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "umount": call("umount2", b"/usr", 2),
    "chroot": lambda: os.chroot("/tmp"),
    "setuid": lambda: os.setuid(0),
    "setgid": lambda: os.setgid(0),
    "ptrace": call("ptrace", 16, 1, 0, 0),
    "raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "internet socket": lambda: socket.socket(socket.AF_INET).close(),
    "internet": lambda: socket.create_connection(("8.8.8.8", 53), 5),
    "loopback": lambda: ask(socket.create_server(("127.0.0.1", 0))),
    "unix socket": lambda: socket.socket(socket.AF_UNIX).close(),
    "netlink socket": lambda: socket.socket(16, socket.SOCK_RAW, 12).close(),
    "kill init": lambda: os.kill(1, 0),
    "kill init for good": lambda: os.kill(1, 9),
    "init's memory": lambda: open("/proc/1/mem", "rb").close(),
    "init's root": lambda: os.listdir("/proc/1/root"),
    "template's memory": lambda: open("/proc/1000/mem", "r+b").close(),
    # Allowed by everything but Landlock.
    "own name": write("/proc/self/comm"),
    "own oom score": write("/proc/self/oom_score_adj"),
    "notes of CRIU": lambda: open("/run/criu.kdat", "rb").close(),
    "write /usr": write("/usr/x"),
    "write /": write("/x"),
    "write /run": write("/run/x"),
    "write /var/task": write("/var/task/x"),
    "write /tmp": write("/tmp/x"),
    "write /dev/shm": write("/dev/shm/x"),
    "execute in /dev/shm": lambda: os.execv("/dev/shm/x", ["x"]),
    "reboot": call("syscall", 169, 0, 0, 0, 0),
    "bpf": call("syscall", 321, 0, 0, 0),
    "io_uring": call("syscall", 425, 1, 0),
    "userfaultfd": call("syscall", 323, 0),
    "keyctl": call("syscall", 250, 0, 0, 0),
    "memory lock limit": lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 40, 1 << 40)),
}

def stats():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield pid, open("/proc/%s/stat" % pid).read()
        except OSError:
            continue  # it has just ended

def processes():
    # CRIU is stopped when it has restored, and taken away a moment later.
    until = time.monotonic() + 10
    while any("(criu" in stat or "(ld-linux" in stat for _, stat in stats()) and time.monotonic() < until:
        time.sleep(0.001)
    found = []
    for pid, stat in stats():
        parent = stat.rsplit(")", 1)[1].split()[1]
        # The template forks ahead when it has time to; of its children only this one is known to be there.
        if parent != "1000" or pid == str(os.getpid()):
            found.append([parent, "self" if pid == str(os.getpid()) else pid])
    return sorted(found)

def handler(event, context):
    return {
        "status": status("/proc/self/status"),
        "template": status("/proc/1000/status"),
        "template's threads": [status("/proc/1000/task/%s/status" % task) for task in sorted(os.listdir("/proc/1000/task"))],
        "init": {name: own(name, value) for name, value in status("/proc/1/status").items()},
        "parents": [os.getppid(), os.getpgid(0) != 0, os.getsid(0)],
        "limits": open("/proc/self/limits").read(),
        "mounts": mounts(),
        "root": sorted(os.listdir("/")),
        "descriptors": sorted(re.sub(r"\d{2,}", "N", os.readlink("/proc/self/fd/" + fd)) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)),
        "cgroup": re.sub(r"instance-\d+", "instance", open("/proc/self/cgroup").read()).replace("/../instance", "/").replace("/template", "/"),
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "host": [os.uname().nodename, open("/etc/hosts").read()],
        "interfaces": open("/proc/net/dev").read().count(":"),
        "processes": processes(),
        "space": [(s.f_blocks * s.f_frsize, s.f_files) for s in map(os.statvfs, ("/tmp", "/dev/shm"))],
        "umask": open("/proc/self/status").read().split("Umask:")[1].split()[0],
        "hooks": [snapshots, restored == [os.getpid()]],
        "attempts": {name: outcome(act) for name, act in ATTEMPTS.items()},
        "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in ("user", "mnt", "pid", "ipc", "uts", "net", "cgroup")},
    }
"#;

#[tokio::test]
async fn a_restored_instance_is_confined_as_a_booted_one() {
    confined_as_booted(false, "fork").await;
}

#[tokio::test]
async fn an_instance_restored_into_a_prewarmed_sandbox_is_confined_as_a_booted_one() {
    confined_as_booted(true, "fork").await;
}

#[tokio::test]
async fn what_becomes_an_instance_is_confined_alike_whether_restored_or_booted() {
    confined_as_booted(true, "auto").await;
}

async fn confined_as_booted(ahead: bool, start: &str) {
    let server = super::server(ahead);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let settings = json!({"env": {"SECRET": "s"}, "start": start});
    client.deploy("probe", PROBE, settings).await;
    let forks = start == "fork";
    let answer = client.invoke("probe", &json!(1)).await.expect(200);
    let first = if forks { "fork" } else { "boot" };
    assert_eq!(answer.header("x-hearth-start"), first);
    let mut booted = answer.json();
    image_of(&client, "probe").await;
    let limits = limits_of(template(&server, "probe"));
    // And with it the instance that it has become.
    kill_template(&server, &client, "probe").await;
    if ahead {
        prewarmed(&client).await;
    }
    let answer = client.invoke("probe", &json!(1)).await.expect(200);
    assert_eq!(
        answer.header("x-hearth-start"),
        "restore",
        "{}",
        answer.text()
    );
    if forks {
        assert_eq!(prewarmed_sandboxes_used(&client).await, u64::from(ahead));
        assert_eq!(limits_of(template(&server, "probe")), limits);
    }
    let mut restored = answer.json();

    for report in [&mut booted, &mut restored] {
        let namespaces = report["namespaces"].take();
        for (name, namespace) in namespaces.as_object().expect("namespaces") {
            let host = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
            assert_ne!(namespace, &Value::from(host.to_string_lossy()), "{name}");
        }
        assert_eq!(report["status"]["Seccomp"], "2");
        assert_eq!(report["status"]["NoNewPrivs"], "1");
        assert_eq!(report["status"]["CapBnd"], "0000000000000000");
        assert_eq!(report["attempts"]["own name"], "EACCES");
        assert_eq!(report["attempts"]["raw socket"], "EPERM");
        assert_eq!(report["attempts"]["internet"], "ENETUNREACH");
        assert_eq!(report["attempts"]["loopback"], "allowed");
        assert_eq!(report["hooks"], json!([[1], true]));
        // It names the process.
        let stream = report["environment"]["AWS_LAMBDA_LOG_STREAM_NAME"].take();
        assert!(stream.as_str().is_some_and(|name| name.starts_with("1/")));
    }
    for (name, value) in booted.as_object().expect("a report") {
        assert_eq!(&restored[name], value, "{name} differs after a restore");
    }
}

/// Host pid of the function's template.
fn template(server: &Server, name: &str) -> u32 {
    let all = descendants(server.pid());
    let found = all.iter().find(|process| process.is_template(name));
    found.expect("a template").pid
}

/// What the cgroups of a process allow it, in all hierarchies, and those above it within the sandbox.
fn limits_of(pid: u32) -> BTreeMap<String, String> {
    const FILES: [&str; 8] = [
        "memory.max",
        "memory.swap.max",
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "pids.max",
        "cpu.max",
        "cpu.cfs_quota_us",
        "cpu.cfs_period_us",
    ];
    let all = cgroups::of(pid).expect("its cgroups");
    let mut limits = BTreeMap::new();
    for Cgroup { controllers, path } in &all {
        for mount in ["", "unified"]
            .into_iter()
            .chain([controllers.as_str()])
            .chain(controllers.split(','))
        {
            let dir = Path::new(cgroups::ROOT)
                .join(mount)
                .join(path.trim_start_matches('/'));
            for (level, dir) in [("leaf", dir.as_path()), ("sandbox", dir.parent().unwrap())] {
                for file in FILES {
                    if let Ok(limit) = std::fs::read_to_string(dir.join(file)) {
                        limits.insert(format!("{level} {controllers} {file}"), limit);
                    }
                }
            }
        }
    }
    assert!(!limits.is_empty(), "{all:?}");
    limits
}
