//! What a process can still do once it has gone the gateway's way from root: its network, and nothing else.

mod conversation;

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::Command;

use conversation::{Conversation, become_gateway};
use hearth_host::GATEWAY_USER;
use rustix::net::{AddressFamily, Shutdown, SocketType, netlink};
use rustix::process::{Pid, Signal};
use rustix::thread::Uid;

/// What is printed when all was tried.
const DONE: &str = "all was tried";

fn attempts() -> Vec<(&'static str, io::Result<()>)> {
    let read = |path: &str| fs::read(path).map(drop);
    let socket = |family, kind, protocol| {
        let made = rustix::net::socket(family, kind, protocol);
        Ok(made.map(drop)?)
    };
    let mount = || {
        let flags = rustix::mount::MountFlags::empty();
        Ok(rustix::mount::mount("tmpfs", "/", "tmpfs", flags, None)?)
    };
    let unshare = || hearth_gateway::sys::unshare_network();
    let root = || {
        Ok(rustix::thread::set_thread_res_uid(
            Uid::ROOT,
            Uid::ROOT,
            Uid::ROOT,
        )?)
    };
    let signal = || Ok(rustix::process::kill_process(Pid::INIT, Signal::CONT)?);
    let outlive = || Ok(rustix::process::set_parent_process_death_signal(None)?);
    let (inet, stream) = (AddressFamily::INET, SocketType::STREAM);
    vec![
        ("the root directory", fs::read_dir("/").map(drop)),
        ("/etc", read("/etc/passwd")),
        ("/proc", read("/proc/self/status")),
        ("/sys", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("write to /tmp", fs::write("/tmp/hearth-gateway", "")),
        ("a new file", fs::write("/new", "")),
        ("program", Command::new("/bin/true").status().map(drop)),
        ("TCP", socket(inet, stream, None)),
        ("UDP", socket(inet, SocketType::DGRAM, None)),
        ("raw socket", socket(inet, SocketType::RAW, None)),
        (
            "packet",
            socket(AddressFamily::PACKET, SocketType::RAW, None),
        ),
        ("local", socket(AddressFamily::UNIX, stream, None)),
        (
            "netlink",
            socket(
                AddressFamily::NETLINK,
                SocketType::RAW,
                Some(netlink::SOCK_DIAG),
            ),
        ),
        ("mount", mount()),
        ("a namespace", unshare()),
        ("signal", signal()),
        ("root", root()),
        ("outlive the host process", outlive()),
    ]
}

#[test]
#[ignore = "started by the test that looks at it"]
fn a_gateway() {
    become_gateway(|| {
        let mut said = String::new();
        for (what, tried) in attempts() {
            let how = if tried.is_err() { "refused" } else { "done" };
            said += &format!("\n{what}: {how}\n");
        }
        said += DONE;
        io::stdout().write_all(said.as_bytes()).expect("written");
        io::stdout().write_all(b"\n").expect("written");
    });
}

#[test]
fn nothing_but_the_network_is_left_to_it() {
    let mut talk = Conversation::begin();
    talk.reply().expect("its first word");
    let printed = BufReader::new(talk.process.stdout.take().expect("piped"));
    let lines = printed.lines().map_while(Result::ok);
    let said: Vec<_> = lines.take_while(|line| line != DONE).collect();
    let said: Vec<_> = said.iter().filter(|line| line.contains(": ")).collect();
    assert_eq!(said.len(), 18, "{said:#?}");
    for line in &said {
        assert!(line.ends_with(": refused"), "{line}");
    }
    // The threads that serve: not those of the test's frame around them.
    let tasks = fs::read_dir(format!("/proc/{}/task", talk.process.id())).expect("threads");
    let mut serving = 0;
    for task in tasks.flatten() {
        let status = fs::read_to_string(task.path().join("status")).expect("a thread");
        let fields: HashMap<_, _> = status
            .lines()
            .filter_map(|line| line.split_once(":\t"))
            .collect();
        if fields["Seccomp"] == "0" {
            continue;
        }
        serving += 1;
        let id = GATEWAY_USER.uid.to_string();
        assert_eq!(fields["Uid"], [&*id; 4].join("\t"));
        assert_eq!(fields["Gid"], [&*id; 4].join("\t"));
        assert_eq!(fields["Groups"].trim(), "");
        for set in ["CapPrm", "CapEff"] {
            assert_eq!(fields[set], "0000000000001000", "{set}: CAP_NET_ADMIN");
        }
        for set in ["CapInh", "CapBnd", "CapAmb"] {
            assert_eq!(fields[set], "0000000000000000", "{set}");
        }
        assert_eq!(fields["NoNewPrivs"], "1");
        assert_eq!(fields["Seccomp"], "2");
    }
    assert_eq!(serving, 2, "it and what removes");
    rustix::net::shutdown(&talk.host, Shutdown::Both).expect("shut down");
    talk.process.wait().expect("a child");
}
