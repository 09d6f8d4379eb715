//! What every transport promises, run against each of them.
//!
//! One file: it is one list of promises.
#![cfg(not(loom))]

mod common;

use std::os::fd::OwnedFd;
use std::time::Duration;

use common::switch::{Given, Switch};
use common::{Party, SLOTS, connect, descriptor, far, shape, soon};
use hearth_chain::sk_msg::{Heard, News, Reason};
use hearth_chain::{
    Arrival, Board, Descriptor, Edges, Instance, Lines, Looks, PeerBoard, Poll, RecvError, Refused,
    Ring, SendError, SkMsg, Transport, Waker,
};
use rustix::io::pwrite;

/// A way to carry descriptors, as these tests set it up.
trait Kit {
    type Way: Transport + Send;

    /// Two senders, 1 and 2, and a receiver, 3; none where this cannot be tested.
    fn three() -> Option<[Node<Self::Way>; 3]>;

    /// An instance without edges.
    fn alone(id: u16) -> Option<Self::Way>;
}

/// An instance.
struct Node<T> {
    id: Instance,
    way: T,
    server: Board,
    /// Lets everybody know that it has ended, as the server does.
    end: Box<dyn Fn() + Send + Sync>,
    /// Stops the receiver from hearing this one.
    cut: Box<dyn Fn(&mut T) + Send + Sync>,
}

/// Edges of boards: `ring` and `poll`.
fn boards<T>(make: fn(Edges) -> T, close: fn(&mut T, u16) -> bool) -> [Node<T>; 3]
where
    T: 'static,
{
    let [mut one, mut two, mut three] = [1, 2, 3].map(Party::new);
    connect(&mut one, 0, &mut three, 0);
    connect(&mut two, 3, &mut three, 1);
    let mut inputs = [0, 1, 9].into_iter();
    [one, two, three].map(|party| {
        let input = inputs.next().expect("one each");
        let fd = party.server.for_owner().expect("a descriptor");
        let ending = Board::attach(fd, shape()).expect("the board");
        Node {
            id: party.id,
            way: make(party.edges),
            server: party.server,
            end: Box::new(move || ending.end()),
            cut: Box::new(move |receiver| assert!(close(receiver, input))),
        }
    })
}

struct RingAsleep;
struct RingSpinning;
struct RingInTurn;
struct Polling;
struct BySkMsg;

impl Kit for RingAsleep {
    type Way = Ring;

    fn three() -> Option<[Node<Ring>; 3]> {
        Some(boards(sleeping, |ring, input| {
            ring.edges.inbox.close(input)
        }))
    }

    fn alone(id: u16) -> Option<Ring> {
        Some(sleeping(Party::new(id).edges))
    }
}

impl Kit for RingSpinning {
    type Way = Ring;

    fn three() -> Option<[Node<Ring>; 3]> {
        Some(boards(spinning, |ring, input| {
            ring.edges.inbox.close(input)
        }))
    }

    fn alone(id: u16) -> Option<Ring> {
        Some(spinning(Party::new(id).edges))
    }
}

impl Kit for RingInTurn {
    type Way = Ring;

    fn three() -> Option<[Node<Ring>; 3]> {
        Some(boards(in_turn, |ring, input| ring.edges.inbox.close(input)))
    }

    fn alone(id: u16) -> Option<Ring> {
        Some(in_turn(Party::new(id).edges))
    }
}

impl Kit for Polling {
    type Way = Poll;

    fn three() -> Option<[Node<Poll>; 3]> {
        Some(boards(polling, |poll, input| poll.edges.inbox.close(input)))
    }

    fn alone(id: u16) -> Option<Poll> {
        Some(polling(Party::new(id).edges))
    }
}

impl Kit for BySkMsg {
    type Way = Given;

    fn three() -> Option<[Node<Given>; 3]> {
        let switch = Switch::new()?;
        let nodes = [1, 2, 3].map(|id| switch.seat(id));
        for sender in [1, 2] {
            switch.allow(sender, 3);
        }
        let [mut one, mut two, mut three] = nodes;
        switch.connect(&mut one, 0, &mut three, 0);
        switch.connect(&mut two, 3, &mut three, 1);
        let mut inputs = [0, 1, 9].into_iter();
        Some([one, two, three].map(|seated| {
            let input = inputs.next().expect("one each");
            let (switch, id) = (switch.clone(), seated.id);
            let ending = Board::attach(seated.server.for_owner().expect("a descriptor"), shape());
            let ending = ending.expect("the board");
            Node {
                id,
                way: Given::new(seated.way, switch.clone(), id),
                server: seated.server,
                end: Box::new(move || {
                    ending.end();
                    switch.unseat(id);
                }),
                cut: Box::new(move |receiver| assert!(receiver.way.close_input(input))),
            }
        }))
    }

    fn alone(id: u16) -> Option<Given> {
        let switch = Switch::new()?;
        let seated = switch.seat(id);
        Some(Given::new(seated.way, switch, seated.id))
    }
}

fn sleeping(edges: Edges) -> Ring {
    Ring::new(edges, Duration::ZERO)
}

fn spinning(edges: Edges) -> Ring {
    Ring::new(edges, Duration::from_micros(50))
}

fn in_turn(edges: Edges) -> Ring {
    let gateway = Board::create(shape()).expect("the gateway's board");
    let seen = gateway.for_peer().expect("a descriptor");
    let seen = PeerBoard::attach(seen, shape()).expect("the gateway's board");
    let mut ring = spinning(edges).in_turn(&seen);
    ring.looks(Looks::InTurn);
    ring
}

fn polling(edges: Edges) -> Poll {
    Poll { edges }
}

/// Two senders, 1 and 2, and a receiver, 3, over boards.
fn three() -> [Party; 3] {
    let [mut one, mut two, mut three] = [1, 2, 3].map(Party::new);
    connect(&mut one, 0, &mut three, 0);
    connect(&mut two, 3, &mut three, 1);
    [one, two, three]
}

/// A descriptor to 3 that says `number`, in a block that only this sender uses.
fn of(sender: Instance, number: u32) -> Descriptor {
    let descriptor = descriptor(Instance(3), number);
    Descriptor {
        block: descriptor.block + 8 * u32::from(sender.0),
        ..descriptor
    }
}

fn in_order_with_their_source<K: Kit>() {
    const COUNT: u32 = 5_000;
    let Some([one, two, three]) = K::three() else {
        return;
    };
    let mut receiver = three.way;
    std::thread::scope(|scope| {
        for sender in [one, two] {
            scope.spawn(move || {
                let mut transport = sender.way;
                for number in 0..COUNT {
                    let descriptor = of(sender.id, number);
                    loop {
                        match transport.send(&descriptor) {
                            Ok(()) => break,
                            Err(SendError::Full(_)) => std::thread::yield_now(),
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
                // An end would be told, and this test is about descriptors.
                std::mem::forget(transport);
            });
        }
        let mut next = [0; 2];
        for _ in 0..2 * COUNT {
            let arrival = receiver.recv(far()).expect("a descriptor");
            let next = &mut next[usize::from(arrival.from.0) - 1];
            assert_eq!(arrival.descriptor, of(arrival.from, *next));
            *next += 1;
        }
        assert_eq!(next, [COUNT; 2]);
    });
    assert!(receiver.try_recv().expect("no fault").is_none());
}

fn a_full_ring_is_said_at_once_and_loses_nothing<K: Kit>() {
    let Some([one, _two, three]) = K::three() else {
        return;
    };
    let (mut sender, mut receiver) = (one.way, three.way);
    for round in 0..3 {
        for number in 0..SLOTS {
            let sent = sender.send(&of(one.id, round + number));
            sent.expect("room");
        }
        let full = sender.send(&of(one.id, 99)).expect_err("full");
        assert!(matches!(full, SendError::Full(Instance(3))), "{full}");
        for number in 0..SLOTS {
            let arrival = receiver.recv(far()).expect("one");
            assert_eq!(arrival.descriptor.request, round + number);
        }
        assert!(receiver.try_recv().expect("no fault").is_none());
    }
}

fn a_wait_ends_at_its_deadline<K: Kit>() {
    let Some([_one, _two, three]) = K::three() else {
        return;
    };
    let mut receiver = three.way;
    for _ in 0..3 {
        let ended = receiver.recv(soon()).expect_err("nobody sends");
        assert!(matches!(ended, RecvError::TimedOut), "{ended}");
    }
    let mut alone = K::alone(4).expect("as the others");
    assert!(matches!(alone.recv(soon()), Err(RecvError::TimedOut)));
}

fn nothing_passes_without_an_edge<K: Kit>() {
    let Some([one, two, three]) = K::three() else {
        return;
    };
    let mut four = K::alone(4).expect("as the others");
    let (mut sender, mut other, mut receiver) = (one.way, two.way, three.way);
    (one.cut)(&mut receiver);
    let denied = four.send(&of(Instance(4), 1)).expect_err("no edge");
    assert!(matches!(denied, SendError::NoEdge(Instance(3))), "{denied}");
    // 1 still has an output, but 3 does not take it any more.
    sender.send(&of(one.id, 1)).expect("room");
    other.send(&of(two.id, 2)).expect("room");
    for _ in 0..4 {
        match receiver.recv(soon()) {
            Ok(arrival) => assert_eq!(arrival.from, two.id),
            Err(
                RecvError::TimedOut
                | RecvError::Interrupted
                | RecvError::Refused {
                    from: Instance(1), ..
                },
            ) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn a_peers_end_is_told_once_after_what_it_sent<K: Kit>() {
    let Some([one, two, three]) = K::three() else {
        return;
    };
    let (mut first, mut second, mut receiver) = (one.way, two.way, three.way);
    first.send(&of(one.id, 1)).expect("room");
    (one.end)();
    let arrival = receiver.recv(far()).expect("what was sent");
    assert_eq!((arrival.from, arrival.descriptor.request), (Instance(1), 1));
    let gone = receiver.recv(far()).expect_err("the end");
    assert!(matches!(gone, RecvError::Gone(Instance(1))), "{gone}");
    assert!(matches!(receiver.recv(soon()), Err(RecvError::TimedOut)));
    second.send(&of(two.id, 2)).expect("room");
    assert_eq!(
        receiver.recv(far()).expect("of the other").from,
        Instance(2)
    );
    // And the other way: a receiver that has ended.
    (three.end)();
    let gone = second.send(&of(two.id, 3)).expect_err("nobody there");
    assert!(matches!(gone, SendError::Gone(Instance(3))), "{gone}");
    let closed = second.send(&of(two.id, 3)).expect_err("closed");
    assert!(matches!(closed, SendError::NoEdge(Instance(3))), "{closed}");
}

fn a_wait_ends_when_a_peer_does<K: Kit>() {
    let Some([one, _two, three]) = K::three() else {
        return;
    };
    let mut receiver = three.way;
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || receiver.recv(far()));
        // It most likely sleeps by then; the outcome is the same if it does not.
        std::thread::sleep(Duration::from_millis(20));
        (one.end)();
        let ended = waits.join().expect("no panic");
        assert!(matches!(ended, Err(RecvError::Gone(Instance(1)))));
    });
}

/// A receiver that says it has taken what it was not sent, or too little.
fn a_receiver_cannot_make_a_sender_overwrite<K: Kit>() {
    let Some([one, two, three]) = K::three() else {
        return;
    };
    let (mut sender, mut other) = (one.way, two.way);
    let board = three.server.for_owner().expect("its own");
    let tail_at = 128;
    for number in 0..SLOTS {
        sender.send(&of(one.id, number)).expect("room");
    }
    pwrite(&board, &(SLOTS + 1).to_le_bytes(), tail_at).expect("its own");
    let broken = sender.send(&of(one.id, 1)).expect_err("a lie");
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
    let closed = sender.send(&of(one.id, 1)).expect_err("closed");
    assert!(matches!(closed, SendError::NoEdge(_)), "{closed}");
    other.send(&of(two.id, 1)).expect("another ring");
}

macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod ring_asleep { $(#[test] fn $name() { super::$name::<super::RingAsleep>(); })* }
        mod ring_in_turn { $(#[test] fn $name() { super::$name::<super::RingInTurn>(); })* }
        mod ring_spinning { $(#[test] fn $name() { super::$name::<super::RingSpinning>(); })* }
        mod poll { $(#[test] fn $name() { super::$name::<super::Polling>(); })* }
        mod by_sk_msg { $(#[test] fn $name() { super::$name::<super::BySkMsg>(); })* }
    };
}

conformance!(
    in_order_with_their_source,
    a_full_ring_is_said_at_once_and_loses_nothing,
    a_wait_ends_at_its_deadline,
    nothing_passes_without_an_edge,
    a_peers_end_is_told_once_after_what_it_sent,
    a_wait_ends_when_a_peer_does,
    a_receiver_cannot_make_a_sender_overwrite,
);

/// A descriptor for another, a kind that is none: the edge stays. A position that cannot be true: the edge ends. The other
/// sender is heard all the while.
fn one_peers_fault_is_not_the_others_over_boards<T: Transport>(make: fn(Edges) -> T) {
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

#[test]
fn one_peers_fault_is_not_the_others_by_ring() {
    one_peers_fault_is_not_the_others_over_boards(sleeping);
    one_peers_fault_is_not_the_others_over_boards(spinning);
}

#[test]
fn one_peers_fault_is_not_the_others_by_poll() {
    one_peers_fault_is_not_the_others_over_boards(polling);
}

/// What the kernel does not deliver, the gateway hears; what it drops is its sender's last. The other sender is heard all the while.
#[test]
fn one_peers_fault_is_not_the_others_by_sk_msg() {
    let Some(switch) = Switch::new() else {
        return;
    };
    let [mut one, mut two, mut three] = [1, 2, 3].map(|id| switch.seat(id));
    for (sender, input) in [(&mut one, 0), (&mut two, 1)] {
        switch.allow(sender.id.0, 3);
        switch.connect(sender, 0, &mut three, input);
    }
    let gateway = Party::new(0);
    let mut lines = Lines::new();
    let seen = PeerBoard::attach(one.server.for_peer().expect("a descriptor"), shape());
    let seen = seen.expect("the board");
    lines
        .open(&gateway.own, one.id, &seen, switch.far(one.id))
        .expect("free");
    let honest = |two: &mut SkMsg, three: &mut SkMsg, number| {
        let descriptor = of(Instance(2), number);
        switch.give(descriptor.block, Instance(2));
        two.send(&descriptor).expect("room");
        let arrival = three.recv(far()).expect("a descriptor");
        assert_eq!(
            (arrival.from, arrival.descriptor),
            (Instance(2), descriptor)
        );
    };
    let misdelivered = descriptor(Instance(9), 1);
    let mut unknown = descriptor(three.id, 2).to_bytes().expect("legal");
    unknown[15] |= 0x70;
    let faults = [
        (misdelivered.to_bytes().expect("legal"), Reason::Target),
        (unknown, Reason::Kind),
        (
            descriptor(three.id, 3).to_bytes().expect("legal"),
            Reason::Block,
        ),
    ];
    for (number, (bytes, reason)) in (0..).zip(faults) {
        rustix::io::write(&one.near, &bytes).expect("its own");
        honest(&mut two.way, &mut three.way, number);
        lines.is_ready(one.id);
        match lines.try_recv().expect("no fault").expect("one") {
            Heard::Denied { from, denied } => {
                assert_eq!((from, denied.reason), (one.id, reason));
                assert!(!denied.is_returned, "it had no block in hand");
            }
            other @ Heard::Arrival(_) => panic!("{other:?}"),
        }
        assert_eq!(lines.try_recv().expect("no fault"), None);
    }
    rustix::io::write(&one.near, &[0; 15]).expect_err("dropped");
    honest(&mut two.way, &mut three.way, 7);
    let gone = one.way.send(&of(one.id, 1)).expect_err("a dead socket");
    assert!(matches!(gone, SendError::Gone(Instance(3))), "{gone}");
}

/// A peer is told of first, and may send before this instance is told of it.
#[test]
fn what_comes_before_its_sender_is_known_is_kept_in_order() {
    let Some(switch) = Switch::new() else {
        return;
    };
    let [one, mut two, mut three] = [1, 2, 3].map(|id| switch.seat(id));
    switch.allow(1, 3);
    switch.allow(2, 3);
    switch.connect(&mut two, 0, &mut three, 1);
    let send = |number: u32, by: &OwnedFd, id| {
        let descriptor = of(id, number);
        switch.give(descriptor.block, id);
        rustix::io::write(by, &descriptor.to_bytes().expect("legal")).expect("its own");
    };
    for number in 0..3 {
        send(number, &one.near, one.id);
        send(number, &two.near, two.id);
    }
    let mut received = Vec::new();
    let mut asked = 0;
    while received.len() < 3 {
        match three.way.recv(far()) {
            Ok(arrival) => received.push((arrival.from.0, arrival.descriptor.request)),
            Err(RecvError::Interrupted) => asked += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(received, [(2, 0), (2, 1), (2, 2)]);
    assert_eq!(asked, 3, "the control socket is looked at");
    three.way.open_input(&three.own, 0, one.id).expect("free");
    send(3, &one.near, one.id);
    for number in 0..4 {
        let arrival = three.way.recv(far()).expect("what was kept");
        assert_eq!((arrival.from.0, arrival.descriptor.request), (1, number));
    }
    assert!(three.way.try_recv().expect("no fault").is_none());
}

/// A member is killed with descriptors on their way to the gateway, and others to it: the gateway hears all that it sent, then its end.
#[test]
fn the_gateway_hears_what_a_killed_member_sent() {
    let Some(switch) = Switch::new() else {
        return;
    };
    let one = switch.seat(1);
    switch.allow(1, 0);
    switch.allow(0, 1);
    let gateway = Party::new(0);
    let mut lines = Lines::new();
    let seen = PeerBoard::attach(one.server.for_peer().expect("a descriptor"), shape());
    let seen = seen.expect("the board");
    lines
        .open(&gateway.own, one.id, &seen, switch.far(one.id))
        .expect("free");
    let to_gateway = |number| Descriptor {
        target: Instance::GATEWAY,
        ..of(Instance(1), number)
    };
    for number in 0..200 {
        let descriptor = to_gateway(number);
        switch.give(descriptor.block, one.id);
        let bytes = descriptor.to_bytes().expect("legal");
        rustix::io::write(&one.near, &bytes).expect("its own");
    }
    lines.tell(one.id, News::Look);
    lines.send(&descriptor(one.id, 7)).expect("room");
    let id = one.id;
    drop(one);
    switch.cut(id);
    for number in 0..200 {
        match lines.try_recv().expect("no end yet").expect("one") {
            Heard::Arrival(arrival) => {
                assert_eq!((arrival.from, arrival.descriptor), (id, to_gateway(number)));
            }
            other @ Heard::Denied { .. } => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        lines.try_recv(),
        Err(RecvError::Gone(Instance(1)))
    ));
    assert_eq!(lines.try_recv().expect("told once"), None);
    assert_eq!(lines.take_broken(), []);
    assert!(!lines.close(id), "it is closed");
}

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
