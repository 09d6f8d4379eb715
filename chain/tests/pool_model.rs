//! The pool against a model of maps and sets, and its view by a member.
#![cfg(not(loom))]

use std::collections::{BTreeMap, BTreeSet};

use hearth_chain::shape::{MIN_BLOCK_BYTES, Shape};
use hearth_chain::{
    Block, Descriptor, Exhausted, Instance, Kind, Note, Owner, Pool, PoolView, Refused, Table,
};
use proptest::prelude::*;

const BLOCKS: u32 = 4;
/// Of a pool with runs: blocks in all, and of the longest run.
const RUN_BLOCKS: u32 = 16;
const LONGEST: u32 = 4;

fn pool() -> Pool {
    let shape = Shape::new(BLOCKS, MIN_BLOCK_BYTES).expect("a shape");
    Pool::create(shape, false).expect("a pool")
}

/// A pool whose payloads may have several blocks: half of its blocks are for those.
fn pool_of_runs() -> Pool {
    let shape = Shape::new(RUN_BLOCKS, MIN_BLOCK_BYTES).expect("a shape");
    let shape = shape.with_payload_bytes(LONGEST * MIN_BLOCK_BYTES);
    Pool::create(shape.expect("a shape"), false).expect("a pool")
}

fn view(pool: &Pool) -> PoolView {
    PoolView::attach(pool.files().expect("descriptors")).expect("the pool")
}

fn descriptor(block: Block, request: u32, len: u32) -> Descriptor {
    Descriptor {
        request,
        generation: block.generation,
        target: Instance(1),
        block: block.index,
        len,
        route: 0,
        hop: 0,
        table: Table::A,
        kind: Kind::Pass,
        more: false,
    }
}

/// A request on the route of these tests.
fn of_request(id: u32) -> Owner {
    Owner::Request { id, route: 0 }
}

fn owners() -> impl Strategy<Value = Owner> {
    let instance = |(instance, epoch)| Owner::Instance {
        instance: Instance(instance),
        epoch,
    };
    let call = |(instance, call, is_result)| Owner::Call {
        instance: Instance(instance),
        call,
        is_result,
    };
    prop_oneof![
        Just(Owner::Gateway),
        (0..3_u32, 0..2_u8).prop_map(|(id, route)| Owner::Request { id, route }),
        (1..3_u16, 0..2_u16).prop_map(instance),
        (1..3_u16, 0..3_u16, any::<bool>()).prop_map(call),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    /// For a payload of so many bytes.
    Allocate(Owner, u32),
    /// Of all blocks ever given out.
    Free(prop::sample::Index),
    Reclaim(Owner),
    Check {
        block: prop::sample::Index,
        request: u32,
        route: u8,
        source: u16,
        len: u32,
        is_call: bool,
    },
    Write(prop::sample::Index, u32, u8),
}

/// Lengths about those of blocks and runs, and beyond.
fn lens() -> impl Strategy<Value = u32> {
    (0..=LONGEST + 1, 0..3_u32)
        .prop_map(|(blocks, more)| (blocks * MIN_BLOCK_BYTES + more).saturating_sub(1))
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => (owners(), lens()).prop_map(|(owner, len)| Step::Allocate(owner, len)),
        2 => index().prop_map(Step::Free),
        1 => owners().prop_map(Step::Reclaim),
        4 => (index(), 0..3_u32, 0..2_u8, 0..3_u16, lens(), any::<bool>()).prop_map(
            |(block, request, route, source, len, is_call)| {
                Step::Check { block, request, route, source, len, is_call }
            }
        ),
        2 => (index(), lens(), any::<u8>())
            .prop_map(|(block, len, byte)| Step::Write(block, len, byte)),
    ]
}

/// What the pool should be.
#[derive(Default)]
struct Model {
    owners: BTreeMap<u32, (Block, Owner)>,
    /// How many blocks each of them has.
    lengths: BTreeMap<u32, u32>,
    given: Vec<Block>,
}

impl Model {
    fn owner(&self, block: Block) -> Option<Owner> {
        let found = self.owners.get(&block.index);
        found
            .filter(|(found, _)| *found == block)
            .map(|(_, owner)| *owner)
    }

    /// Bytes of a block in use; none of any other.
    fn room(&self, block: Block) -> u32 {
        let blocks = self.lengths.get(&block.index).copied();
        self.owner(block).and(blocks).unwrap_or_default() * MIN_BLOCK_BYTES
    }

    fn is_free(&self, index: u32) -> bool {
        let mut runs = self.lengths.iter();
        !runs.any(|(first, blocks)| (*first..first + blocks).contains(&index))
    }

    /// Whether so many bytes could be given room: a block anywhere, a run in the upper half.
    fn has_room(&self, len: u32) -> bool {
        match len.div_ceil(MIN_BLOCK_BYTES) {
            0 | 1 => (0..RUN_BLOCKS).any(|index| self.is_free(index)),
            blocks if blocks > LONGEST => false,
            blocks => (RUN_BLOCKS / 2..=RUN_BLOCKS - blocks)
                .any(|first| (first..first + blocks).all(|index| self.is_free(index))),
        }
    }

    /// One of all blocks ever given out.
    fn pick(&self, index: &prop::sample::Index) -> Option<Block> {
        (!self.given.is_empty()).then(|| *index.get(&self.given))
    }
}

proptest! {
    #[test]
    fn the_pool_is_what_the_model_is(steps in prop::collection::vec(steps(), 1..80)) {
        let pool = pool_of_runs();
        let view = view(&pool);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Allocate(owner, len) => match pool.allocate_for(owner, len as usize) {
                    Ok(block) => {
                        let blocks = len.div_ceil(MIN_BLOCK_BYTES).max(1);
                        let run = block.index..block.index + blocks;
                        prop_assert!(blocks <= LONGEST && run.end <= RUN_BLOCKS);
                        prop_assert!(run.clone().all(|index| model.is_free(index)), "{:?}", run);
                        prop_assert!(!model.given.contains(&block), "a new generation");
                        let room = blocks * MIN_BLOCK_BYTES;
                        prop_assert_eq!(pool.room(block), Ok(room));
                        prop_assert_eq!(view.room(block.index), room);
                        let mut bytes = Vec::new();
                        pool.read(block, room, &mut bytes).expect("in use");
                        prop_assert!(bytes.iter().all(|&byte| byte == 0), "cleared");
                        for inner in run.skip(1) {
                            let inner = Block { index: inner, generation: block.generation };
                            prop_assert_eq!(pool.owner(inner), None);
                            prop_assert!(pool.free(inner).is_err());
                        }
                        model.owners.insert(block.index, (block, owner));
                        model.lengths.insert(block.index, blocks);
                        model.given.push(block);
                    }
                    Err(Exhausted) => prop_assert!(!model.has_room(len)),
                },
                Step::Free(index) => {
                    let Some(block) = model.pick(&index) else { continue };
                    prop_assert_eq!(pool.free(block).is_ok(), model.owner(block).is_some());
                    if model.owner(block).is_some() {
                        model.owners.remove(&block.index);
                        model.lengths.remove(&block.index);
                    }
                }
                Step::Reclaim(owner) => {
                    let before = model.owners.len();
                    model.owners.retain(|_, (_, found)| *found != owner);
                    model.lengths.retain(|index, _| model.owners.contains_key(index));
                    let reclaimed = before - model.owners.len();
                    prop_assert_eq!(pool.reclaim(owner) as usize, reclaimed);
                }
                Step::Check { block, request, route, source, len, is_call } => {
                    let Some(block) = model.pick(&block) else { continue };
                    let kind = if is_call { Kind::Call } else { Kind::Pass };
                    let descriptor = Descriptor { route, kind, ..descriptor(block, request, len) };
                    let source = Instance(source);
                    let owner = model.owner(block);
                    let fits = len <= model.room(block);
                    let (by_gateway, by_member) = match owner {
                        Some(Owner::Request { id, route: of }) => {
                            let is_it = (id, of) == (request, route);
                            (is_it, is_it)
                        }
                        Some(Owner::Instance { instance, .. } | Owner::Call { instance, .. }) => {
                            (instance == source, is_call)
                        }
                        Some(Owner::Gateway) => (false, source == Instance::GATEWAY),
                        None => (false, false),
                    };
                    let found = pool.check(&descriptor, source);
                    prop_assert_eq!(found.is_ok(), fits && by_gateway, "{:?}", found);
                    let found = view.check(&descriptor, source);
                    prop_assert_eq!(found.is_ok(), fits && by_member, "{:?}", found);
                }
                Step::Write(index, len, byte) => {
                    let payload = vec![byte; len as usize];
                    let Some(block) = model.pick(&index) else { continue };
                    let is_used = model.owner(block).is_some() && len <= model.room(block);
                    prop_assert_eq!(pool.write(block, &payload).is_ok(), is_used);
                    if !is_used { continue }
                    let (request, route, kind) = match model.owner(block) {
                        Some(Owner::Request { id, route }) => (id, route, Kind::Pass),
                        _ => (0, 0, Kind::Call),
                    };
                    let descriptor = Descriptor { route, kind, ..descriptor(block, request, len) };
                    let seen = view.check(&descriptor, Instance::GATEWAY).expect("in use");
                    let mut copy = Vec::new();
                    seen.read(&mut copy);
                    prop_assert_eq!(copy, payload);
                }
            }
            prop_assert_eq!(pool.in_use(), model.lengths.values().sum::<u32>());
            for caller in [1, 2].map(Instance) {
                let theirs: Vec<_> = model
                    .owners
                    .values()
                    .filter(|(_, owner)| owner.caller() == Some(caller))
                    .copied()
                    .collect();
                prop_assert_eq!(pool.for_calls_of(caller), theirs.clone());
                let is_result = |(block, owner): &(Block, Owner)| match owner {
                    Owner::Call { call, is_result: true, .. } => Some((*block, u32::from(*call))),
                    _ => None,
                };
                let results: Vec<_> = theirs.iter().filter_map(is_result).collect();
                prop_assert_eq!(view.results_of(caller), results);
            }
        }
        // All come back, and are all different.
        let all: BTreeSet<Owner2> = model.owners.values().map(|(_, owner)| Owner2(owner.pack())).collect();
        for owner in all {
            pool.reclaim(Owner::unpack(owner.0).expect("packed"));
        }
        let longest = (LONGEST * MIN_BLOCK_BYTES) as usize;
        for _ in 0..RUN_BLOCKS / 2 / LONGEST {
            let run = pool.allocate_for(Owner::Gateway, longest).expect("all are free");
            pool.free(run).expect("in use");
        }
        let again: BTreeSet<u32> = (0..RUN_BLOCKS)
            .map(|_| pool.allocate(Owner::Gateway).expect("all are free").index)
            .collect();
        prop_assert_eq!(again.len(), RUN_BLOCKS as usize);
        prop_assert_eq!(pool.allocate(Owner::Gateway), Err(Exhausted));
    }
}

/// For a set.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Owner2(u64);

/// Whatever its block: a payload has one descriptor.
#[test]
fn a_message_that_goes_on_elsewhere_is_refused() {
    let pool = pool_of_runs();
    let view = view(&pool);
    for bytes in [1, 3 * MIN_BLOCK_BYTES] {
        let block = pool.allocate_for(of_request(1), bytes as usize);
        let whole = descriptor(block.expect("room"), 1, bytes);
        let part = Descriptor {
            more: true,
            ..whole
        };
        assert!(pool.check(&whole, Instance(1)).is_ok());
        assert!(view.check(&whole, Instance(1)).is_ok());
        assert_eq!(pool.check(&part, Instance(1)), Err(Refused::Continued));
        let refused = view.check(&part, Instance(1)).map(drop);
        assert_eq!(refused, Err(Refused::Continued));
    }
}

#[test]
fn threads_take_and_give_back_without_losing_a_block() {
    let pool = pool();
    std::thread::scope(|scope| {
        for request in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..5_000_u32 {
                    let Ok(block) = pool.allocate(of_request(request)) else {
                        continue;
                    };
                    let payload = (round ^ request).to_le_bytes();
                    pool.write(block, &payload).expect("in use");
                    let mut copy = Vec::new();
                    pool.read(block, 8, &mut copy).expect("in use");
                    assert_eq!(copy, [payload, [0; 4]].concat(), "nobody else's");
                    if round % 3 == 0 {
                        assert_eq!(pool.reclaim(of_request(request)), 1);
                    } else {
                        pool.free(block).expect("in use");
                    }
                }
            });
        }
    });
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_member_changes_a_payload_in_place() {
    let pool = pool();
    let view = view(&pool);
    let block = pool.allocate(of_request(5)).expect("a block");
    pool.write(block, b"ping").expect("in use");
    let mut payload = view
        .check(&descriptor(block, 5, 4), Instance::GATEWAY)
        .expect("in use");
    assert_eq!((payload.len(), payload.is_empty()), (4, false));
    assert_eq!(payload.capacity(), MIN_BLOCK_BYTES as usize);
    let long = vec![1; MIN_BLOCK_BYTES as usize + 1];
    assert!(matches!(payload.write(&long), Err(Refused::TooLong { .. })));
    // SAFETY: within the capacity, and nobody else has the block.
    unsafe { payload.as_ptr().write(b'P') };
    let mut copy = Vec::new();
    payload.read(&mut copy);
    assert_eq!(copy, b"Ping");
    assert_eq!(payload.write(b"pong!"), Ok(5));
    copy.clear();
    pool.read(block, 5, &mut copy).expect("in use");
    assert_eq!(copy, b"pong!");
}

#[test]
fn a_payload_moves_to_a_larger_run_with_what_is_noted_of_it() {
    let pool = pool_of_runs();
    let view = view(&pool);
    let small = pool.allocate_for(of_request(1), 10).expect("a block");
    pool.write(small, b"0123456789").expect("in use");
    let note = Note {
        holder: Instance(3),
        epoch: 0,
        hop: 2,
    };
    view.note(small.index, note);
    let room = 3 * MIN_BLOCK_BYTES;
    let large = pool
        .allocate_for(of_request(1), room as usize)
        .expect("a run");
    pool.copy(small, large).expect("both are in use");
    assert_eq!(pool.noted(large), Ok(note));
    pool.free(small).expect("in use");
    let of_large = |len| view.check(&descriptor(large, 1, len), Instance(2));
    let mut payload = of_large(10).expect("in use");
    assert_eq!(payload.capacity(), room as usize);
    let mut copy = Vec::new();
    payload.read(&mut copy);
    assert_eq!(copy, b"0123456789");
    // All of it is there to be written, and nothing behind it.
    assert_eq!(payload.write(&vec![7; room as usize]), Ok(room));
    assert!(of_large(room).is_ok() && of_large(room + 1).is_err());
    assert!(pool.copy(small, large).is_err(), "it is free");
    let other = pool.allocate_for(of_request(2), 1).expect("a block");
    assert!(pool.copy(large, other).is_err(), "it is smaller");
    pool.free(large).expect("in use");
    let again = pool.allocate_for(of_request(3), room as usize);
    let again = again.expect("a run");
    copy.clear();
    pool.read(again, room, &mut copy).expect("in use");
    assert!(copy.iter().all(|&byte| byte == 0), "cleared to its end");
}

#[test]
fn a_kept_address_of_a_run_leads_to_a_copy_of_all_of_it() {
    let pool = pool_of_runs();
    let mut view = view(&pool);
    let room = 3 * MIN_BLOCK_BYTES;
    let run = pool.allocate_for(of_request(1), room as usize);
    let run = run.expect("a run");
    pool.write(run, &vec![b'k'; room as usize]).expect("in use");
    let kept = view.address(run.index);
    let copies = view.leave_copies(&mut vec![run.index]).expect("memory");
    assert_eq!(copies.len(), 1);
    pool.write(run, &vec![b'n'; room as usize]).expect("in use");
    for at in [0, MIN_BLOCK_BYTES, room - 1] {
        // SAFETY: within the copy, which is mapped as long as `copies`.
        assert_eq!(unsafe { kept.add(at as usize).read() }, b'k', "{at}");
        // SAFETY: within the run, which the view has mapped.
        let now = unsafe { view.address(run.index).add(at as usize).read() };
        assert_eq!(now, b'n', "{at}");
    }
}

#[test]
fn who_has_kept_an_address_has_a_copy_of_what_was_there() {
    let pool = pool();
    let mut view = view(&pool);
    let [kept, other, last] = [1, 2, 3].map(|id| pool.allocate(of_request(id)).expect("a block"));
    for (block, text) in [(kept, b"kept"), (other, b"else"), (last, b"last")] {
        pool.write(block, text).expect("in use");
    }
    let [first, third] = [kept, last].map(|block| view.address(block.index));
    // SAFETY: within a block each, which is mapped as long as its copy; nobody else writes to it.
    let read = |at: *mut u8| unsafe { at.cast::<[u8; 4]>().read() };
    let copies = view
        .leave_copies(&mut vec![last.index, kept.index, last.index])
        .expect("memory");
    assert_eq!(copies.len(), 2);
    pool.write(kept, b"next").expect("in use");
    assert_eq!((&read(first), &read(third)), (b"kept", b"last"));
    // SAFETY: as above.
    unsafe { first.write(b'X') };
    // The blocks themselves are elsewhere, and shared as before.
    for (block, text) in [(kept, b"next"), (other, b"else"), (last, b"last")] {
        assert_eq!(&read(view.address(block.index)), text);
        let mut copy = Vec::new();
        pool.read(block, 4, &mut copy).expect("in use");
        assert_eq!(copy, text);
    }
    assert!(view.address(kept.index) != first && view.address(last.index) != third);
}

#[test]
fn the_requests_in_a_dead_instances_hands_are_found() {
    let pool = pool();
    let view = view(&pool);
    let holder = |epoch| Note {
        holder: Instance(2),
        epoch,
        hop: 3,
    };
    let blocks = [1, 1, 2, 3].map(|id| pool.allocate(of_request(id)).expect("a block"));
    for (block, note) in blocks
        .iter()
        .zip([holder(1), holder(1), holder(0), holder(1)])
    {
        view.note(block.index, note);
    }
    view.note(BLOCKS, holder(1));
    assert_eq!(pool.noted(blocks[0]), Ok(holder(1)));
    pool.free(blocks[3]).expect("in use");
    assert_eq!(pool.held_by(Instance(2), 1), [of_request(1)]);
    assert_eq!(pool.held_by(Instance(2), 0), [of_request(2)]);
    // A note does not outlive its use.
    let again = pool.allocate(of_request(9)).expect("a block");
    assert_eq!(pool.noted(again).expect("in use").holder, Instance::GATEWAY);
}

#[test]
fn a_payload_s_limit_is_whole_blocks_and_half_of_the_pool() {
    let shape = |blocks, bytes: u32, payload| {
        Shape::new(blocks, bytes)
            .expect("a shape")
            .with_payload_bytes(payload)
    };
    for (blocks, bytes, payload) in [
        (8, 4096, 0),
        (8, 4096, 5000),
        (8, 4096, 5 * 4096),
        (1, 4096, 2 * 4096),
        (65_536, 4096, (64 << 20) + 4096),
    ] {
        assert!(shape(blocks, bytes, payload).is_err(), "{payload}");
    }
    for (blocks, bytes, payload) in [
        (1, 4096, 4096),
        (8, 4096, 4 * 4096),
        (65_536, 4096, 64 << 20),
    ] {
        let shape = shape(blocks, bytes, payload).expect("a shape");
        assert_eq!(shape.payload_bytes(), payload);
        assert_eq!(shape.blocks_for(payload), payload / bytes);
        assert_eq!((shape.blocks_for(0), shape.blocks_for(1)), (1, 1));
    }
}

#[test]
fn a_shape_has_its_limits() {
    for (blocks, bytes) in [
        (0, 4096),
        (65_537, 4096),
        (1, 2048),
        (1, 5000),
        (1, 16 << 20),
        (16_384, 8 << 20),
    ] {
        assert!(Shape::new(blocks, bytes).is_err(), "{blocks} of {bytes}");
    }
    for (blocks, bytes) in [(1, 4096), (65_536, 4096), (8192, 8 << 20)] {
        assert!(Shape::new(blocks, bytes).is_ok(), "{blocks} of {bytes}");
    }
}

/// On kernels that deny huge pages in shared memory it lies in small ones, and works all the same.
#[test]
fn a_pool_in_huge_pages_works() {
    let shape = Shape::new(1024, MIN_BLOCK_BYTES).expect("a shape");
    let pool = Pool::create(shape, true).expect("a pool");
    let block = pool.allocate(of_request(1)).expect("a block");
    pool.write(block, b"huge").expect("in use");
    let view = view(&pool);
    let mut copy = Vec::new();
    view.check(&descriptor(block, 1, 4), Instance::GATEWAY)
        .expect("in use")
        .read(&mut copy);
    assert_eq!(copy, b"huge");
    if pool.is_huge() {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("it is there");
        let huge = smaps
            .lines()
            .filter(|line| line.starts_with("ShmemPmdMapped:") && !line.ends_with(" 0 kB"));
        assert!(huge.count() > 0, "the kernel says so too");
    }
}
