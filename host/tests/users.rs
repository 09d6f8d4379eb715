//! What one sandbox leaves is no other's: neither its neighbour's, nor that of a later one with the same user.

mod conversation;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use hearth_host::protocol::{Key, Reply, Request};
use rustix::io::{Errno, ioctl_fionbio};

use conversation::Conversation;

/// Leaves something wherever a function may: files, shared memory and semaphores of System V, a queue of POSIX', an abstract
/// socket, a lock, a process. Says what it finds of that before.
const SCRIPT: &str = r#"
import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
found = []
for path in ["/tmp", "/dev/shm", "/var/task"]:
    found += [f"{path}/{name}" for name in sorted(os.listdir(path)) if name != "main"]
for name, get in [("shm", lambda: libc.shmget(4711, 4096, 0)), ("sem", lambda: libc.semget(4711, 1, 0)), ("msg", lambda: libc.msgget(4711, 0))]:
    if get() != -1:
        found.append(name)
try:
    probe = socket.socket(socket.AF_UNIX)
    probe.connect("\0left")
    found.append("socket")
except OSError:
    pass
mine = os.getpid()
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (1, mine):
        found.append(f"process {name}")
print("found", found, flush=True)
for path in ["/tmp/left", "/dev/shm/left"]:
    open(path, "w").write("secret")
left = [libc.shmget(4711, 4096, 0o1666), libc.semget(4711, 1, 0o1666), libc.msgget(4711, 0o1666)]
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0left")
listener.listen()
print("left", os.path.getsize("/tmp/left"), flush=True)
time.sleep(600)
"#;

/// Makes a sandbox that runs the script, and returns what it has found.
fn look_and_leave(talk: &Conversation, pair: u32) -> (Key, String) {
    let mut papers = talk.papers();
    papers.argv = ["/usr/bin/python3", "-I", "-S", "-c", SCRIPT]
        .map(String::from)
        .to_vec();
    let (key, stdout) = match talk.ask(talk.order(pair), &papers) {
        (Reply::Created { key, .. }, fds) => (key, fds.into_iter().nth(1).expect("its stdout")),
        other => panic!("{other:?}"),
    };
    let said = read_until(stdout, "left ");
    assert!(said.contains("left 6"), "{said}");
    (key, said.lines().next().expect("a line").to_owned())
}

fn read_until(stdout: OwnedFd, mark: &str) -> String {
    ioctl_fionbio(&stdout, false).expect("a pipe");
    let mut stdout = File::from(stdout);
    let mut said = String::new();
    let mut bytes = [0; 4096];
    while !(said.contains(mark) && said.ends_with('\n')) {
        let length = match stdout.read(&mut bytes) {
            Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => continue,
            read => read.expect("a pipe"),
        };
        assert_ne!(length, 0, "it has ended: {said}");
        said += &String::from_utf8_lossy(&bytes[..length]);
    }
    said
}

#[test]
fn nothing_passes_from_one_sandbox_to_another() {
    let talk = Conversation::begin();
    let (first, found) = look_and_leave(&talk, 0);
    assert_eq!(found, "found []");
    // A neighbour, while the first one lives.
    let (_, found) = look_and_leave(&talk, 1);
    assert_eq!(found, "found []");
    // And a successor that has the first one's user.
    talk.say(&Request::Destroy(first));
    while talk.receive().0 != Reply::Destroyed(first) {}
    let (_, found) = look_and_leave(&talk, 0);
    assert_eq!(found, "found []");
    talk.hang_up();
}
