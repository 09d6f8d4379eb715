//! What every transport promises, run against each of them.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use common::{Party, SLOTS, connect, descriptor, far, soon};
use hearth_chain::{
    Arrival, Edges, Instance, Poll, RecvError, Refused, Ring, SendError, Transport, Waker,
};
use rustix::io::pwrite;

/// Makes a transport of edges.
type Make<T> = fn(Edges) -> T;

fn sleeping(edges: Edges) -> Ring {
    Ring::new(edges, Duration::ZERO)
}

fn spinning(edges: Edges) -> Ring {
    Ring::new(edges, Duration::from_micros(50))
}

fn polling(edges: Edges) -> Poll {
    Poll { edges }
}

/// Two senders, 1 and 2, and a receiver, 3.
fn three() -> [Party; 3] {
    let [mut one, mut two, mut three] = [1, 2, 3].map(Party::new);
    connect(&mut one, 0, &mut three, 0);
    connect(&mut two, 3, &mut three, 1);
    [one, two, three]
}

fn in_order_with_their_source<T: Transport + Send>(make: Make<T>) {
    const COUNT: u32 = 5_000;
    let [one, two, three] = three();
    let mut receiver = make(three.edges);
    std::thread::scope(|scope| {
        for sender in [one, two] {
            scope.spawn(move || {
                let mut transport = make(sender.edges);
                for number in 0..COUNT {
                    let descriptor = descriptor(three.id, number);
                    loop {
                        match transport.send(&descriptor) {
                            Ok(()) => break,
                            Err(SendError::Full(_)) => std::thread::yield_now(),
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            });
        }
        let mut next = [0; 2];
        for _ in 0..2 * COUNT {
            let arrival = receiver.recv(far()).expect("a descriptor");
            let next = &mut next[usize::from(arrival.from.0) - 1];
            assert_eq!(arrival.descriptor, descriptor(three.id, *next));
            *next += 1;
        }
        assert_eq!(next, [COUNT; 2]);
    });
    assert!(receiver.try_recv().expect("no fault").is_none());
}

fn a_full_ring_is_said_at_once_and_loses_nothing<T: Transport>(make: Make<T>) {
    let [one, _two, three] = three();
    let (mut sender, mut receiver) = (make(one.edges), make(three.edges));
    for round in 0..3 {
        for number in 0..SLOTS {
            let sent = sender.send(&descriptor(three.id, round + number));
            sent.expect("room");
        }
        let full = sender.send(&descriptor(three.id, 99)).expect_err("full");
        assert!(matches!(full, SendError::Full(Instance(3))), "{full}");
        for number in 0..SLOTS {
            let arrival = receiver.try_recv().expect("no fault").expect("one");
            assert_eq!(arrival.descriptor.request, round + number);
        }
    }
}

fn a_wait_ends_at_its_deadline<T: Transport>(make: Make<T>) {
    let [_, _, three] = three();
    let mut receiver = make(three.edges);
    for _ in 0..3 {
        let ended = receiver.recv(soon()).expect_err("nobody sends");
        assert!(matches!(ended, RecvError::TimedOut), "{ended}");
    }
    let mut alone = make(Party::new(4).edges);
    assert!(matches!(alone.recv(soon()), Err(RecvError::TimedOut)));
}

fn nothing_passes_without_an_edge<T: Transport>(make: Make<T>) {
    let [one, _two, mut three] = three();
    let four = Party::new(4);
    three.edges.inbox.close(0);
    let (mut one, mut three, mut four) = (make(one.edges), make(three.edges), make(four.edges));
    let denied = four.send(&descriptor(Instance(3), 1)).expect_err("no edge");
    assert!(matches!(denied, SendError::NoEdge(Instance(3))), "{denied}");
    // 1 still has an output, but 3 does not read it any more.
    one.send(&descriptor(Instance(3), 1)).expect("room");
    assert!(three.try_recv().expect("no fault").is_none());
}

fn a_peers_end_is_told_once_after_what_it_sent<T: Transport>(make: Make<T>) {
    let [one, two, three] = three();
    let (mut first, mut second) = (make(one.edges), make(two.edges));
    let mut receiver = make(three.edges);
    first.send(&descriptor(three.id, 1)).expect("room");
    one.server.end();
    let arrival = receiver.recv(far()).expect("what was sent");
    assert_eq!((arrival.from, arrival.descriptor.request), (Instance(1), 1));
    let gone = receiver.recv(far()).expect_err("the end");
    assert!(matches!(gone, RecvError::Gone(Instance(1))), "{gone}");
    assert!(matches!(receiver.recv(soon()), Err(RecvError::TimedOut)));
    second.send(&descriptor(three.id, 2)).expect("room");
    assert_eq!(
        receiver.recv(far()).expect("of the other").from,
        Instance(2)
    );
    // And the other way: a receiver that has ended.
    three.server.end();
    let gone = second
        .send(&descriptor(three.id, 3))
        .expect_err("nobody there");
    assert!(matches!(gone, SendError::Gone(Instance(3))), "{gone}");
    let closed = second.send(&descriptor(three.id, 3)).expect_err("closed");
    assert!(matches!(closed, SendError::NoEdge(Instance(3))), "{closed}");
}

fn a_wait_ends_when_a_peer_does<T: Transport + Send>(make: Make<T>) {
    let [one, _two, three] = three();
    let mut receiver = make(three.edges);
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || receiver.recv(far()));
        // It most likely sleeps by then; the outcome is the same if it does not.
        std::thread::sleep(Duration::from_millis(20));
        one.server.end();
        let ended = waits.join().expect("no panic");
        assert!(matches!(ended, Err(RecvError::Gone(Instance(1)))));
    });
}

/// A descriptor for another, a kind that is none: the edge stays. A position that cannot be true: the edge ends. The other
/// sender is heard all the while.
fn one_peers_fault_is_not_the_others<T: Transport>(make: Make<T>) {
    let [one, two, three] = three();
    let mut receiver = make(three.edges);
    let mut honest = make(two.edges);
    // The hostile owner of a board writes to it by its descriptor. Its words: 4 inputs, then the head of output 0.
    let board = one.server.for_owner().expect("its own");
    let head_at = 128 * 5;
    let slots_at = 128 * 9;
    let misdelivered = descriptor(Instance(9), 1).to_bytes().expect("legal");
    let mut unknown = descriptor(three.id, 1).to_bytes().expect("legal");
    unknown[15] |= 0x70;
    pwrite(&board, &[misdelivered, unknown].concat(), slots_at).expect("its own");
    pwrite(&board, &2_u32.to_le_bytes(), head_at).expect("its own");
    let mut refusals = Vec::new();
    for _ in 0..2 {
        match receiver.recv(far()) {
            Err(RecvError::Refused { from, refused }) => refusals.push((from, refused)),
            other => panic!("{other:?}"),
        }
    }
    let from = Instance(1);
    assert_eq!(
        refusals,
        [
            (from, Refused::Misdelivered(Instance(9))),
            (from, Refused::UnknownKind(7))
        ]
    );
    for head in [1_u32, 2 + SLOTS + 1, 0x7fff_ffff] {
        pwrite(&board, &head.to_le_bytes(), head_at).expect("its own");
        honest.send(&descriptor(three.id, head)).expect("room");
        let mut outcomes = [(); 2].map(|()| receiver.recv(soon()));
        outcomes.sort_by_key(Result::is_ok);
        let [fault, arrival] = outcomes;
        assert!(
            matches!(
                arrival,
                Ok(Arrival {
                    from: Instance(2),
                    ..
                })
            ),
            "{arrival:?}"
        );
        if head == 1 {
            assert!(
                matches!(
                    fault,
                    Err(RecvError::Broken {
                        from: Instance(1),
                        ..
                    })
                ),
                "{fault:?}"
            );
        } else {
            assert!(
                matches!(fault, Err(RecvError::TimedOut)),
                "told once: {fault:?}"
            );
        }
    }
}

/// A receiver that says it has taken what it was not sent, or too little.
fn a_receiver_cannot_make_a_sender_overwrite<T: Transport>(make: Make<T>) {
    let [one, two, three] = three();
    let (mut sender, mut other) = (make(one.edges), make(two.edges));
    let board = three.server.for_owner().expect("its own");
    let tail_at = 128;
    for _ in 0..SLOTS {
        sender.send(&descriptor(three.id, 1)).expect("room");
    }
    pwrite(&board, &(SLOTS + 1).to_le_bytes(), tail_at).expect("its own");
    let broken = sender.send(&descriptor(three.id, 1)).expect_err("a lie");
    assert!(
        matches!(
            broken,
            SendError::Broken {
                to: Instance(3),
                ..
            }
        ),
        "{broken}"
    );
    let closed = sender.send(&descriptor(three.id, 1)).expect_err("closed");
    assert!(matches!(closed, SendError::NoEdge(_)), "{closed}");
    other.send(&descriptor(three.id, 1)).expect("another ring");
}

macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod ring_asleep { $(#[test] fn $name() { super::$name(super::sleeping); })* }
        mod ring_spinning { $(#[test] fn $name() { super::$name(super::spinning); })* }
        mod poll { $(#[test] fn $name() { super::$name(super::polling); })* }
    };
}

conformance!(
    in_order_with_their_source,
    a_full_ring_is_said_at_once_and_loses_nothing,
    a_wait_ends_at_its_deadline,
    nothing_passes_without_an_edge,
    a_peers_end_is_told_once_after_what_it_sent,
    a_wait_ends_when_a_peer_does,
    one_peers_fault_is_not_the_others,
    a_receiver_cannot_make_a_sender_overwrite,
);

/// Edges that are closed and opened again begin anew, whatever was left on them.
#[test]
fn a_lane_is_used_again_by_another_edge() {
    let [mut one, mut two, mut three] = [1, 2, 3].map(Party::new);
    connect(&mut one, 0, &mut three, 0);
    for number in 0..3 {
        one.edges
            .outbox
            .send(&descriptor(three.id, number))
            .expect("room");
    }
    three
        .edges
        .inbox
        .try_recv()
        .expect("no fault")
        .expect("one");
    assert_eq!(one.edges.outbox.backlog(three.id), Some(2));
    // The consumer first, then the producer.
    assert!(three.edges.inbox.close(0) && !three.edges.inbox.close(0));
    assert!(one.edges.outbox.close(0) && !one.edges.outbox.close(0));
    assert_eq!(one.edges.outbox.backlog(three.id), None);
    connect(&mut one, 0, &mut two, 0);
    let mut four = Party::new(4);
    connect(&mut four, 2, &mut three, 0);
    assert!(two.edges.inbox.try_recv().expect("no fault").is_none());
    for number in 7..7 + SLOTS {
        one.edges
            .outbox
            .send(&descriptor(two.id, number))
            .expect("room");
        four.edges
            .outbox
            .send(&descriptor(three.id, number))
            .expect("room");
    }
    for number in 7..7 + SLOTS {
        for (inbox, from) in [(&mut two.edges.inbox, 1), (&mut three.edges.inbox, 4)] {
            let arrival = inbox.try_recv().expect("no fault").expect("one");
            assert_eq!(
                (arrival.from, arrival.descriptor.request),
                (Instance(from), number)
            );
        }
    }
}

#[test]
fn an_input_or_output_that_is_taken_or_not_there_is_refused() {
    let [mut one, _, mut three] = three();
    let seen = three.seen();
    let mut open = |output, to, input| {
        let outbox = &mut one.edges.outbox;
        outbox.open(&one.own, output, Instance(to), &seen, input, None)
    };
    assert!(open(0, 9, 2).is_err(), "the output is in use");
    assert!(open(1, 3, 2).is_err(), "there is an edge to it");
    assert!(
        open(4, 9, 2).is_err() && open(1, 9, 4).is_err(),
        "not there"
    );
    open(1, 9, 2).expect("free");
    let (seen, own) = (one.seen(), &three.own);
    let inbox = &mut three.edges.inbox;
    assert!(inbox.open(own, 0, Instance(9), &seen, 1).is_err());
    assert!(inbox.open(own, 4, Instance(9), &seen, 1).is_err());
    assert!(inbox.open(own, 2, Instance(9), &seen, 4).is_err());
}

#[test]
fn a_thread_of_the_same_process_ends_a_wait() {
    let [one, _two, three] = three();
    let waker = Waker::new(&three.own);
    waker.wake();
    let mut receiver = sleeping(three.edges);
    assert!(
        matches!(receiver.recv(soon()), Err(RecvError::TimedOut)),
        "nobody slept"
    );
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || receiver.recv(far()));
        while !waits.is_finished() {
            waker.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = waits.join().expect("no panic");
        assert!(matches!(ended, Err(RecvError::Interrupted)));
    });
    drop(one);
}

#[test]
fn an_instance_that_the_server_has_ended_does_not_wait() {
    let [_one, _two, three] = three();
    let mut receiver = sleeping(three.edges);
    three.server.end();
    assert!(matches!(receiver.recv(far()), Err(RecvError::Closed)));
}

/// A receiver that waits with epoll: its senders have bells, and ring them when it has announced that it sleeps.
#[test]
fn a_bell_rings_for_a_sleeper_and_only_for_one() {
    let [mut one, mut gateway] = [1, 0].map(Party::new);
    let bell = hearth_abi::Bell::new().expect("an eventfd");
    let other = bell.try_clone_for_test();
    common::open_input(&mut gateway, 0, &one, 0);
    let seen = gateway.seen();
    let outbox = &mut one.edges.outbox;
    outbox
        .open(&one.own, 0, gateway.id, &seen, 0, Some(other))
        .expect("free");
    outbox.send(&descriptor(gateway.id, 1)).expect("room");
    assert!(!bell.drain().expect("open"), "it does not sleep");
    assert!(
        !gateway.edges.inbox.announce().expect("alive"),
        "there is one"
    );
    gateway.edges.inbox.retract();
    gateway
        .edges
        .inbox
        .try_recv()
        .expect("no fault")
        .expect("one");
    assert!(gateway.edges.inbox.announce().expect("alive"));
    outbox.send(&descriptor(gateway.id, 2)).expect("room");
    assert!(bell.drain().expect("open"), "it sleeps");
    assert!(gateway.edges.inbox.retract());
}

#[test]
fn a_load_is_what_the_instance_says() {
    let [one, _, three] = three();
    let seen = one.seen();
    assert_eq!(seen.load(), 0);
    one.own.report_load(7);
    assert_eq!(seen.load(), 7);
    drop(three);
}

/// A second end of the same eventfd.
trait TryClone {
    fn try_clone_for_test(&self) -> Self;
}

impl TryClone for hearth_abi::Bell {
    fn try_clone_for_test(&self) -> Self {
        let fd = std::os::fd::AsFd::as_fd(self).try_clone_to_owned();
        Self::from(fd.expect("a descriptor"))
    }
}
