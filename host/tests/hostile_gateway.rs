//! What a compromised gateway can say to the host, and what comes of it. The gateways here are false ones: this program, which
//! a host starts as `gateway`, so that it runs the tests with that word in their names.

mod conversation;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use hearth_host::HostProcessError;
use hearth_host::memfd::sealed;
use hearth_host::peer::PeerError;
use hearth_host::process::socket_of_stdin;
use hearth_host::protocol::papers::read_sealed;
use hearth_host::protocol::{FromGateway, Key, Message as _, Reply, Request, ToGateway};
use hearth_init::wire;

use conversation::{Conversation, processes_of, until};

/// Not a test: what a host of these tests starts.
#[test]
fn a_false_gateway() {
    let Ok(Some(host)) = socket_of_stdin() else {
        return;
    };
    let (start, mut fds) = receive(&host).expect("its first message");
    assert_eq!(start, ToGateway::Start);
    let role = read_sealed(fds.remove(0)).expect("its role");
    let say = |said: &FromGateway| wire::send(&host, &said.encode(), &[]).expect("sent");
    if role == b"mute" {
        return;
    }
    while let Some((order, fds)) = receive(&host) {
        match (order, &role[..]) {
            (ToGateway::Attach(_), b"malformed") => {
                wire::send(&host, b"?", &[]).expect("sent");
            }
            (ToGateway::Attach(_), b"gone") => return,
            (ToGateway::Attach(_), b"hanging") => {}
            (ToGateway::Attach(key), _) => {
                assert_eq!(fds.len(), 4);
                for other in [key + 1, 1 << 40, Key::MAX] {
                    say(&FromGateway::Attached(other, 9));
                    say(&FromGateway::Detached(other));
                }
                say(&FromGateway::Detached(key));
                say(&FromGateway::Attached(key, 7));
                say(&FromGateway::Attached(key, 8));
                say(&FromGateway::Detached(key));
                say(&FromGateway::Failed(key, hearth_host::SandboxError::Gone));
            }
            (ToGateway::Detach(key), _) => say(&FromGateway::Detached(key)),
            (ToGateway::Start, _) => {}
        }
    }
}

fn receive(host: &OwnedFd) -> Option<(ToGateway, Vec<OwnedFd>)> {
    let mut bytes = [0; ToGateway::BYTES];
    match wire::receive(host, &mut bytes) {
        Ok((0, _)) => None,
        Ok((length, fds)) => Some((ToGateway::decode(&bytes[..length]).expect("an order"), fds)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
        Err(error) => panic!("{error}"),
    }
}

/// Asks for a sandbox with a network. The host cannot know that this is no policy.
fn ask(talk: &Conversation) {
    let papers = talk.papers().seal().expect("sealed");
    let policy = sealed(b"what a gateway reads").expect("sealed");
    let mut order = talk.order(0);
    order.network = true;
    let create = Request::Create(1, order).encode();
    talk.send(&create, &[papers.as_fd(), policy.as_fd()]);
}

#[test]
fn what_it_says_of_other_sandboxes_and_at_other_times_is_passed_over() {
    let talk = Conversation::begin_with(b"liar");
    ask(&talk);
    let (reply, fds) = talk.receive();
    let Reply::Created {
        key,
        interface,
        uid,
        ..
    } = reply
    else {
        panic!("{reply:?}");
    };
    assert_eq!((interface, fds.len()), (7, 5));
    talk.say(&Request::InstanceCgroup(2, key));
    while !matches!(talk.receive().0, Reply::InstanceCgroup(2, ..)) {}
    assert!(!processes_of(uid).is_empty(), "it runs");
    talk.say(&Request::Destroy(key));
    while talk.receive().0 != Reply::Destroyed(key) {}
    talk.hang_up();
}

#[test]
fn its_end_is_everybodys() {
    for (role, is_expected) in [
        (
            &b"malformed"[..],
            (|ended| matches!(ended, HostProcessError::Gateway(PeerError::Malformed(_))))
                as fn(&HostProcessError) -> bool,
        ),
        (b"gone", |ended| {
            matches!(ended, HostProcessError::NoGateway)
        }),
        (b"mute", |ended| {
            matches!(ended, HostProcessError::NoGateway)
        }),
        // Half a minute later.
        (b"hanging", |ended| {
            matches!(ended, HostProcessError::NoGateway)
        }),
    ] {
        let talk = Conversation::begin_with(role);
        let uid = talk.order(0).uid_base + 1;
        if role != b"mute" {
            ask(&talk);
        }
        let ended = talk.end().expect_err("an error");
        assert!(is_expected(&ended), "{ended:?}");
        until("no process is left", || processes_of(uid).is_empty());
    }
}

#[test]
fn without_one_no_sandbox_has_a_network() {
    let talk = Conversation::begin();
    ask(&talk);
    let (reply, _) = talk.receive();
    let Reply::Refused(1, error) = reply else {
        panic!("{reply:?}");
    };
    assert!(error.to_string().contains("network"), "{error}");
    talk.create(1);
    talk.hang_up();
}
