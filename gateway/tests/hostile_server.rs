//! What a compromised server can say to the gateway, and what comes of it.

mod conversation;

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use conversation::{Conversation, TIMEOUT, become_gateway};
use hearth_gateway::protocol::policy::TTL_MAX;
use hearth_gateway::protocol::{KernelPolicy, Protocol, Reply, Request, Resolved};
use hearth_host::SandboxError;
use hearth_host::protocol::{FromGateway, Message as _, ToGateway};
use hearth_init::wire;
use rustix::net::Shutdown;

#[test]
#[ignore = "started by the tests that talk to it"]
fn a_gateway() {
    become_gateway(|| ());
}

fn begin() -> Conversation {
    let talk = Conversation::begin();
    let (up, fds) = talk.reply().expect("its first word");
    let Reply::Up(capability) = up else {
        panic!("{up:?}");
    };
    assert!(capability.available, "{capability:?}");
    assert_eq!(fds.len(), 2, "the reports");
    talk
}

#[test]
fn requests_about_sandboxes_that_have_no_network_are_refused() {
    let talk = begin();
    let policy = KernelPolicy::default().seal().expect("sealed");
    let resolved = Resolved {
        address: "192.0.2.1".parse().expect("an address"),
        protocol: Protocol::Tcp,
        ports: 443..=443,
        ttl: Duration::from_secs(1),
    };
    for key in [0, 1, u64::MAX] {
        talk.send(&Request::SetPolicy(1, key).encode(), &[policy.as_fd()]);
        talk.say(&Request::Allow(2, key, resolved.clone()));
        talk.say(&Request::Counters(3, key));
        for sequence in 1..=3 {
            let (reply, _) = talk.reply().expect("an answer");
            assert_eq!(reply, Reply::Refused(sequence, SandboxError::Gone));
        }
    }
    let step = |request: &Request| {
        talk.say(request);
        match talk.reply().expect("an answer").0 {
            Reply::Refused(_, SandboxError::Step { step, .. }) => step,
            other => panic!("{other:?}"),
        }
    };
    let wrong = |change: fn(&mut Resolved)| {
        let mut changed = resolved.clone();
        change(&mut changed);
        step(&Request::Allow(4, 1, changed))
    };
    assert_eq!(wrong(|it| it.ports = 1000..=2000), "specification");
    assert_eq!(wrong(|it| it.ttl = TTL_MAX * 2), "specification");
    assert_eq!(wrong(|it| it.ttl = Duration::ZERO), "specification");
    // One descriptor, but no policy: that is only refused.
    let null = fs::File::open("/dev/null").expect("a device");
    talk.send(&Request::SetPolicy(5, 1).encode(), &[null.as_fd()]);
    let (reply, _) = talk.reply().expect("an answer");
    assert!(matches!(reply, Reply::Refused(5, _)), "{reply:?}");
    // The server's end is the host process's business; its own end is the gateway's.
    rustix::net::shutdown(&talk.server, Shutdown::Both).expect("shut down");
    let detach = ToGateway::Detach(7).encode();
    wire::send(&talk.host, &detach, &[]).expect("sent");
    assert_eq!(talk.to_host(), Some(FromGateway::Detached(7)));
    rustix::net::shutdown(&talk.host, Shutdown::Both).expect("shut down");
    let (status, said) = talk.end();
    assert!(status.success(), "{said}");
}

#[test]
fn a_message_that_is_none_ends_it() {
    let good = Request::Counters(1, 1).encode();
    let mut unknown = good.clone();
    unknown[0] = 99;
    let mut padded = good.clone();
    padded[Request::BYTES - 1] = 1;
    let longer = [&good[..], &[0]].concat();
    let shorter = good[..good.len() - 1].to_vec();
    for bytes in [shorter, longer, unknown, padded, vec![1]] {
        let talk = begin();
        talk.send(&bytes, &[]);
        assert!(talk.to_host().is_none(), "it hangs up");
        let (status, said) = talk.end();
        assert!(!status.success(), "{said}");
        assert!(said.contains("Malformed"), "{said}");
    }
}

#[test]
fn descriptors_that_do_not_belong_there_end_it() {
    let null = fs::File::open("/dev/null").expect("a device");
    for (request, count) in [
        (Request::Counters(1, 1), 1),
        (Request::SetPolicy(1, 1), 0),
        (Request::SetPolicy(1, 1), 2),
    ] {
        let talk = begin();
        talk.send(&request.encode(), &vec![null.as_fd(); count]);
        let (status, said) = talk.end();
        assert!(!status.success(), "{count}: {said}");
        assert!(said.contains("Malformed"), "{count}: {said}");
    }
}

#[test]
fn a_server_that_does_not_read_is_given_up() {
    let talk = begin();
    rustix::net::sockopt::set_socket_send_buffer_size(&talk.server, 1 << 20).expect("larger");
    let begun = Instant::now();
    loop {
        match wire::send(&talk.server, &Request::Counters(1, 1).encode(), &[]) {
            Ok(()) => assert!(begun.elapsed() < TIMEOUT, "it is not given up"),
            Err(error) => {
                let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
                assert!(gone.contains(&error.kind()), "{error}");
                break;
            }
        }
    }
    let (status, said) = talk.end();
    assert!(!status.success() && said.contains("Deaf"), "{said}");
}
