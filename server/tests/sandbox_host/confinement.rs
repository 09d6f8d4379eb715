//! What is there inside a sandbox, and what is refused.

use serde_json::{Value, json};

use crate::harness::Harness;

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
    let answer = sandbox.receive().await;
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
    let answer = sandbox.receive().await;
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
    let answer = sandbox.receive().await;
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
  'raw': sock(socket.AF_INET, socket.SOCK_RAW, 1), 'sctp': sock(socket.AF_INET, socket.SOCK_STREAM, 132),
  'netlink': sock(socket.AF_NETLINK, socket.SOCK_RAW, 16),
  'packet': sock(socket.AF_PACKET, socket.SOCK_RAW), 'vsock': sock(40),
}, {'clone3': call('syscall', 435, 0, 0), 'io_uring_setup': call('syscall', 425, 1, 0)})",
    );
    let sandbox = harness.create().await;
    let answer = sandbox.receive().await;
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
    let answer = sandbox.receive().await;
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
