//! What instances of a chain send to each other, over real sockets in a namespace of the test's own.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use hearth_ebpf::LoadError;
use hearth_ebpf::sproxy::records::{BlockKey, Edge, EdgeKey, Refusal, SeatKey};
use hearth_ebpf::sproxy::{Exchange, Pair, Sproxy};
use hearth_testkit::skipped::skip;

use crate::network::{Namespace, PATIENCE};

const PASS: u64 = 0;
const CALL: u64 = 1;
const NEWS: u64 = 7;
/// Kinds that a member may send along a route.
const PASSES: u32 = 1;

/// A descriptor, as far as the program looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// The target; when it has arrived, the source.
    instance: u16,
    block: u64,
    kind: u64,
    hop: u64,
    more: bool,
}

impl Record {
    fn to(instance: u16, block: u64, kind: u64) -> Self {
        Self {
            instance,
            block,
            kind,
            hop: 3,
            more: false,
        }
    }

    fn bytes(self) -> [u8; 16] {
        let first = 0x0000_aaaa_bbbb_cccc_u64 | u64::from(self.instance) << 48;
        let second =
            self.block | self.hop << 51 | self.kind << 60 | u64::from(self.more) << 63 | 77 << 16;
        (u128::from(first) | u128::from(second) << 64).to_le_bytes()
    }

    fn read(bytes: [u8; 16]) -> Self {
        let words = u128::from_le_bytes(bytes);
        let (first, second) = (words as u64, (words >> 64) as u64);
        assert_eq!(first << 16 >> 16, 0xaaaa_bbbb_cccc, "the rest is as it was");
        assert_eq!(second >> 16 & 0x7ff_ffff, 77, "the rest is as it was");
        Self {
            instance: (first >> 48) as u16,
            block: second & 0xffff,
            hop: second >> 51 & 0xff,
            kind: second >> 60 & 7,
            more: second >> 63 == 1,
        }
    }

    /// How it arrives.
    fn from(self, instance: u16) -> Self {
        Self { instance, ..self }
    }

    /// How the gateway gets it when it was refused, and whether it got the block.
    fn refused(self, reason: Refusal, more: bool) -> Self {
        Self {
            kind: NEWS,
            hop: reason as u64,
            more,
            ..self
        }
    }
}

/// Two ends of a TCP connection.
struct Ends {
    near: TcpStream,
    far: TcpStream,
}

impl Ends {
    fn new(namespace: &Namespace) -> Self {
        namespace.run(|| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let address = listener.local_addr().expect("its address");
            let near = TcpStream::connect(address).expect("connected");
            let (far, _) = listener.accept().expect("accepted");
            for end in [&near, &far] {
                end.set_read_timeout(Some(PATIENCE)).expect("a limit");
                end.set_nodelay(true).expect("set");
            }
            Self { near, far }
        })
    }

    fn pair(&self) -> Pair<'_> {
        Pair {
            near: self.near.as_fd(),
            far: self.far.as_fd(),
        }
    }
}

fn send(mut through: &TcpStream, record: Record) {
    let sent = through.write(&record.bytes()).expect("sent");
    assert_eq!(sent, 16);
}

fn receive(mut from: &TcpStream) -> Record {
    let mut bytes = [0; 16];
    from.read_exact(&mut bytes).expect("something came");
    Record::read(bytes)
}

fn nothing_comes(mut to: &TcpStream) {
    to.set_nonblocking(true).expect("set");
    let nothing = to.read(&mut [0; 64]).expect_err("nothing");
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    to.set_nonblocking(false).expect("set");
}

/// A chain whose route is member 1, then member 2, with an instance of each that has the member's number.
struct Chain {
    number: u32,
    one: Ends,
    two: Ends,
}

struct World {
    namespace: Namespace,
    exchange: Exchange,
    _sproxy: Sproxy,
}

impl World {
    /// None where it cannot be tested.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("needs root");
            return None;
        }
        let sproxy = match Sproxy::load() {
            Err(LoadError::Maps(reason)) => {
                skip(&format!("no eBPF on this host: {reason}"));
                return None;
            }
            loaded => loaded.expect("the program loads"),
        };
        let descriptors = sproxy.descriptors().expect("descriptors");
        Some(Self {
            namespace: Namespace::new(),
            exchange: Exchange::new(descriptors).expect("the maps"),
            _sproxy: sproxy,
        })
    }

    fn chain(&mut self, number: u32) -> Chain {
        let chain = Chain {
            number,
            one: Ends::new(&self.namespace),
            two: Ends::new(&self.namespace),
        };
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            let pair = EdgeKey {
                chain: number,
                from,
                to,
            };
            self.exchange.allow(pair, PASSES).expect("room");
        }
        for (instance, ends) in [(1, &chain.one), (2, &chain.two)] {
            self.exchange
                .seat(chain.seat(instance), instance, ends.pair())
                .expect("seated");
        }
        chain
    }

    fn refused(&self, chain: &Chain, instance: u8, reason: Refusal) -> u64 {
        let seat = self.exchange.seated(chain.seat(instance)).expect("read");
        seat.expect("a seat").refused[reason as usize]
    }

    fn holder(&self, chain: &Chain, number: u32) -> u32 {
        let chain = chain.number;
        let block = self.exchange.block(BlockKey { chain, number });
        block.expect("read").expect("known").holder
    }
}

impl Chain {
    fn seat(&self, instance: u8) -> SeatKey {
        SeatKey {
            chain: self.number,
            instance: instance.into(),
        }
    }

    /// Gives the first instance a block, by a request.
    fn give(&self, block: u64) {
        let given = Record::to(1, block, PASS);
        send(&self.one.far, given);
        assert_eq!(receive(&self.one.near), given.from(0));
    }
}

#[test]
fn what_an_edge_allows_arrives_with_its_source_and_is_counted() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    let was = world.exchange.seated(chain.seat(1)).expect("read");
    assert_eq!(was.expect("a seat").received, 0);
    for block in 0..10 {
        chain.give(block);
        // The member's own number in it, or another's, is its target and nothing else.
        let onward = Record::to(2, block, PASS);
        send(&chain.one.near, onward);
        assert_eq!(receive(&chain.two.near), onward.from(1));
        let seat = world.exchange.seated(chain.seat(2)).expect("read");
        let seat = seat.expect("a seat");
        assert_eq!((seat.received, seat.handled), (block + 1, block), "in hand");
        let back = Record::to(0, block, PASS);
        send(&chain.two.near, back);
        assert_eq!(receive(&chain.two.far), back.from(2));
    }
    for instance in [1, 2] {
        let seat = world.exchange.seated(chain.seat(instance)).expect("read");
        let seat = seat.expect("a seat");
        assert_eq!((seat.received, seat.handled, seat.sent), (10, 10, 10));
        assert_eq!(seat.refused, [0; 6]);
        assert!(seat.busy > 0);
    }
    let pair = EdgeKey {
        chain: 1,
        from: 1,
        to: 2,
    };
    let edge = world.exchange.edge(pair).expect("read").expect("an edge");
    assert_eq!((edge.sent, edge.refused), (10, 0));
    // Several sends, one receive.
    for block in 0..3 {
        send(&chain.one.far, Record::to(1, block, PASS));
    }
    let mut all = [0; 48];
    (&chain.one.near).read_exact(&mut all).expect("all three");
}

#[test]
fn what_no_edge_allows_reaches_the_gateway_and_later_sends_go_on() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    let mut refusals = 0;
    for (target, kind, reason) in [
        (1, PASS, Refusal::Edge),
        (2, CALL, Refusal::Edge),
        (0, PASS, Refusal::Edge),
        (9, PASS, Refusal::Target),
        (2, NEWS, Refusal::Kind),
    ] {
        chain.give(4);
        let denied = Record::to(target, 4, kind);
        send(&chain.one.near, denied);
        assert_eq!(receive(&chain.one.far), denied.refused(reason, true));
        assert_eq!(world.holder(&chain, 4), 0, "the block is the gateway's");
        // Without a block in hand nothing comes back, and nothing goes.
        send(&chain.one.near, denied);
        assert_eq!(receive(&chain.one.far), denied.refused(reason, false));
        let onward = Record::to(2, 4, PASS);
        send(&chain.one.near, onward);
        assert_eq!(
            receive(&chain.one.far),
            onward.refused(Refusal::Block, false)
        );
        refusals += 1;
        assert_eq!(world.refused(&chain, 1, Refusal::Block), refusals);
        chain.give(5);
        let allowed = Record::to(2, 5, PASS);
        send(&chain.one.near, allowed);
        assert_eq!(receive(&chain.two.near), allowed.from(1));
    }
    nothing_comes(&chain.two.near);
    nothing_comes(&chain.one.near);
    assert_eq!(world.refused(&chain, 1, Refusal::Edge), 6);
}

/// Two chains with the same numbers, in one namespace: a member names its own chain's, whatever it writes.
#[test]
fn a_member_cannot_name_another_chains_sockets_or_blocks() {
    let Some(mut world) = World::new() else {
        return;
    };
    let (mine, other) = (world.chain(1), world.chain(2));
    other.give(6);
    // The other chain's block.
    send(&mine.one.near, Record::to(2, 6, PASS));
    let refused = Record::to(2, 6, PASS).refused(Refusal::Block, false);
    assert_eq!(receive(&mine.one.far), refused);
    // An instance that only the other chain has.
    let third = Ends::new(&world.namespace);
    world
        .exchange
        .seat(other.seat(3), 2, third.pair())
        .expect("seated");
    mine.give(1);
    send(&mine.one.near, Record::to(3, 1, PASS));
    let refused = Record::to(3, 1, PASS).refused(Refusal::Target, true);
    assert_eq!(receive(&mine.one.far), refused);
    for end in [
        &other.one.near,
        &other.one.far,
        &other.two.near,
        &third.near,
    ] {
        nothing_comes(end);
    }
    assert_eq!(world.holder(&other, 6), 1);
}

#[test]
fn a_flood_is_no_more_than_its_senders_blocks_and_waits_at_the_gateway() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    chain.give(1);
    let flood = Record::to(2, 1, PASS);
    chain.one.near.set_nonblocking(true).expect("set");
    let mut sent = 0_u64;
    let full = loop {
        match (&chain.one.near).write(&flood.bytes()) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
        // Of 16 bytes each: far more than the two sockets hold.
        assert!(sent < 4_000_000, "nothing stops it");
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    assert_eq!(receive(&chain.two.near), flood.from(1));
    nothing_comes(&chain.two.near);
    let mut bytes = vec![0; 1 << 16];
    let mut read = 0_u64;
    chain.one.far.set_nonblocking(true).expect("set");
    while read < (sent - 1) * 16 {
        match (&chain.one.far).read(&mut bytes) {
            Ok(length) => read += length as u64,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
    chain.give(2);
    let onward = Record::to(2, 2, PASS);
    send(&chain.one.near, onward);
    assert_eq!(receive(&chain.two.near), onward.from(1));
}

#[test]
fn what_is_no_descriptor_is_its_senders_last() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    chain.give(1);
    for bytes in [&[0; 15][..], &[0; 32]] {
        let dropped = (&chain.one.near).write(bytes).expect_err("dropped");
        assert_eq!(dropped.kind(), ErrorKind::PermissionDenied);
    }
    // The kernel does not ask a second time.
    assert_eq!(world.refused(&chain, 1, Refusal::Size), 1);
    nothing_comes(&chain.one.far);
    // Put into the map again, it is as before.
    world
        .exchange
        .unseat(chain.seat(1))
        .expect("there was a seat");
    let gone = (&chain.one.near).write(&Record::to(2, 1, PASS).bytes());
    drop(gone);
    let fresh = Ends::new(&world.namespace);
    world
        .exchange
        .seat(chain.seat(1), 1, fresh.pair())
        .expect("seated");
    send(&fresh.near, Record::to(2, 1, PASS));
    assert_eq!(receive(&chain.two.near), Record::to(1, 1, PASS));
}

#[test]
fn a_target_that_goes_away_is_no_ones_end_but_its_own() {
    let Some(mut world) = World::new() else {
        return;
    };
    let Chain { number, one, two } = world.chain(1);
    let chain = Chain {
        number,
        one,
        two: Ends::new(&world.namespace),
    };
    drop(two);
    chain.give(1);
    let onward = Record::to(2, 1, PASS);
    send(&chain.one.near, onward);
    assert_eq!(receive(&chain.one.far), onward.refused(Refusal::Gone, true));
    world
        .exchange
        .seat(chain.seat(2), 2, chain.two.pair())
        .expect("another one");
    chain.give(1);
    send(&chain.one.near, onward);
    assert_eq!(receive(&chain.two.near), onward.from(1));
    // The gateway forgets a chain's edges and blocks.
    let pair = EdgeKey {
        chain: 1,
        from: 1,
        to: 2,
    };
    world.exchange.forbid(pair).expect("forgotten");
    assert_eq!(world.exchange.edge(pair).expect("read"), None::<Edge>);
    world.exchange.forget_blocks(1, 0..8).expect("forgotten");
    let key = BlockKey {
        chain: 1,
        number: 1,
    };
    assert_eq!(world.exchange.block(key).expect("read"), None);
}

/// What the gateway tells the library at the other end comes unchanged, after what was sent before.
#[test]
fn news_of_the_gateway_arrive_and_nobody_else_sends_any() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    let (given, news) = (Record::to(1, 0, PASS), Record::to(2, 0, NEWS));
    send(&chain.one.far, given);
    send(&chain.one.far, news);
    send(&chain.one.far, given);
    for expected in [given.from(0), news, given.from(0)] {
        assert_eq!(receive(&chain.one.near), expected);
    }
}

/// A member is killed: what it has sent to the gateway is there, although it has not read all that it was sent.
#[test]
fn what_a_member_sent_before_its_end_is_received() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    for block in 0..100 {
        chain.give(block);
        send(&chain.one.near, Record::to(2, block, PASS));
        let back = Record::to(0, block, PASS);
        assert_eq!(receive(&chain.two.near), back.from(1));
        send(&chain.two.near, back);
    }
    send(&chain.one.near, Record::to(2, 5, PASS));
    // Neither is read.
    send(&chain.two.far, Record::to(1, 0, NEWS));
    send(&chain.two.far, Record::to(2, 200, PASS));
    let seat = chain.seat(2);
    let Ends { near, far } = chain.two;
    drop(near);
    world.exchange.unseat(seat).expect("there was a seat");
    for block in 0..100 {
        assert_eq!(receive(&far), Record::to(2, block, PASS));
    }
    let end = (&far).read(&mut [0; 16]).expect("its end");
    assert_eq!(end, 0);
    // What was on its way to it is still its.
    assert_eq!(world.exchange.seated(seat).expect("read"), None);
    let key = BlockKey {
        chain: 1,
        number: 200,
    };
    let block = world.exchange.block(key).expect("read").expect("known");
    assert_eq!(block.holder, 2);
}

/// A block is known by its number and its generation, and of those of a refused one neither is its sender's word.
#[test]
fn a_refused_block_has_the_generation_that_the_gateway_sent() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    let forged = |record: Record| {
        let mut bytes = record.bytes();
        bytes[4..6].copy_from_slice(&[0x11, 0x11]);
        bytes
    };
    chain.give(4);
    let denied = Record::to(1, 4, PASS);
    let sent = (&chain.one.near).write(&forged(denied)).expect("sent");
    assert_eq!(sent, 16);
    // `receive` compares the generation.
    assert_eq!(receive(&chain.one.far), denied.refused(Refusal::Edge, true));
    let key = BlockKey {
        chain: 1,
        number: 4,
    };
    let block = world.exchange.block(key).expect("read").expect("known");
    assert_eq!((block.holder, block.generation), (0, 0xaaaa));
}

/// Why the pairs are of TCP: through a Unix socket bytes go by without the program.
#[test]
fn unix_sockets_run_no_program() {
    let Some(mut world) = World::new() else {
        return;
    };
    let chain = world.chain(1);
    let (near, far) = UnixStream::pair().expect("a pair");
    let pair = Pair {
        near: near.as_fd(),
        far: far.as_fd(),
    };
    let seat = chain.seat(7);
    if world.exchange.seat(seat, 2, pair).is_err() {
        return; // older kernels take none at all
    }
    let denied = Record::to(1, 0, PASS).bytes();
    (&near).write_all(&denied).expect("sent");
    let mut bytes = [0; 16];
    (&far).read_exact(&mut bytes).expect("it came");
    assert_eq!(bytes, denied);
    let seat = world.exchange.seated(seat).expect("read").expect("a seat");
    assert_eq!(seat.refused, [0; 6]);
}
