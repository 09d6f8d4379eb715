//! Instances with boards and edges between them, as the server sets them up.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod switch;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hearth_chain::board::Shape;
use hearth_chain::{Board, Descriptor, Edges, Instance, Kind, PeerBoard, Table};

/// Slots of an output in these tests: few, so that every wrap is near.
pub const SLOTS: u32 = 4;
/// Edges each way.
pub const EDGES: u16 = 4;

/// The shape of all boards of these tests.
pub fn shape() -> Shape {
    Shape::new(EDGES, EDGES, SLOTS).expect("a shape")
}

/// An instance: the server's handle of its board, and its own edges.
pub struct Party {
    pub id: Instance,
    pub server: Board,
    pub own: Board,
    pub edges: Edges,
}

impl Party {
    pub fn new(id: u16) -> Self {
        let server = Board::create(shape()).expect("a board");
        let fd = server.for_owner().expect("a descriptor");
        let own = Board::attach(fd, shape()).expect("the board");
        Self {
            id: Instance(id),
            edges: Edges::new(Instance(id), &own),
            server,
            own,
        }
    }

    /// This instance's board, as a peer has it.
    pub fn seen(&self) -> PeerBoard {
        PeerBoard::attach(self.for_peer(), shape()).expect("the board")
    }

    pub fn for_peer(&self) -> OwnedFd {
        self.server.for_peer().expect("a descriptor")
    }
}

/// An edge from one output to one input.
pub fn connect(from: &mut Party, output: u16, to: &mut Party, input: u16) {
    open_input(to, input, from, output);
    open_output(from, output, to, input);
}

pub fn open_input(to: &mut Party, input: u16, from: &Party, output: u16) {
    let inbox = &mut to.edges.inbox;
    inbox
        .open(&to.own, input, from.id, &from.seen(), output)
        .expect("a free input");
}

pub fn open_output(from: &mut Party, output: u16, to: &Party, input: u16) {
    let outbox = &mut from.edges.outbox;
    outbox
        .open(&from.own, output, to.id, &to.seen(), input, None)
        .expect("a free output");
}

/// A descriptor to `target` that says `number`.
pub fn descriptor(target: Instance, number: u32) -> Descriptor {
    Descriptor {
        request: number,
        generation: number as u16,
        target,
        block: number % 8,
        len: number % 100,
        route: 1,
        hop: number as u8,
        table: Table::B,
        kind: Kind::Pass,
        more: number % 2 == 1,
    }
}

/// A deadline that only a failing test reaches.
pub fn far() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A deadline for a wait in vain.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

/// Runs `work` in a child process; its exit status, or the signal that ended it as a negative number.
pub fn in_child(work: impl FnOnce()) -> i32 {
    wait(fork(work))
}

/// Starts a child process that ends when `work` has.
pub fn fork(work: impl FnOnce()) -> i32 {
    // SAFETY: the child runs `work` alone and leaves by `_exit`; glibc's allocator works after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends this process without running what belongs to the parent.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
    }
    pid
}

/// Waits for a child to end.
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: writes the status to a local.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid, "waitpid");
    if libc::WIFSIGNALED(status) {
        -libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

/// Gives up root, as a sandbox's process has.
pub fn become_nobody() {
    const NOBODY: libc::uid_t = 65_534;
    // SAFETY: changes this process's ids only.
    let changed = unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) };
    assert_eq!(changed, 0, "the tests run as root");
}
