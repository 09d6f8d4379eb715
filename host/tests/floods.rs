//! A compromised server that asks for more and more: what the host keeps for it has an end.

mod conversation;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hearth_host::peer::PeerError;
use hearth_host::protocol::request::Target;
use hearth_host::protocol::{Message as _, Reply, Request};
use hearth_host::{HostProcessError, SandboxError};
use hearth_init::wire;
use hearth_testkit::{figures, threads};
use rustix::net::sockopt;

use conversation::{Conversation, TIMEOUT, processes_of};

/// More than the host keeps of anything.
const MANY: u64 = 50_000;

/// A request that is refused, asked after all others.
const LAST: Request = Request::InstanceCgroup(u64::MAX, 77);
/// One test at a time: they look at this process, in which all their hosts are.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what the host says until it has answered [`LAST`].
fn receive_until_answered(talk: &Conversation) {
    while talk.receive().0 != Reply::Refused(u64::MAX, SandboxError::Gone) {}
}

fn descriptors() -> usize {
    let all = figures::descriptors(std::process::id());
    all.expect("this process has some").len()
}

#[test]
fn a_server_that_does_not_read_is_given_up() {
    let _turn = turn();
    let talk = Conversation::begin();
    talk.create(0);
    sockopt::set_socket_send_buffer_size(&talk.socket, 1 << 20).expect("a larger buffer");
    // Each is answered.
    let begun = Instant::now();
    loop {
        match wire::send(&talk.socket, &Request::InstanceCgroup(1, 77).encode(), &[]) {
            Ok(()) => assert!(begun.elapsed() < TIMEOUT, "it is not given up"),
            Err(error) => {
                let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
                assert!(gone.contains(&error.kind()), "{error}");
                break;
            }
        }
    }
    let ended = talk.end();
    assert!(
        matches!(ended, Err(HostProcessError::Server(PeerError::Deaf))),
        "{ended:?}"
    );
}

#[test]
fn more_and_more_cgroups_are_refused() {
    let _turn = turn();
    let talk = Conversation::begin();
    let (key, _) = talk.create(0);
    let mut made = 0;
    for sequence in 10..1000 {
        talk.say(&Request::InstanceCgroup(sequence, key));
        let granted = loop {
            match talk.receive().0 {
                Reply::InstanceCgroup(of, ..) if of == sequence => break true,
                Reply::Refused(of, _) if of == sequence => break false,
                _ => {}
            }
        };
        if !granted {
            break;
        }
        made += 1;
    }
    assert!((50..100).contains(&made), "{made}");
    talk.hang_up();
}

#[test]
fn instances_that_wait_to_be_moved_are_bounded() {
    let _turn = turn();
    let talk = Conversation::begin();
    let (key, uid) = talk.create(0);
    let leaf = talk.prepared(key);
    let template = processes_of(uid)[0];
    let target = Target {
        key,
        leaf,
        pid: template,
    };
    let before = descriptors();
    let most = std::thread::scope(|scope| {
        let reader = scope.spawn(|| receive_until_answered(&talk));
        let mut most = 0;
        for number in 0..MANY {
            talk.say(&Request::Attach(target));
            if number % 500 == 0 {
                most = most.max(descriptors());
            }
        }
        talk.say(&LAST);
        reader.join().expect("all was read");
        most
    });
    assert!(most < before + 4500, "{before} and then {most} descriptors");
    talk.hang_up();
}

#[test]
fn orders_that_cannot_be_passed_on_are_not_kept() {
    let _turn = turn();
    let talk = Conversation::begin();
    let (key, uid) = talk.create(0);
    let leaf = talk.prepared(key);
    // Its PID 1 takes no orders any more.
    let init = processes_of(uid - 1)[0];
    threads::stop(init).expect("stopped");
    let target = Target { key, leaf, pid: 0 };
    for _ in 0..MANY {
        talk.say(&Request::Kill(target));
    }
    talk.say(&LAST);
    receive_until_answered(&talk);
    let (cpu, begun) = (
        figures::cpu_time(std::process::id()).expect("a time"),
        Instant::now(),
    );
    std::thread::sleep(Duration::from_secs(1));
    let used = figures::cpu_time(std::process::id())
        .expect("a time")
        .saturating_sub(cpu);
    let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!(share < 0.5, "the host is busy with {share} of a processor");
    talk.hang_up();
}
