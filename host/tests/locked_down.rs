//! What a process can still do once it has gone the server's way from root: nothing but the server's work.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use hearth_host::process::server::Server;
use hearth_host::process::{DataDir, ServerUser};
use hearth_host::protocol::{Message as _, Reply};
use hearth_init::wire;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Nobody's.
const USER: ServerUser = ServerUser {
    uid: 1_899_888_777,
    gid: 1_899_888_777,
};

/// What was tried, and how it went.
type Tried = (&'static str, io::Result<()>);

fn read(path: &str) -> io::Result<()> {
    fs::read(path).map(drop)
}

/// What types a command for the shell from which the host process was started. An error of the system call filter's is the
/// only one that counts: others depend on what standard output is.
fn type_into_terminal() -> io::Result<()> {
    let letter = b'x';
    // SAFETY: the call reads one byte, which is there.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCSTI, &raw const letter) };
    let error = io::Error::last_os_error();
    match (result, error.raw_os_error()) {
        (-1, Some(libc::ENOSYS)) => Err(error),
        _ => Ok(()),
    }
}

fn attempts() -> Vec<Tried> {
    let data = Path::new("/run/hearth-data");
    let socket = || {
        let address = "127.0.0.1:1".parse().map_err(io::Error::other)?;
        let timeout = std::time::Duration::from_secs(1);
        std::net::TcpStream::connect_timeout(&address, timeout).map(drop)
    };
    let raw_socket = || {
        let raw = rustix::net::socket(AddressFamily::INET, SocketType::RAW, None);
        Ok(raw.map(drop)?)
    };
    let mount = || {
        let flags = rustix::mount::MountFlags::empty();
        Ok(rustix::mount::mount("tmpfs", "/mnt", "tmpfs", flags, None)?)
    };
    let signal = || {
        let init = rustix::process::Pid::INIT;
        Ok(rustix::process::test_kill_process(init)?)
    };
    let root = || {
        let root = rustix::thread::Uid::ROOT;
        Ok(rustix::thread::set_thread_res_uid(root, root, root)?)
    };
    let outlive = || Ok(rustix::process::set_parent_process_death_signal(None)?);
    vec![
        ("/etc/shadow", read("/etc/shadow")),
        ("/root", fs::read_dir("/root").map(drop)),
        ("/tmp", fs::read_dir("/tmp").map(drop)),
        ("/proc/1/mem", read("/proc/1/mem")),
        ("/proc/1/environ", read("/proc/1/environ")),
        ("/proc/1/maps", read("/proc/1/maps")),
        ("write to /tmp", fs::write("/tmp/hearth-locked-down", "")),
        (
            "write to /dev/shm",
            fs::write("/dev/shm/hearth-locked-down", ""),
        ),
        (
            "write to /proc",
            fs::write("/proc/self/oom_score_adj", "900"),
        ),
        ("run", fs::write("/run/new", "")),
        ("program", Command::new("/bin/true").status().map(drop)),
        ("connect", socket()),
        ("bind", std::net::TcpListener::bind("127.0.0.1:0").map(drop)),
        (
            "local socket",
            std::os::unix::net::UnixDatagram::unbound().map(drop),
        ),
        ("raw socket", raw_socket()),
        ("mount", mount()),
        ("signal", signal()),
        ("root", root()),
        ("outlive the host process", outlive()),
        ("type into a terminal", type_into_terminal()),
        ("a session's terminal", read("/dev/tty")),
        ("remove run", fs::rename(data.join("run"), data.join("x"))),
        (
            "remove images",
            fs::rename(data.join("images"), data.join("y")),
        ),
        ("write images", fs::write(data.join("images/x"), "")),
        ("remove lock", fs::remove_file(data.join("lock"))),
        ("read lock", read("/run/hearth-data/lock")),
        ("read run", fs::read_dir(data.join("run")).map(drop)),
    ]
}

fn allowed() -> Vec<Tried> {
    let data = Path::new("/run/hearth-data");
    vec![
        ("a new directory", fs::create_dir(data.join("code"))),
        ("a new file", fs::write(data.join("code/main.py"), "x")),
        ("its content", read("/run/hearth-data/code/main.py")),
        (
            "another name",
            fs::rename(data.join("code/main.py"), data.join("z")),
        ),
        ("removal", fs::remove_file(data.join("z"))),
        ("images", read("/run/hearth-data/images/one")),
        ("a runtime", read("/run/hearth-runtimes/file")),
        ("a library", fs::read_dir("/usr/lib").map(drop)),
        ("another process", read("/proc/1/stat")),
        ("the same", read("/proc/1/status")),
        ("memory", read("/proc/meminfo")),
        ("itself", read("/proc/self/stat")),
        (
            "questions to DNS servers",
            std::net::UdpSocket::bind("127.0.0.1:0").map(drop),
        ),
    ]
}

/// Not a test: the process that the next one starts.
#[test]
#[ignore = "started by the test that looks at it"]
fn a_process_that_is_locked_down() {
    if std::env::var_os("HEARTH_HOST_DATA_DIR").is_none() {
        return;
    }
    // Only this thread is: that is enough, and no other makes system calls for it.
    let server = Server::begin().expect("privileges are dropped");
    server.lock_down(&[53]).expect("locked down");
    let status = fs::read_to_string("/proc/thread-self/status").expect("its status");
    let mut said = status;
    for (what, tried) in attempts() {
        said += &format!("refused {what}: {}\n", tried.is_err());
    }
    for (what, tried) in allowed() {
        said += &format!("allowed {what}: {tried:?}\n");
    }
    said += &format!(
        "allowed figures: {:?}\n",
        std::panic::catch_unwind(rustix::param::clock_ticks_per_second)
    );
    let threads = std::thread::spawn(|| 7).join();
    said += &format!("allowed threads: {threads:?}\n");
    fs::write("/run/hearth-data/said", said).expect("it may write here");
}

#[test]
fn nothing_but_the_servers_work_is_left_to_it() {
    // As in a home directory that is root's alone: the way there is closed.
    let closed = tempfile::tempdir().expect("a directory");
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).expect("closed");
    let runtimes = closed.path().join("runtimes");
    fs::create_dir(&runtimes).expect("mkdir");
    fs::write(runtimes.join("file"), "").expect("write");
    let data = closed.path().join("data");
    let data_dir = DataDir::prepare(&data, USER).expect("a data directory");
    for name in ["run", "images"] {
        fs::create_dir(data.join(name)).expect("mkdir");
    }
    fs::set_permissions(data.join("run"), fs::Permissions::from_mode(0o700)).expect("closed");
    fs::write(data.join("images/one"), "").expect("write");

    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("a socket");
    let listener: OwnedFd = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a listener")
        .into();
    // It is handed on, and nothing else here.
    let gateway = ours.try_clone().expect("a descriptor");
    let start = Reply::Start {
        uid: USER.uid,
        gid: USER.gid,
        separate: false,
        ingress: false,
        brokers: false,
    };
    let fds = [data_dir.lock.as_fd(), gateway.as_fd(), listener.as_fd()];
    wire::send(&ours, &start.encode(), &fds).expect("sent");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_process_that_is_locked_down", "--ignored"])
        .env("HEARTH_HOST_DATA_DIR", &data_dir.path)
        .env("HEARTH_HOST_RUNTIMES", &runtimes)
        .stdin(Stdio::from(theirs))
        .output()
        .expect("started");
    let said = fs::read_to_string(data.join("said"));
    let said = said.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let field = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    let uid = USER.uid.to_string();
    assert_eq!(field("Uid:"), [&*uid; 4].join("\t"));
    assert_eq!(field("Gid:"), [&*uid; 4].join("\t"));
    assert_eq!(field("Groups:"), "");
    let refused: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("refused "))
        .collect();
    assert!(refused.len() > 20, "{said}");
    for line in refused {
        assert!(line.ends_with(": true"), "{line}");
    }
    let allowed: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("allowed "))
        .collect();
    assert!(allowed.len() > 12, "{said}");
    for line in allowed {
        assert!(line.contains(": Ok("), "{line}");
    }
    let made = fs::metadata(data.join("said")).expect("it is there");
    assert_eq!((made.uid(), made.gid()), (USER.uid, USER.gid));
}
