//! A fuzz target: the gateway's receiver, sender and pool against a member that writes what it likes to its own board and to
//! the blocks, between any two steps. Whatever it does, the gateway gets descriptors that it may follow or typed errors; an honest
//! member beside it is served in order; and nothing that the hostile one may not write has changed.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth-chain arbitrary_writes` fuzzes.
#![cfg(not(loom))]

mod common;

use common::{Party, SLOTS, connect, descriptor};
use hearth_chain::shape::{MIN_BLOCK_BYTES, Shape};
use hearth_chain::{
    Block, Descriptor, Inbox, Instance, Note, Owner, Pool, PoolView, RecvError, Refused, SendError,
};
use rustix::io::{pread, pwrite};

/// Random cases in a run of the test suite: a few seconds.
const CASES: usize = 3_000;
/// Longest case, in bytes: some dozens of steps.
const CASE_BYTES: usize = 500;
const BLOCKS: u32 = 4;
/// Bytes of a board of `common::shape`.
const BOARD: u64 = 4096;

/// A request on the route of all descriptors here.
fn of_request(id: u32) -> Owner {
    Owner::Request { id, route: 1 }
}

/// The fuzzer's bytes, read as steps.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }
}

struct Scene {
    pool: Pool,
    view: PoolView,
    gateway: Party,
    hostile: Party,
    honest: Party,
    /// What the honest member has sent and the gateway has not received.
    on_the_way: std::collections::VecDeque<u32>,
    sent: u32,
    /// The edge to the hostile member was closed by an error.
    is_broken: bool,
    requests: u32,
}

impl Scene {
    fn new() -> Self {
        let [mut gateway, mut hostile, mut honest] = [0, 1, 2].map(Party::new);
        connect(&mut hostile, 0, &mut gateway, 0);
        connect(&mut gateway, 0, &mut hostile, 0);
        connect(&mut honest, 0, &mut gateway, 1);
        let shape = Shape::new(BLOCKS, MIN_BLOCK_BYTES).expect("a shape");
        let pool = Pool::create(shape, false).expect("a pool");
        Self {
            view: PoolView::attach(pool.files().expect("descriptors")).expect("the pool"),
            pool,
            gateway,
            hostile,
            honest,
            on_the_way: std::collections::VecDeque::new(),
            sent: 0,
            is_broken: false,
            requests: 0,
        }
    }

    /// One write of the hostile member's: anything, or something near the truth, which gets further.
    fn write(&self, script: &mut Script<'_>) -> Option<()> {
        let board = self.hostile.server.for_owner().expect("its own");
        let (head, tail, slots) = (128 * 5, 128, 128 * 9);
        let word = |at| {
            let mut bytes = [0; 4];
            pread(&board, &mut bytes, at).expect("its own");
            u32::from_le_bytes(bytes)
        };
        let (at, bytes) = match script.byte()? % 7 {
            0 => (
                u64::from(u16::from_le_bytes(script.bytes()?)) % (BOARD - 16),
                script.bytes::<16>()?.to_vec(),
            ),
            1 => (head, script.bytes::<4>()?.to_vec()),
            2 => (tail, script.bytes::<4>()?.to_vec()),
            3 => (head, word(head).wrapping_add(1).to_le_bytes().to_vec()),
            4 => (tail, word(tail).wrapping_add(1).to_le_bytes().to_vec()),
            5 => {
                let slot = u64::from(script.byte()?) % u64::from(SLOTS);
                let mut descriptor = script.bytes::<16>()?;
                // Mostly to the gateway, of a block that is there.
                if script.byte()? % 4 > 0 {
                    descriptor[6..8].fill(0);
                    descriptor[8] %= BLOCKS as u8 + 1;
                    descriptor[9] = 0;
                    descriptor[10] &= 0xf8;
                }
                (slots + slot * 16, descriptor.to_vec())
            }
            _ => {
                let note = Note {
                    holder: Instance(script.byte()?.into()),
                    epoch: 0,
                    hop: 0,
                };
                self.view.note(script.byte()?.into(), note);
                return Some(());
            }
        };
        pwrite(&board, &bytes, at).expect("its own");
        Some(())
    }

    fn receive(&mut self) {
        let inbox: &mut Inbox = &mut self.gateway.edges.inbox;
        match inbox.try_recv() {
            Ok(Some(arrival)) if arrival.from == self.honest.id => {
                let number = self.on_the_way.pop_front().expect("it was sent");
                assert_eq!(arrival.descriptor, descriptor(Instance(0), number));
            }
            Ok(Some(arrival)) => {
                assert_eq!(
                    (arrival.from, arrival.descriptor.target),
                    (Instance(1), Instance(0))
                );
                self.follow(&arrival.descriptor);
            }
            Ok(None) => assert!(self.on_the_way.is_empty()),
            Err(
                RecvError::Refused { from, .. }
                | RecvError::Gone(from)
                | RecvError::Broken { from, .. },
            ) => {
                assert_eq!(from, Instance(1));
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// What the gateway does with a hostile member's descriptor.
    fn follow(&self, descriptor: &Descriptor) {
        let before = self.pool.in_use();
        match self.pool.check(descriptor, Instance(1)) {
            Ok(block) => {
                let mut copy = Vec::new();
                self.pool
                    .read(block, descriptor.len, &mut copy)
                    .expect("just checked");
                assert_eq!(copy.len(), descriptor.len as usize);
                self.pool.free(block).expect("just checked");
                assert_eq!(
                    self.pool
                        .free(block)
                        .map_err(|refused| matches!(refused, Refused::Stale { .. })),
                    Err(true)
                );
                assert_eq!(self.pool.in_use(), before - 1);
            }
            Err(_) => assert_eq!(self.pool.in_use(), before),
        }
    }

    fn send(&mut self) {
        self.requests += 1;
        let Ok(block) = self.pool.allocate(of_request(self.requests)) else {
            assert_eq!(self.pool.in_use(), BLOCKS);
            return;
        };
        let mut outgoing = descriptor(Instance(1), self.requests);
        (outgoing.block, outgoing.generation) = (block.index, block.generation);
        let sent = self.gateway.edges.outbox.send(&outgoing);
        match sent {
            Ok(()) => assert!(!self.is_broken),
            Err(SendError::Full(_)) => self.pool.free(block).expect("in use"),
            Err(SendError::NoEdge(_)) => {
                assert!(self.is_broken);
                self.pool.free(block).expect("in use");
            }
            Err(SendError::Broken { .. } | SendError::Gone(_)) => {
                self.is_broken = true;
                self.pool.free(block).expect("in use");
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        let choice = script.byte()?;
        match choice % 8 {
            0..=3 => self.write(script)?,
            4 => self.receive(),
            5 => self.send(),
            6 => {
                let next = descriptor(Instance(0), self.sent);
                match self.honest.edges.outbox.send(&next) {
                    Ok(()) => {
                        self.on_the_way.push_back(self.sent);
                        self.sent += 1;
                    }
                    Err(SendError::Full(_)) => assert_eq!(self.on_the_way.len(), SLOTS as usize),
                    Err(other) => panic!("{other}"),
                }
            }
            _ => {
                let inbox = &self.gateway.edges.inbox;
                assert_eq!(inbox.announce().expect("alive"), !inbox.is_ready());
                inbox.retract();
                let claims = self.pool.held_by(Instance(1), 0);
                assert!(claims.len() <= BLOCKS as usize);
            }
        }
        Some(())
    }
}

/// Runs a script to its end; then the honest member is served, and all blocks come back.
fn run(input: &[u8]) {
    let mut scene = Scene::new();
    let mut script = Script(input);
    while scene.step(&mut script).is_some() {}
    // The hostile one may have some descriptors more on its ring, and one violation.
    for _ in 0..2 * SLOTS + 2 {
        scene.receive();
    }
    assert!(scene.on_the_way.is_empty());
    for request in 0..=scene.requests {
        scene.pool.reclaim(of_request(request));
    }
    assert_eq!(scene.pool.in_use(), 0);
    for _ in 0..BLOCKS {
        scene.pool.allocate(Owner::Gateway).expect("all came back");
    }
}

#[test]
fn arbitrary_writes_to_a_board() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(CASE_BYTES)
        .for_each(|input: &[u8]| run(input));
}

/// Any sixteen bytes, against a pool with one block of each kind of owner, and a run of three: followed only if they name a block that
/// the sender may send, whole or the beginning of a run, and no more bytes than it has by the ledger.
#[test]
fn arbitrary_descriptors() {
    const WITH_RUNS: u32 = 16;
    const LONGEST: u32 = 4 * MIN_BLOCK_BYTES;
    let shape = Shape::new(WITH_RUNS, MIN_BLOCK_BYTES).expect("a shape");
    let shape = shape.with_payload_bytes(LONGEST).expect("a shape");
    let pool = Pool::create(shape, false).expect("a pool");
    let view = PoolView::attach(pool.files().expect("descriptors")).expect("the pool");
    let granted = |instance| Owner::Instance {
        instance: Instance(instance),
        epoch: 1,
    };
    let lent = |instance| Owner::Call {
        instance: Instance(instance),
        call: 1,
        is_result: false,
    };
    let given = [
        (of_request(1), 1),
        (granted(1), 1),
        (granted(2), 1),
        (Owner::Gateway, 1),
        (lent(1), 2 * MIN_BLOCK_BYTES),
        (lent(2), 1),
        (of_request(1), 3 * MIN_BLOCK_BYTES),
        (of_request(2), 2 * MIN_BLOCK_BYTES),
    ]
    .map(|(owner, bytes)| {
        let block = pool.allocate_for(owner, bytes as usize).expect("a block");
        (block, owner, bytes.next_multiple_of(MIN_BLOCK_BYTES))
    });
    bolero::check!()
        .with_iterations(CASES * 10)
        .with_type::<([u8; 16], u8)>()
        .for_each(|(bytes, near)| {
            let mut bytes = *bytes;
            if near % 2 == 0 {
                // The block's number, the route and the generation's upper half are near the truth.
                (bytes[5], bytes[9]) = (0, 0);
                bytes[8] %= WITH_RUNS as u8 + 1;
                (bytes[1], bytes[2], bytes[3]) = (0, 0, 0);
                bytes[0] %= 3;
                bytes[4] %= 2;
                (bytes[11], bytes[12]) = (bytes[11] % 0x40, 0);
                (bytes[13], bytes[14]) = (bytes[13] & 0x08, bytes[14] & 0xf8);
            }
            let Ok(descriptor) = Descriptor::from_bytes(bytes) else {
                return;
            };
            // Before any of it is checked.
            view.expect(descriptor.block);
            let named = given
                .iter()
                .find(|(block, _, _)| *block == Block::of(&descriptor));
            let is_block = named.is_some();
            let fits = named.is_some_and(|(_, _, room)| descriptor.len <= *room);
            let is_sendable = match named {
                Some((_, owner @ Owner::Request { .. }, _)) => *owner == descriptor.owner(),
                Some((_, Owner::Instance { instance, .. } | Owner::Call { instance, .. }, _)) => {
                    *instance == Instance(1)
                }
                _ => false,
            };
            let found = pool.check(&descriptor, Instance(1));
            assert_eq!(
                found.is_ok(),
                is_block && fits && is_sendable && !descriptor.more,
                "{found:?}"
            );
            if let Ok(payload) = view.check(&descriptor, Instance(1)) {
                assert!(is_block && fits && payload.len() <= payload.capacity());
            }
        });
}
