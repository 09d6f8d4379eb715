//! Two processes: what the kernel lets a member do to the memory of others, and what happens when one dies half-way.
#![cfg(not(loom))]

mod common;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use common::{Party, become_nobody, connect, descriptor, far, fork, in_child, shape, wait};
use hearth_chain::routes::{Plan, RouteTable, RouteView};
use hearth_chain::shape::{MIN_BLOCK_BYTES, Shape};
use hearth_chain::{
    Board, Descriptor, Instance, Kind, Member, Note, Owner, Pool, PoolView, RecvError, Refused,
    Ring, SendError, Table, Transport,
};
use memmap2::MmapOptions;
use rustix::fs::{
    FallocateFlags, Mode, OFlags, SealFlags, fallocate, fchmod, fcntl_add_seals, ftruncate, open,
};
use rustix::io::pwrite;
use rustix::time::{ClockId, clock_gettime};

/// A request on the route of these tests.
fn of_request(id: u32) -> Owner {
    Owner::Request { id, route: 0 }
}

fn pool(blocks: u32) -> Pool {
    Pool::create(Shape::new(blocks, MIN_BLOCK_BYTES).expect("a shape"), false).expect("a pool")
}

/// Everything that turns a descriptor into a way to write to the file.
fn ways_to_write(fd: &OwnedFd) -> Vec<&'static str> {
    let mut ways = Vec::new();
    let raw = fd.as_fd().as_raw_fd();
    if MmapOptions::new().map_raw(raw).is_ok() {
        ways.push("map it writable");
    }
    if pwrite(fd, &[1], 0).is_ok() {
        ways.push("write");
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if fallocate(fd, hole, 0, 4096).is_ok() {
        ways.push("punch a hole");
    }
    if ftruncate(fd, 0).is_ok() || ftruncate(fd, 1 << 30).is_ok() {
        ways.push("change its size");
    }
    if fcntl_add_seals(fd, SealFlags::FUTURE_WRITE).is_ok() {
        ways.push("seal it");
    }
    if fchmod(fd, Mode::RWXU | Mode::RWXO).is_ok() {
        ways.push("change its mode");
    }
    let path = format!("/proc/self/fd/{raw}");
    if let Ok(again) = open(path, OFlags::RDWR, Mode::empty())
        && MmapOptions::new().map_raw(again.as_raw_fd()).is_ok()
    {
        ways.push("open it anew and map it writable");
    }
    ways
}

#[test]
fn a_member_cannot_write_to_what_is_not_its_own() {
    let pool = pool(4);
    let table = RouteTable::create().expect("a table");
    let peer = Party::new(1);
    let files = pool.files().expect("descriptors");
    let status = in_child(|| {
        let (board, routes) = (peer.for_peer(), table.for_members().expect("a descriptor"));
        become_nobody();
        for (what, fd) in [
            ("ledger", &files.ledger),
            ("routes", &routes),
            ("a peer's board", &board),
        ] {
            assert!(MmapOptions::new().map_raw_read_only(fd.as_raw_fd()).is_ok());
            assert_eq!(ways_to_write(fd), Vec::<&str>::new(), "{what}");
        }
        // The blocks are everybody's to write, and nobody's to resize or to seal.
        let ways = ways_to_write(&files.blocks);
        assert_eq!(ways, ["map it writable", "write", "punch a hole"]);
    });
    assert_eq!(status, 0);
}

#[test]
fn a_store_to_a_peers_board_ends_the_process_that_does_it() {
    let peer = Party::new(1);
    let fd = peer.for_peer();
    let status = in_child(|| {
        become_nobody();
        let map = MmapOptions::new().map_raw_read_only(fd.as_raw_fd());
        let map = map.expect("a mapping");
        // SAFETY: it faults, which is the test; nothing else in this child depends on it.
        unsafe { map.as_mut_ptr().write_volatile(1) };
    });
    assert_eq!(status, -libc::SIGSEGV);
}

/// A peer's board that was not sealed, or is of another size, is no board.
#[test]
fn what_is_not_sealed_or_of_another_shape_is_refused() {
    let party = Party::new(1);
    let other = hearth_chain::board::Shape::new(4, 4, 1024).expect("a shape");
    assert!(Board::attach(party.server.for_owner().expect("a descriptor"), other).is_err());
    let open = rustix::fs::memfd_create("board", rustix::fs::MemfdFlags::ALLOW_SEALING);
    let open = open.expect("a file");
    ftruncate(&open, 4096).expect("a size");
    assert!(hearth_chain::PeerBoard::attach(open.try_clone().expect("one"), shape()).is_err());
    assert!(RouteView::attach(open.try_clone().expect("one")).is_err());
    let files = hearth_chain::PoolFiles {
        blocks: open.try_clone().expect("one"),
        ledger: open,
    };
    assert!(PoolView::attach(files).is_err());
    // The blocks in the ledger's place: sealed, but others could write to it.
    let files = pool(4).files().expect("descriptors");
    let swapped = hearth_chain::PoolFiles {
        blocks: files.ledger,
        ledger: files.blocks,
    };
    assert!(PoolView::attach(swapped).is_err());
}

#[test]
fn holes_in_the_pool_crash_nobody() {
    let pool = pool(4);
    let block = pool.allocate(of_request(1)).expect("a block");
    pool.write(block, b"payload").expect("in use");
    let files = pool.files().expect("descriptors");
    let status = in_child(|| {
        become_nobody();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let bytes = rustix::fs::fstat(&files.blocks).expect("a size").st_size;
        fallocate(&files.blocks, hole, 0, bytes as u64).expect("its own chain's");
    });
    assert_eq!(status, 0);
    let mut copy = Vec::new();
    pool.read(block, 7, &mut copy).expect("in use");
    assert_eq!(copy, [0; 7], "the request fails, the gateway does not");
    pool.free(block).expect("in use");
}

/// Of two blocks whose addresses somebody has kept, there is memory for one copy: no address leads nowhere.
#[test]
fn what_was_kept_stays_mapped_when_there_is_no_memory_for_copies() {
    const BLOCK_BYTES: u32 = 1 << 20;
    let shape = Shape::new(4, BLOCK_BYTES).expect("a shape");
    let pool = Pool::create(shape, false).expect("a pool");
    let blocks = [(); 4].map(|()| pool.allocate(of_request(1)).expect("a block"));
    for block in blocks {
        pool.write(block, b"kept").expect("in use");
    }
    let files = pool.files().expect("descriptors");
    let status = in_child(|| {
        let mut view = PoolView::attach(files).expect("the pool");
        let kept = [0, 2].map(|block| view.address(block));
        let limit = data_bytes() + u64::from(BLOCK_BYTES) * 3 / 2;
        let limit = libc::rlimit {
            rlim_cur: limit,
            rlim_max: limit,
        };
        // SAFETY: limits this process's own memory.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
        view.leave_copies(&mut vec![0, 2])
            .expect_err("memory for one copy");
        for at in kept {
            // SAFETY: it is mapped, which is the test; nobody writes there.
            assert_eq!(&unsafe { at.cast::<[u8; 4]>().read_volatile() }, b"kept");
        }
    });
    assert_eq!(status, 0);
}

/// What this process has of the memory that `RLIMIT_DATA` limits.
fn data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("VmData").parse::<u64>().expect("a number") << 10
}

fn pass(pool: &Pool, request: u32, to: Instance) -> Descriptor {
    let block = pool.allocate(of_request(request)).expect("a block");
    pool.note(
        block,
        Note {
            holder: to,
            epoch: 1,
            hop: 0,
        },
    );
    Descriptor {
        request,
        generation: block.generation,
        target: to,
        block: block.index,
        len: 4,
        route: 0,
        hop: 0,
        table: Table::A,
        kind: Kind::Pass,
        more: false,
    }
}

/// A member that takes four requests, answers one, holds one, leaves two on its ring, and is killed: the gateway has the
/// answer, then the end; it finds the requests that were in the dead one's hands; and all blocks come back.
#[test]
fn a_member_that_is_killed_loses_its_requests_and_nothing_else() {
    let pool = pool(8);
    let (mut gateway, mut member) = (Party::new(0), Party::new(1));
    connect(&mut gateway, 0, &mut member, 0);
    connect(&mut member, 0, &mut gateway, 0);
    let granted = Owner::Instance {
        instance: member.id,
        epoch: 1,
    };
    pool.allocate(granted).expect("a block");
    let bystander = pool.allocate(of_request(99)).expect("a block");
    let mut gateway_ring = Ring::new(gateway.edges, Duration::ZERO);
    let mut member_ring = Ring::new(member.edges, Duration::ZERO);
    let view = PoolView::attach(pool.files().expect("descriptors")).expect("the pool");
    let pid = fork(|| {
        let mut taken = || member_ring.recv(far()).expect("a request").descriptor;
        let (mut answer, _held) = (taken(), taken());
        let mut payload = view.check(&answer, Instance::GATEWAY).expect("in use");
        answer.len = payload.write(b"done").expect("it fits");
        answer.target = Instance::GATEWAY;
        let note = Note {
            holder: Instance::GATEWAY,
            epoch: 0,
            hop: 1,
        };
        view.note(answer.block, note);
        member_ring.send(&answer).expect("room");
        // SAFETY: ends this process, as a crash does.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    });
    for request in 1..=4 {
        gateway_ring
            .send(&pass(&pool, request, member.id))
            .expect("room");
    }
    assert_eq!(wait(pid), -libc::SIGKILL);
    member.server.end();

    let arrival = gateway_ring.recv(far()).expect("the answer");
    let block = pool
        .check(&arrival.descriptor, arrival.from)
        .expect("its own");
    let mut answer = Vec::new();
    pool.read(block, arrival.descriptor.len, &mut answer)
        .expect("in use");
    assert_eq!(
        (answer.as_slice(), arrival.descriptor.request),
        (&b"done"[..], 1)
    );
    pool.free(block).expect("in use");
    let gone = gateway_ring.recv(far()).expect_err("the end");
    assert!(matches!(gone, RecvError::Gone(Instance(1))), "{gone}");
    let refused = gateway_ring
        .send(&pass(&pool, 5, member.id))
        .expect_err("nobody");
    assert!(matches!(refused, SendError::Gone(_)), "{refused}");
    pool.reclaim(of_request(5));

    let mut failed = pool.held_by(member.id, 1);
    failed.sort_by_key(|owner| owner.pack());
    assert_eq!(failed, [2, 3, 4].map(of_request));
    let back: u32 = failed.into_iter().map(|owner| pool.reclaim(owner)).sum();
    assert_eq!(back, 3);
    assert_eq!(pool.reclaim(granted), 1);
    assert_eq!(pool.in_use(), 1, "the bystander's");
    pool.free(bystander).expect("in use");
}

/// A member that keeps a block after it has answered, writes to it, and answers again: the gateway has its own copy, and refuses the
/// second descriptor.
#[test]
fn what_was_answered_once_is_not_answered_again() {
    let pool = pool(2);
    let (mut gateway, mut member) = (Party::new(0), Party::new(1));
    connect(&mut gateway, 0, &mut member, 0);
    connect(&mut member, 0, &mut gateway, 0);
    let view = PoolView::attach(pool.files().expect("descriptors")).expect("the pool");
    let mut member_ring = Ring::new(member.edges, Duration::ZERO);
    let mut ring = Ring::new(gateway.edges, Duration::ZERO);
    ring.send(&pass(&pool, 1, member.id)).expect("room");
    let child = fork(|| {
        let request = member_ring.recv(far()).expect("a request").descriptor;
        let answer = Descriptor {
            target: Instance::GATEWAY,
            ..request
        };
        let mut payload = view.check(&request, Instance::GATEWAY).expect("in use");
        payload.write(b"good").expect("it fits");
        for _ in 0..2 {
            member_ring.send(&answer).expect("room");
        }
        let forged = [
            Descriptor { block: 2, ..answer },
            Descriptor {
                len: MIN_BLOCK_BYTES + 1,
                ..answer
            },
            Descriptor {
                request: 2,
                ..answer
            },
        ];
        for (index, forged) in forged.iter().enumerate() {
            let until = far();
            while member_ring.send(forged).is_err() {
                assert!(index > 0, "there is room for three");
                assert!(Instant::now() < until, "nobody reads");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        payload.write(b"evil").expect("it fits");
        // The kernel's clean-up takes the mapping; the server is told by the process's end.
    });
    let arrival = ring.recv(far()).expect("the answer");
    let block = pool
        .check(&arrival.descriptor, arrival.from)
        .expect("its own");
    let second = ring.recv(far()).expect("the same again").descriptor;
    let mut forged = [(); 3].map(|()| ring.recv(far()).expect("forged"));
    forged.sort_by_key(|arrival| arrival.descriptor.block);
    assert_eq!(wait(child), 0);
    let refusals = forged.map(|arrival| {
        pool.check(&arrival.descriptor, arrival.from)
            .expect_err("forged")
    });
    let kind =
        |wanted: fn(&Refused) -> bool| refusals.iter().filter(|refused| wanted(refused)).count();
    assert_eq!(
        kind(|refused| matches!(
            refused,
            Refused::OutsidePool {
                block: 2,
                blocks: 2
            }
        )),
        1
    );
    assert_eq!(
        kind(|refused| matches!(refused, Refused::TooLong { .. })),
        1
    );
    assert_eq!(
        kind(|refused| matches!(refused, Refused::ForeignBlock { .. })),
        1
    );
    pool.free(block).expect("in use");
    let stale = pool.check(&second, arrival.from).expect_err("answered");
    assert!(matches!(stale, Refused::Stale { .. }), "{stale}");
    // And what it wrote meanwhile is not in the next request's block.
    let next = pool.allocate(of_request(2)).expect("a block");
    let mut bytes = Vec::new();
    pool.read(next, MIN_BLOCK_BYTES, &mut bytes)
        .expect("in use");
    assert!(bytes.iter().all(|&byte| byte == 0));
}

/// Members of other users, as sandboxes have them: attach, route and pass on.
#[test]
fn members_of_other_users_pass_a_request_on() {
    let pool = pool(4);
    let table = RouteTable::create().expect("a table");
    let plan = Plan::new(2, &[vec![Member(1), Member(2)]], &[]).expect("a plan");
    table.publish(&plan).expect("nobody follows it");
    let [mut gateway, one, two] = [0, 1, 2].map(Party::new);
    let ids = [gateway.id, one.id, two.id];
    common::open_output(&mut gateway, 0, &one, 0);
    common::open_input(&mut gateway, 0, &two, 0);
    let mut children = Vec::new();
    // (own, reads from, writes to), each by the number of its only lane.
    for (own, before, after) in [(&one, &gateway, &two), (&two, &one, &gateway)] {
        let own_fd = own.server.for_owner().expect("a descriptor");
        let (before_fd, after_fd) = (before.for_peer(), after.for_peer());
        let files = pool.files().expect("descriptors");
        let routes = table.for_members().expect("a descriptor");
        children.push(fork(|| {
            become_nobody();
            let board = Board::attach(own_fd, shape()).expect("its board");
            let peer = |fd| hearth_chain::PeerBoard::attach(fd, shape()).expect("a board");
            let mut edges = hearth_chain::Edges::new(own.id, &board);
            let (from, to) = (peer(before_fd), peer(after_fd));
            edges
                .inbox
                .open(&board, 0, before.id, &from, 0)
                .expect("free");
            edges
                .outbox
                .open(&board, 0, after.id, &to, 0, None)
                .expect("free");
            let view = PoolView::attach(files).expect("the pool");
            let routes = RouteView::attach(routes).expect("the table");
            let mut ring = Ring::new(edges, Duration::from_micros(20));
            for _ in 0..100 {
                let arrival = ring.recv(far()).expect("a request");
                let mut next = arrival.descriptor;
                let mut payload = view.check(&next, arrival.from).expect("in use");
                let mut text = Vec::new();
                payload.read(&mut text);
                text.extend(own.id.0.to_string().bytes());
                next.len = payload.write(&text).expect("it fits");
                next.hop += 1;
                let member = routes.hop(next.table, next.route, next.hop);
                let to = member.expect("a hop").unwrap_or(Member::GATEWAY);
                next.target = ids[usize::from(to.0)];
                ring.send(&next).expect("room");
            }
        }));
    }
    let mut ring = Ring::new(gateway.edges, Duration::from_micros(20));
    for request in 0..100 {
        let pin = table.pin();
        let mut first = pass(&pool, request, one.id);
        first.table = pin.table();
        let block = hearth_chain::Block::of(&first);
        pool.write(block, b"0").expect("in use");
        first.len = 1;
        ring.send(&first).expect("room");
        let last = ring.recv(far()).expect("an answer");
        let block = pool.check(&last.descriptor, last.from).expect("its own");
        let mut text = Vec::new();
        pool.read(block, last.descriptor.len, &mut text)
            .expect("in use");
        assert_eq!(
            (text.as_slice(), last.from, last.descriptor.hop),
            (&b"012"[..], two.id, 2)
        );
        pool.free(block).expect("in use");
    }
    for child in children {
        assert_eq!(wait(child), 0);
    }
    assert_eq!(pool.in_use(), 0);
}

/// Asleep: a wait takes no processor's time to speak of.
#[test]
fn an_idle_receiver_sleeps() {
    let (mut one, mut two) = (Party::new(1), Party::new(2));
    connect(&mut one, 0, &mut two, 0);
    let mut ring = Ring::new(two.edges, Duration::from_micros(200));
    let spent = || {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
    };
    let (before, begun) = (spent(), Instant::now());
    for _ in 0..5 {
        let deadline = Instant::now() + Duration::from_millis(60);
        assert!(matches!(ring.recv(deadline), Err(RecvError::TimedOut)));
    }
    let (spent, passed) = (spent() - before, begun.elapsed());
    assert!(spent * 10 < passed, "{spent:?} of {passed:?}");
    one.edges.outbox.send(&descriptor(two.id, 1)).expect("room");
    ring.recv(far()).expect("it still works");
}
