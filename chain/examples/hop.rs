//! One hop of a chain: a descriptor from one process to another, beside the least C program that does the same. As root.
//!
//! `cargo run --release -p hearth-chain --example hop [-- SAMPLES]`
//!
//! A hop is half of a round trip between two processes. All ways are measured in turns, each turn with processes of its own, because a
//! machine's speed drifts. Asleep, each side sleeps before each descriptor; spinning, neither does. Each side has a CPU of its own:
//! where both share one, waking is several times as fast, and who does is up to the scheduler.
//!
//! One file: it is one measurement.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::switch::Switch;
use hearth_chain::board::Shape;
use hearth_chain::shape::MIN_BLOCK_BYTES;
use hearth_chain::{
    Board, Descriptor, Edges, Instance, Kind, Owner, PeerBoard, Poll, Pool, PoolView, RecvError,
    Ring, Table, Transport,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Samples of one way before the next has its turn.
const TURN: usize = 2_000;
/// Round trips in a sample while both sides spin: one is about as short as reading the clock.
const SPIN_BATCH: usize = 64;
/// Samples of a turn that do not count: the processes are starting.
const WARM_UP: usize = 100;
/// No turn takes so long.
const DEADLINE: Duration = Duration::from_secs(30);
/// The server's default spin time.
const BUSY_POLL: Duration = Duration::from_micros(200);

const C: &str = include_str!("hop.c");

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A way to pass 16 bytes on.
struct Way {
    name: &'static str,
    batch: usize,
    carrier: Carrier,
    /// In ns, one for each hop.
    samples: Vec<f64>,
    /// The name of the way that is its floor.
    floor: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Carrier {
    /// The C program, with what it is asked to do.
    Floor(&'static str),
    /// `ring`, with its spin time.
    Ring(Duration),
    Poll,
    /// `ring` asleep, each side also checking the block and its payload.
    RingWithPool,
    SkMsg,
}

fn main() -> Outcome<()> {
    let samples = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 20_000,
    };
    let dir = tempfile::Builder::new().prefix("hearth-hop-").tempdir()?;
    let floor = compile(dir.path())?;
    let way = |name, batch, carrier, floor| Way {
        name,
        batch,
        carrier,
        samples: Vec::new(),
        floor,
    };
    let (asleep, spinning, redirected) = ("C, futexes", "C, spinning", "C, redirected");
    let mut ways = [
        way(asleep, 1, Carrier::Floor("sleep"), None),
        way(
            "ring, asleep",
            1,
            Carrier::Ring(Duration::ZERO),
            Some(asleep),
        ),
        way(
            "ring, asleep, with pool checks",
            1,
            Carrier::RingWithPool,
            Some(asleep),
        ),
        way(spinning, SPIN_BATCH, Carrier::Floor("spin"), None),
        way("poll", SPIN_BATCH, Carrier::Poll, Some(spinning)),
        way(
            "ring, spinning",
            SPIN_BATCH,
            Carrier::Ring(BUSY_POLL),
            Some(spinning),
        ),
        way(redirected, 1, Carrier::Floor("redirect"), None),
        way("sk_msg", 1, Carrier::SkMsg, Some(redirected)),
    ];
    while ways.iter().any(|way| way.samples.len() < samples) {
        for way in &mut ways {
            turn(way, &floor)?;
        }
    }
    report(&mut ways)
}

fn compile(dir: &Path) -> Outcome<PathBuf> {
    let (source, program) = (dir.join("hop.c"), dir.join("hop"));
    std::fs::write(&source, C)?;
    let mut command = Command::new("cc");
    command.args(["-O2", "-o"]).args([&program, &source]);
    if !command.status()?.success() {
        return Err("the C compiler failed".into());
    }
    Ok(program)
}

fn turn(way: &mut Way, floor: &Path) -> Outcome<()> {
    let samples = TURN / if way.batch > 1 { 10 } else { 1 };
    let found = match way.carrier {
        Carrier::Floor(what) => {
            let (samples, batch) = (samples + WARM_UP, way.batch);
            let mut command = Command::new(floor);
            command.args([what, &samples.to_string(), &batch.to_string()]);
            let output = command.output()?;
            let text = String::from_utf8(output.stdout)?;
            text.lines()
                .map(str::parse)
                .collect::<Result<Vec<u64>, _>>()?
        }
        Carrier::Ring(busy_poll) => {
            let ring = |edges| Ring::new(edges, busy_poll);
            round_trips(ring, None, samples, way.batch)?
        }
        Carrier::SkMsg => by_sk_msg(samples)?,
        Carrier::Poll => round_trips(|edges| Poll { edges }, None, samples, way.batch)?,
        Carrier::RingWithPool => {
            let shape = hearth_chain::shape::Shape::new(16, MIN_BLOCK_BYTES)?;
            let pool = Pool::create(shape, false)?;
            let ring = |edges| Ring::new(edges, Duration::ZERO);
            round_trips(ring, Some(&pool), samples, way.batch)?
        }
    };
    let hops = 2.0 * way.batch as f64;
    let counted = found.into_iter().skip(WARM_UP);
    way.samples.extend(counted.map(|nanos| nanos as f64 / hops));
    Ok(())
}

/// The same by sockets that the kernel's program sees to. Both sides sleep before each descriptor.
fn by_sk_msg(samples: usize) -> Outcome<Vec<u64>> {
    let switch = Switch::new().ok_or("sk_msg needs root, and a kernel with it")?;
    let (mut here, mut there) = (switch.seat(1), switch.seat(2));
    switch.allow(1, 2);
    switch.allow(2, 1);
    switch.connect(&mut here, 0, &mut there, 0);
    switch.connect(&mut there, 0, &mut here, 0);
    let sent = first(None)?;
    // From then on it is in the hand of who has received it.
    switch.give(sent.block, here.id);
    let end = || switch.unseat(here.id);
    measure((here.way, there.way), None, (sent, samples, 1), end)
}

/// The nanoseconds of each sample of `batch` round trips between this process and a child of its own.
fn round_trips<T: Transport>(
    make: impl Fn(Edges) -> T,
    pool: Option<&Pool>,
    samples: usize,
    batch: usize,
) -> Outcome<Vec<u64>> {
    let shape = Shape::new(1, 1, 64)?;
    let (here, there) = (Board::create(shape)?, Board::create(shape)?);
    let view = pool
        .map(|pool| PoolView::attach(pool.files()?))
        .transpose()?;
    let edges = |own: &Board, id, peer: &Board, to| -> Outcome<Edges> {
        let peer = PeerBoard::attach(peer.for_peer()?, shape)?;
        let mut edges = Edges::new(Instance(id), own);
        edges.inbox.open(own, 0, Instance(to), &peer, 0)?;
        edges.outbox.open(own, 0, Instance(to), &peer, 0, None)?;
        Ok(edges)
    };
    let ours = make(edges(&here, 1, &there, 2)?);
    let theirs = make(edges(&there, 2, &here, 1)?);
    let begin = (first(pool)?, samples, batch);
    measure((ours, theirs), view.as_ref(), begin, || here.end())
}

/// Measures between this process and a child: `end` tells the child that this side has ended.
fn measure<T: Transport>(
    (mut ours, mut theirs): (T, T),
    view: Option<&PoolView>,
    (mut sent, samples, batch): (Descriptor, usize, usize),
    end: impl FnOnce(),
) -> Outcome<Vec<u64>> {
    let deadline = Instant::now() + DEADLINE;
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let (first, last) = (cpus.next().unwrap_or(0), cpus.next_back());
    keep_to(first)?;
    // SAFETY: this process has one thread, and the child leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let kept = keep_to(last.unwrap_or(first));
        let ended = kept.and_then(|()| echo(&mut theirs, view, deadline));
        // SAFETY: ends the child without running what belongs to its parent.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    if child < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let mut found = Vec::with_capacity(samples + WARM_UP);
    let mut measure = || -> Outcome<()> {
        for _ in 0..samples + WARM_UP {
            let begun = Instant::now();
            for _ in 0..batch {
                ours.send(&sent)?;
                let arrival = ours.recv(deadline)?;
                if let Some(view) = view {
                    view.check(&arrival.descriptor, arrival.from)?;
                }
                sent.hop = arrival.descriptor.hop;
            }
            found.push(u64::try_from(begun.elapsed().as_nanos())?);
        }
        Ok(())
    };
    let measured = measure();
    end();
    sched_setaffinity(None, &allowed)?;
    let mut status = 0;
    // SAFETY: writes the status to a local. The child ends with its peer, or at the deadline.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    measured?;
    if status != 0 {
        return Err(format!("the other process failed: {status}").into());
    }
    Ok(found)
}

/// Keeps this process to a CPU.
fn keep_to(cpu: usize) -> Outcome<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

/// Sends back what comes, until the peer has ended.
fn echo(transport: &mut impl Transport, view: Option<&PoolView>, deadline: Instant) -> Outcome<()> {
    loop {
        match transport.recv(deadline) {
            Ok(arrival) => {
                if let Some(view) = view {
                    view.check(&arrival.descriptor, arrival.from)?;
                }
                let descriptor = arrival.descriptor;
                transport.send(&Descriptor {
                    target: arrival.from,
                    hop: descriptor.hop.wrapping_add(1),
                    ..descriptor
                })?;
            }
            Err(RecvError::Gone(_)) => return Ok(()),
            Err(other) => return Err(other.into()),
        }
    }
}

fn first(pool: Option<&Pool>) -> Outcome<Descriptor> {
    let block = pool
        .map(|pool| pool.allocate(Owner::Request { id: 1, route: 0 }))
        .transpose()?;
    Ok(Descriptor {
        request: 1,
        generation: block.map_or(0, |block| block.generation),
        target: Instance(2),
        block: block.map_or(0, |block| block.index),
        len: 1024,
        route: 0,
        hop: 0,
        table: Table::A,
        kind: Kind::Pass,
        more: false,
    })
}

fn report(ways: &mut [Way]) -> Outcome<()> {
    for way in &mut *ways {
        way.samples.sort_by(f64::total_cmp);
    }
    let percentile = |way: &Way, share: f64| {
        let last = way.samples.len() - 1;
        way.samples[(last as f64 * share).round() as usize] / 1_000.0
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "| one hop, µs | p50 | p99 | p50 / C's |")?;
    writeln!(out, "| --- | ---: | ---: | ---: |")?;
    for way in &*ways {
        let (p50, p99) = (percentile(way, 0.5), percentile(way, 0.99));
        let floor = ways.iter().find(|other| Some(other.name) == way.floor);
        let ratio = floor.map_or(String::new(), |floor| {
            format!("{:.2}", p50 / percentile(floor, 0.5))
        });
        writeln!(out, "| {} | {p50:.3} | {p99:.3} | {ratio} |", way.name)?;
    }
    Ok(())
}
