//! Limits that several sandboxes share, as the kernel has them: the test is the host process and the server.

mod conversation;

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;

use conversation::{Conversation, become_gateway};
use hearth_gateway::protocol::{KernelPolicy, NetworkLimits, Reply, Request};
use hearth_host::SandboxError;
use hearth_host::protocol::{FromGateway, Message as _, ToGateway};
use hearth_init::wire;
use hearth_testkit::namespaces::Namespace;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, netlink};

#[test]
#[ignore = "started by the test that talks to it"]
fn a_gateway() {
    become_gateway(|| ());
}

fn policy(group: u64, connections: u32) -> KernelPolicy {
    KernelPolicy {
        group,
        limits: NetworkLimits {
            connections,
            new_per_second: 77,
            bytes_per_second: 0,
        },
        ..KernelPolicy::default()
    }
}

/// What the host process opens in a sandbox.
fn handles(inside: &Namespace) -> Vec<OwnedFd> {
    let open = || {
        let socket = |protocol| {
            let (family, flags) = (AddressFamily::NETLINK, SocketFlags::NONBLOCK);
            rustix::net::socket_with(family, SocketType::RAW, flags, protocol)
        };
        let namespace = fs::File::open("/proc/thread-self/ns/net")?.into();
        Ok(vec![
            namespace,
            socket(None)?,
            socket(Some(netlink::SOCK_DIAG))?,
        ])
    };
    inside.within(open).expect("opened")
}

fn attach(talk: &Conversation, key: u64, inside: &Namespace, policy: &KernelPolicy) {
    let (policy, handles) = (policy.seal().expect("sealed"), handles(inside));
    let fds: Vec<_> = [&policy]
        .into_iter()
        .chain(&handles)
        .map(|fd| fd.as_fd())
        .collect();
    wire::send(&talk.host, &ToGateway::Attach(key).encode(), &fds).expect("sent");
    let said = talk.to_host().expect("an answer");
    assert!(
        matches!(said, FromGateway::Attached(attached, _) if attached == key),
        "{said:?}"
    );
}

fn detach(talk: &Conversation, key: u64) {
    wire::send(&talk.host, &ToGateway::Detach(key).encode(), &[]).expect("sent");
    assert_eq!(talk.to_host(), Some(FromGateway::Detached(key)));
}

fn set(talk: &Conversation, key: u64, policy: &KernelPolicy) -> Reply {
    let policy = policy.seal().expect("sealed");
    talk.send(&Request::SetPolicy(1, key).encode(), &[policy.as_fd()]);
    talk.reply().expect("an answer").0
}

/// The rules in the namespace of the thread that serves.
fn rules(talk: &Conversation) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", talk.process.id())).expect("threads");
    let list = |task: fs::DirEntry| {
        let namespace = task.path().join("ns/net");
        let output = Command::new("nsenter")
            .arg(format!("--net={}", namespace.display()))
            .args(["nft", "-s", "list", "ruleset"])
            .output()
            .expect("nsenter");
        // The uplink's name: before it is there, its index.
        let rules = String::from_utf8(output.stdout).expect("text");
        rules.replace("\"up\"", "1000")
    };
    let all = tasks.flatten().map(list);
    all.into_iter()
        .find(|rules| rules.contains("chain spoof"))
        .expect("the gateway's rules")
}

#[test]
fn a_group_has_its_limits_once_and_ends_with_its_last_sandbox() {
    const GROUP: u64 = u64::MAX;
    let talk = Conversation::begin();
    talk.reply().expect("its first word");
    let inside = [(); 3].map(|()| Namespace::make("box").expect("a namespace"));
    let before = rules(&talk);
    assert!(!before.contains("group"), "{before}");
    attach(&talk, 1, &inside[0], &policy(GROUP, 5));
    attach(&talk, 2, &inside[1], &policy(GROUP, 9));
    attach(&talk, 3, &inside[2], &policy(8, 30));
    let has = |rules: &str, text: &str| rules.matches(text).count();
    let limits = |number: u32| format!("ct count over {number} ");
    let shared = rules(&talk);
    for chain in ["limits", "out", "in"] {
        assert_eq!(has(&shared, &format!("jump {chain}-group{GROUP}\n")), 2);
        assert_eq!(has(&shared, &format!("jump {chain}-group8\n")), 1);
        assert_eq!(has(&shared, &format!("chain {chain}-group{GROUP} ")), 1);
    }
    assert_eq!(has(&shared, &limits(5)), 1, "{shared}");
    assert_eq!(
        has(&shared, &limits(9)),
        0,
        "those of the first are in force"
    );
    assert_eq!(has(&shared, &limits(30)), 1);
    assert_eq!(has(&shared, "limit rate over 77/second"), 2);

    // A hostile server can neither change another group's limits nor move a sandbox into it.
    for (key, group) in [(3, GROUP), (1, 8), (1, 0)] {
        let reply = set(&talk, key, &policy(group, 1));
        let refused = matches!(&reply, Reply::Refused(1, SandboxError::Step { step, .. }) if step == "specification");
        assert!(refused, "{reply:?}");
    }
    assert_eq!(rules(&talk), shared);
    assert_eq!(set(&talk, 2, &policy(GROUP, 6)), Reply::Done(1));
    assert_eq!(has(&rules(&talk), &limits(5)), 1);
    assert_eq!(set(&talk, 1, &policy(GROUP, 7)), Reply::Done(1));
    let changed = rules(&talk);
    assert_eq!(
        (has(&changed, &limits(5)), has(&changed, &limits(7))),
        (0, 1)
    );

    // The second is the oldest now.
    detach(&talk, 1);
    let left = rules(&talk);
    assert_eq!((has(&left, &limits(7)), has(&left, &limits(6))), (0, 1));
    detach(&talk, 2);
    let left = rules(&talk);
    assert!(!left.contains(&format!("group{GROUP}")), "{left}");
    assert_eq!(has(&left, &limits(30)), 1);
    detach(&talk, 3);
    assert_eq!(rules(&talk), before);
    rustix::net::shutdown(&talk.host, Shutdown::Both).expect("shut down");
    let (status, said) = talk.end();
    assert!(status.success(), "{said}");
}
