//! Real sandboxes, made as root on this machine, with small Python programs as templates.
//!
//! Needs `hearth-init`: `cargo build -p hearth-init` first. Every test has its own directory, users and cgroups, so they
//! may run at the same time.

mod sandbox {
    pub mod harness;
}

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hearth::model::Network;
use hearth::sandbox::{Host, SandboxError};
use sandbox::harness::{Harness, cgroups_named, host_pid, names, processes_of, until};
use serde_json::{Value, json};

/// What a refused call answers.
const EPERM: i64 = 1;
/// What a call that is not there answers.
const ENOSYS: i64 = 38;

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

#[tokio::test]
async fn every_namespace_is_its_own() {
    let harness = Harness::new(
        "import os
say({n: os.readlink(f'/proc/self/ns/{n}') for n in os.listdir('/proc/self/ns')}, os.uname().nodename)",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    for name in ["user", "mnt", "pid", "ipc", "uts", "net", "cgroup"] {
        let outside = std::fs::read_link(format!("/proc/self/ns/{name}")).expect("ns");
        let inside = answer[0][name].as_str().expect(name);
        assert_ne!(inside, outside.to_str().expect("text"), "{name}");
    }
    assert_eq!(answer[1], "under-test");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn the_template_is_nobody() {
    let harness = Harness::new(
        "import os
def status(pid): return dict(line.rstrip('\\n').split(':\\t', 1) for line in open(f'/proc/{pid}/status'))
def peek(path):
    try: open(path).read(); return 'read'
    except OSError as e: return e.errno
say(status('self'), status(1), os.getresuid(), os.getgroups(), peek('/proc/1/environ'),
    sorted(os.listdir('/proc/self/fd')), dict(os.environ), os.getcwd())",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    let status = &answer[0];
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2");
    assert_eq!(status["Seccomp_filters"], "2");
    let init = &answer[1];
    assert_eq!(init["CapPrm"], "0000000000000020", "CAP_KILL alone");
    assert_eq!(init["CapBnd"], "0000000000000000");
    assert_eq!(init["NoNewPrivs"], "1");
    assert_eq!(answer[2], json!([1000, 1000, 1000]));
    assert_eq!(answer[3], json!([]));
    assert_eq!(answer[4], 13, "EACCES: PID 1 is hidden");
    // 0 to 3, and the one that lists.
    assert_eq!(answer[5], json!(["0", "1", "2", "3", "4"]));
    assert_eq!(answer[6]["HELLO"], "world");
    assert!(answer[6].get("PATH").is_none(), "{}", answer[6]);
    assert_eq!(answer[7], "/var/task");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn only_its_own_files_are_there_and_none_can_be_written() {
    let harness = Harness::new(
        "import os
def attempt(f):
    try: f(); return 'done'
    except OSError as e: return e.errno
write = lambda path: attempt(lambda: open(path, 'w'))
mounts = [l.split()[4:6] for l in open('/proc/self/mountinfo')]
say(sorted(os.listdir('/')), sorted(os.listdir('/etc')), sorted(os.listdir('/dev')),
    {p: write(p) for p in ['/x', '/usr/x', '/var/task/x', '/etc/passwd', '/opt/hearth/python/x',
                           '/proc/sys/kernel/hostname', '/dev/x', '/dev/null']},
    attempt(lambda: open('/etc/shadow')), open('/opt/hearth/python/runtime.txt').read(), open('/etc/passwd').read(),
    [at for at, how in mounts if 'rw' in how.split(',')], [at for at, how in mounts if 'nosuid' not in how.split(',')],
    sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))",
    );
    const TOP: &[&str] = &[
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp",
        "usr", "var",
    ];
    const ETC: &[&str] = &[
        "group",
        "hosts",
        "ld.so.cache",
        "localtime",
        "nsswitch.conf",
        "passwd",
        "ssl",
    ];
    const DEV: &[&str] = &[
        "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero",
    ];
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    for name in strings(&answer[0]) {
        assert!(TOP.contains(&name), "/{name}");
    }
    for name in strings(&answer[1]) {
        assert!(ETC.contains(&name), "/etc/{name}");
    }
    assert_eq!(strings(&answer[2]), DEV);
    for (path, result) in answer[3].as_object().expect("object") {
        if path == "/dev/null" {
            assert_eq!(result, "done");
        } else {
            // EPERM, EACCES, EROFS.
            let refused = result.as_i64().is_some_and(|e| [1, 13, 30].contains(&e));
            assert!(refused, "{path}: {result}");
        }
    }
    assert_eq!(answer[4], 2, "no /etc/shadow");
    assert_eq!(answer[5], "runtime");
    assert_eq!(answer[6].as_str().expect("text").lines().count(), 2);
    let mut writable = strings(&answer[7]);
    writable.sort_unstable();
    assert_eq!(writable, ["/dev/shm", "/proc", "/tmp"]);
    assert_eq!(strings(&answer[8]), [""; 0]);
    assert_eq!(answer[9], json!([1, 1000]), "its own processes only");
    harness.end(sandbox).await;
}

#[cfg(target_arch = "x86_64")] // the numbers are this architecture's
#[tokio::test]
async fn calls_that_lead_out_are_refused() {
    let harness = Harness::new(
        "import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    result = getattr(libc, name)(*args)
    return ctypes.get_errno() if result == -1 else f'answered {result}'
def sock(*args):
    try: socket.socket(*args); return 'made'
    except OSError as e: return e.errno
pair = socket.socketpair()
say({
  'mount': call('mount', b'none', b'/tmp', b'tmpfs', 0, None), 'umount': call('umount2', b'/tmp', 2),
  'unshare': call('unshare', 0x10000000), 'setns': call('setns', 3, 0), 'ptrace': call('ptrace', 16, 1, 0, 0),
  'setuid': call('setuid', 0), 'setgroups': call('setgroups', 0, None), 'chroot': call('chroot', b'/tmp'),
  'pivot_root': call('syscall', 155, b'.', b'.'), 'bpf': call('syscall', 321, 0, 0, 0),
  'keyctl': call('syscall', 250, 0, 0, 0), 'userfaultfd': call('syscall', 323, 0),
  'perf_event_open': call('syscall', 298, 0, 0, 0, 0, 0), 'process_vm_readv': call('syscall', 310, 1, 0, 0, 0, 0, 0),
  'io_uring_enter': call('syscall', 426, 0, 0, 0, 0, 0, 0), 'open_by_handle_at': call('syscall', 304, 0, 0, 0),
  'clone, new user': call('syscall', 56, 0x10000000 | 17, 0, 0, 0, 0),
  'clone, parent': call('syscall', 56, 0x8000 | 17, 0, 0, 0, 0), 'personality': call('personality', 0x0040000),
  'seccomp': call('syscall', 317, 0, 0, 0), 'reboot': call('reboot', 0), 'sethostname': call('sethostname', b'x', 1),
  'prctl, set mm': call('prctl', 35, 1, 0, 0, 0), 'ioctl, TIOCSTI': call('ioctl', 0, 0x5412, b'x'),
  'mknod': call('mknod', b'/tmp/d', 0o60666, 0x0801), 'kill, PID 1': call('kill', 1, 9),
  'inet': sock(socket.AF_INET), 'inet6': sock(socket.AF_INET6), 'netlink': sock(socket.AF_NETLINK, socket.SOCK_RAW),
  'packet': sock(socket.AF_PACKET, socket.SOCK_RAW), 'vsock': sock(40),
}, {'clone3': call('syscall', 435, 0, 0), 'io_uring_setup': call('syscall', 425, 1, 0)})",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    for (name, result) in answer[0].as_object().expect("object") {
        assert_eq!(result.as_i64(), Some(EPERM), "{name}: {result}");
    }
    for (name, result) in answer[1].as_object().expect("object") {
        assert_eq!(result.as_i64(), Some(ENOSYS), "{name}: {result}");
    }
    harness.end(sandbox).await;
}

#[tokio::test]
async fn ordinary_programs_work() {
    let harness = Harness::new(
        "import asyncio, multiprocessing as mp, multiprocessing.shared_memory as shm, os, pathlib, shutil, signal
import sqlite3, ssl, subprocess, tempfile, threading, time, uuid, zoneinfo
async def main():
    loop = asyncio.get_running_loop()
    p = await asyncio.create_subprocess_exec('/bin/echo', 'sub', stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate()
    return out.decode().strip(), await loop.run_in_executor(None, lambda: 7)
def square(x): return x * x
if __name__ == '__main__':
    done = [asyncio.run(main())]
    done.append(subprocess.run('echo shell | tr a-z A-Z', shell=True, capture_output=True, text=True).stdout.strip())
    with mp.get_context('fork').Pool(2) as pool: done.append(pool.map(square, [1, 2, 3]))
    s = shm.SharedMemory(create=True, size=4096); s.buf[0] = 9; done.append(s.buf[0]); s.close(); s.unlink()
    ssl.create_default_context()
    db = sqlite3.connect('/tmp/a.db'); db.execute('pragma journal_mode=wal'); db.execute('create table t(x)')
    db.execute('insert into t values (1)'); db.commit()
    done.append(db.execute('select count(*) from t').fetchone())
    with tempfile.TemporaryDirectory() as d:
        a = pathlib.Path(d, 'a'); a.write_text('x'); shutil.copy2(a, d + '/b'); os.mkfifo(d + '/f'); os.symlink('a', d + '/l')
    t = threading.Thread(target=time.sleep, args=(0.01,)); t.start(); t.join()
    signal.signal(signal.SIGALRM, lambda *a: done.append('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.1)
    with open('/dev/stdout', 'w') as out: out.write('by path ')
    print('by number', flush=True)
    done.append([len(os.urandom(8)), str(uuid.uuid4())[14], os.cpu_count() > 0, zoneinfo.ZoneInfo('UTC').key])
    say(*done)",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    let expected = json!([
        ["sub", 7],
        "SHELL",
        [1, 4, 9],
        9,
        [1],
        "alarm",
        [8, "4", true, "UTC"]
    ]);
    assert_eq!(answer, expected);
    assert_eq!(sandbox.printed(), "by path by number\n");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn tmp_is_full_when_it_is_full() {
    let harness = Harness::new(
        "import os
def fill(path):
    try:
        with open(path, 'wb', buffering=0) as f:
            for i in range(4096): f.write(bytes(1 << 20))
    except OSError as e: return e.errno, os.path.getsize(path) >> 20
say(*fill('/tmp/a')); os.unlink('/tmp/a'); say(*fill('/dev/shm/a'))",
    );
    let sandbox = harness.create().await;
    // ENOSPC at a half and a quarter of the 64 MiB.
    assert_eq!(sandbox.hear().await, json!([28, 32]));
    assert_eq!(sandbox.hear().await, json!([28, 16]));
    harness.end(sandbox).await;
}

#[tokio::test]
async fn a_fork_bomb_stops_at_the_limit() {
    let harness = Harness::new(
        "import os, time
made = 0
try:
    while True:
        if os.fork() == 0: time.sleep(600); os._exit(0)
        made += 1
except OSError as e: say(made, e.errno)",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.hear().await;
    assert_eq!(answer[1], 11, "EAGAIN");
    // 32 for the template and 64 for each of two instances, PID 1 and the template among them; on v2 the bomb is in
    // the template's leaf, which has no limit of its own.
    let made = answer[0].as_i64().expect("a number");
    assert!((150..160).contains(&made), "{made}");
    // While this one is full, another is made and answers.
    let other = Harness::new("say('well')\nimport time; time.sleep(600)");
    let second = other.create().await;
    assert_eq!(second.hear().await[0], "well");
    other.end(second).await;
    harness.end(sandbox).await;
}

/// A template that forks on command, as the real one does, and instances that wait for a byte before they go on.
const FORKING: &str = "import ctypes, os, time
def instance(order, go):
    if order == b'stray' and os.fork() == 0:
        # A chain of four in a session of its own.
        os.setsid()
        for _ in range(3):
            if os.fork() != 0: break
        time.sleep(600)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    say(os.getpid())
    os.read(go, 1)
    eaten = []
    while order == b'eat': eaten.append(bytes(1 << 20) + b'x')
    time.sleep(600)
while True:
    order = control.recv(64)
    if order == b'go': os.write(start, b'g'); continue
    go, start = os.pipe()
    if os.fork() == 0: instance(order, go)
";

/// Waits until a process is in its cell.
async fn attached(pid: u32) {
    until("it is in its cell", || {
        std::fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .is_ok_and(|cgroups| cgroups.contains("/cell-"))
    })
    .await;
}

#[tokio::test]
async fn memory_beyond_a_cells_limit_kills_the_instance_alone() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    let cell = sandbox.live.cell().await.expect("a cell");
    sandbox.say(b"eat").await;
    let inner = sandbox.hear().await[0].as_i64().expect("pid");
    let pid = host_pid(harness.uid(), inner).expect("the instance");
    cell.attach(pid);
    attached(pid).await;
    assert!(!cell.oom_killed());
    sandbox.say(b"go").await;
    until("it is killed", || cell.oom_killed()).await;
    assert!(!sandbox.live.template_oom_killed());
    // The template forks on.
    sandbox.say(b"wait").await;
    assert!(sandbox.hear().await[0].is_i64());
    drop(cell);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn killing_an_instance_kills_its_strays() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    // Another instance, which has to stay.
    sandbox.say(b"wait").await;
    sandbox.hear().await;
    let before = processes_of(harness.uid()).len();
    let cell = sandbox.live.cell().await.expect("a cell");
    sandbox.say(b"stray").await;
    let inner = sandbox.hear().await[0].as_i64().expect("pid");
    until("the strays are there", || {
        processes_of(harness.uid()).len() == before + 5
    })
    .await;
    let pid = host_pid(harness.uid(), inner).expect("the instance");
    // Moved after it has forked, so that its strays are in the template's leaf: the worst case.
    cell.attach(pid);
    attached(pid).await;
    cell.kill();
    // The dead instance waits for the template to reap it, which this one does not do.
    until("only the strays are gone", || {
        processes_of(harness.uid()).len() == before + 1
    })
    .await;
    drop(cell);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn more_cells_than_are_prepared() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    let mut cells = Vec::new();
    for _ in 0..20 {
        cells.push(sandbox.live.cell().await.expect("a cell"));
    }
    let made = || cgroups_named(|name| name.starts_with("cell-")).len();
    assert!(made() >= 20);
    drop(cells);
    sandbox.live.cell().await.expect("one more");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn the_end_of_a_template_is_told() {
    for (program, how) in [
        (
            "import sys; sys.exit(3)",
            "the template exited with status 3",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "the template was killed by signal 9",
        ),
        (
            "import os; os.abort()",
            "the template was killed by signal 6",
        ),
        (
            "x = []\nwhile True: x.append(bytes(1 << 20) + b'x')",
            "the template ran out of memory",
        ),
    ] {
        let harness = Harness::new(program);
        let sandbox = harness.create().await;
        assert_eq!(sandbox.live.exited().await, how);
        assert_eq!(sandbox.live.exited().await, how, "asked again");
        let out_of_memory = how.ends_with("out of memory");
        assert_eq!(sandbox.live.template_oom_killed(), out_of_memory);
        harness.end(sandbox).await;
    }
}

#[tokio::test]
async fn a_failed_step_is_named_and_leaves_nothing() {
    let harness = Harness::new("");
    let refuse = async |change: fn(&mut hearth::sandbox::SandboxSpec)| {
        let mut spec = harness.spec();
        change(&mut spec);
        match harness.host.create(spec).await {
            Ok(_) => panic!("a sandbox"),
            Err(error) => error,
        }
    };
    let error = refuse(|spec| spec.argv = vec!["/usr/bin/no-such-program".into()]).await;
    let named = |detail: &str| detail.contains("/usr/bin/no-such-program");
    assert!(
        matches!(&error, SandboxError::Step { step, detail } if step == "exec" && named(detail)),
        "{error}"
    );
    let error = refuse(|spec| spec.code_dir = "/no/such/directory".into()).await;
    let named = |detail: &str| detail.contains("/no/such/directory");
    assert!(
        matches!(&error, SandboxError::Step { step, detail } if step == "mount" && named(detail)),
        "{error}"
    );
    let error = refuse(|spec| spec.id = "../x".into()).await;
    assert!(
        matches!(&error, SandboxError::Step { step, .. } if step == "specification"),
        "{error}"
    );
    let error = refuse(|spec| spec.network = Network::Outbound).await;
    assert!(matches!(error, SandboxError::Missing { .. }), "{error}");
    harness.finish().await;
}

#[tokio::test]
async fn dropping_is_destroying() {
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let sandbox = harness.create().await;
    sandbox.hear().await;
    let cell = sandbox.live.cell().await.expect("a cell");
    drop(sandbox);
    drop(cell);
    until("no process is left", || {
        processes_of(harness.uid()).is_empty()
    })
    .await;
    // And creations that nobody waits for.
    for pause in [0, 1, 5, 20] {
        let creating = harness.host.create(harness.spec());
        let _ = tokio::time::timeout(Duration::from_millis(pause), creating).await;
    }
    harness.finish().await;
}

#[tokio::test]
async fn pid_1_can_be_killed_from_outside() {
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let sandbox = harness.create().await;
    sandbox.hear().await;
    let init = processes_of(harness.uid() - 1);
    assert_eq!(init.len(), 1);
    let status = Command::new("/bin/kill")
        .args(["-9", &init[0].to_string()])
        .status();
    assert!(status.expect("kill").success());
    assert_eq!(
        sandbox.live.exited().await,
        "PID 1 of the sandbox was killed by signal 9"
    );
    assert_eq!(processes_of(harness.uid()), [0; 0]);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn the_host_says_what_it_can() {
    let harness = Harness::new("");
    let find = |name: &str| {
        let mut all = harness.host.capabilities().iter();
        match all.find(|capability| capability.name == name) {
            Some(capability) => capability.clone(),
            None => panic!("no {name}"),
        }
    };
    for name in ["userns", "landlock", "seccomp", "cgroup"] {
        assert!(find(name).available, "{name}");
    }
    let version = find("cgroup").version.expect("a version");
    assert!(["v1", "v2"].contains(&version.as_str()), "{version}");
    assert!(find("landlock").version.is_some());
    assert!(!find("network_outbound").available);
    let fast = find("cgroup_fast_attach");
    assert_ne!(fast.available, fast.reason.is_some());
    harness.finish().await;
}

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
        .args(["--exact", "a_server_to_be_killed", "--ignored"])
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
    let init = hearth::sandbox::find_init().expect("hearth-init");
    let host = match Host::start(&run, &init) {
        Ok(host) => host,
        Err(error) => panic!("{error}"),
    };
    assert!(!left(&run));
    assert_eq!(cgroups_named(|name| name.starts_with(&prefix)), [""; 0]);
    host.shutdown().await;
}

/// Figures, not a test: `cargo test -p hearth --test sandbox_host -- --ignored --nocapture how_long`.
#[tokio::test]
#[ignore = "prints figures"]
async fn how_long_a_sandbox_takes() {
    const TIMES: usize = 50;
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let shell = ["/bin/sh", "-c", "echo up >&3; sleep 600"].map(String::from);
    for (what, argv) in [("python3", None), ("sh", Some(shell.to_vec()))] {
        let (mut created, mut heard, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let mut spec = harness.spec();
            if let Some(argv) = &argv {
                spec.argv.clone_from(argv);
            }
            let start = Instant::now();
            let sandbox = harness.create_from(spec).await;
            created.push(start.elapsed());
            sandbox.hear_bytes().await;
            heard.push(start.elapsed());
            let start = Instant::now();
            sandbox.live.destroy().await;
            gone.push(start.elapsed());
        }
        for (step, times) in [
            ("created", &mut created),
            ("first message", &mut heard),
            ("destroyed", &mut gone),
        ] {
            times.sort_unstable();
            let (p50, p90) = (times[TIMES / 2], times[TIMES * 9 / 10]);
            writeln!(std::io::stdout(), "{what} {step}: p50 {p50:?} p90 {p90:?}").expect("print");
        }
    }
    harness.finish().await;
}
