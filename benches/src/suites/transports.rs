//! A round trip of 1 KB over every common transport, interleaved: between two processes and, where it makes sense,
//! within one thread.

mod rpc;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::peers::ring::{Sleeping, Spinning};
use crate::peers::{PAYLOAD, Peer};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::suites::ring::{YARDSTICK, yardstick};

/// Round trips of one way before the next has its turn.
const TURN: usize = 250;
/// Round trips in a sample of the spinning ring, which are as short as reading the clock.
const SPIN_BATCH: usize = 64;
/// Rounds of the spinning rows.
const SPIN_TURNS: usize = 10;
/// Samples of the spinning ring that do not count, in each turn: several times around the ring.
const SPIN_WARM_UP: usize = 20;

/// The category of round trips between processes.
pub const TWO_PROCESSES: &str = "round trip of 1 KB, two processes";
/// The category of round trips within a thread.
pub const ONE_THREAD: &str = "round trip of 1 KB, one thread";
/// The ring whose sides look all the time.
pub const RING_SPINNING: &str = "ring, both spin (means of 64)";
/// What no exchange between two cores can be faster than.
pub const CACHE_LINE: &str = "floor: a cache line to the other core and back (means of 64)";

/// Makes `count` round trips and adds the time of each.
trait Way {
    fn turn(&mut self, count: usize, samples: &mut Samples) -> anyhow::Result<()>;
}

/// A way of a plain call.
struct Call<F>(F);

impl<F: FnMut() -> anyhow::Result<()>> Way for Call<F> {
    fn turn(&mut self, count: usize, samples: &mut Samples) -> anyhow::Result<()> {
        for _ in 0..count {
            let begun = Instant::now();
            self.0()?;
            samples.push(begun.elapsed());
        }
        Ok(())
    }
}

/// A way too short for a clock reading each.
struct Batch<F>(F);

impl<F: FnMut() -> anyhow::Result<()>> Way for Batch<F> {
    fn turn(&mut self, count: usize, samples: &mut Samples) -> anyhow::Result<()> {
        for _ in 0..count {
            let begun = Instant::now();
            for _ in 0..SPIN_BATCH {
                self.0()?;
            }
            samples.push(begun.elapsed());
        }
        Ok(())
    }
}

/// Measures all ways. The peers that spin come first and are gone before the others begin: they would take a core away.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let samples = scale.pick(10_000, 250);
    spinning(samples, document)?;

    let (_unix, path) = Peer::Unix.start()?;
    let (_tcp, tcp) = Peer::Tcp.start()?;
    let (_axum, axum) = Peer::AxumOneThread.start()?;
    let (_grpc, grpc) = Peer::Grpc.start()?;
    let payload = [7_u8; PAYLOAD];
    let mut ring = Sleeping::start()?;
    let mut copy = Vec::with_capacity(PAYLOAD);
    let two: Vec<(&str, Box<dyn Way>)> = vec![
        (
            "ring, both sleep on eventfds",
            Box::new(Call(move || ring.echo(&payload, &mut copy))),
        ),
        ("Unix socket", streams::unix(&path)?),
        ("TCP loopback", streams::tcp(&tcp)?),
        ("HTTP/JSON (axum, hyper)", rpc::http(Some(&axum))?),
        ("gRPC (tonic)", rpc::grpc(Some(&grpc))?),
    ];
    interleaved(TWO_PROCESSES, two, samples, document)?;

    let one: Vec<(&str, Box<dyn Way>)> = vec![
        ("Unix socket", streams::unix_pair()?),
        ("TCP loopback", streams::tcp_pair()?),
        ("HTTP/JSON (axum, hyper)", rpc::http(None)?),
        ("gRPC (tonic)", rpc::grpc(None)?),
    ];
    interleaved(ONE_THREAD, one, samples, document)
}

fn interleaved(
    category: &str,
    mut ways: Vec<(&'static str, Box<dyn Way>)>,
    samples: usize,
    document: &mut Document,
) -> anyhow::Result<()> {
    let mut found = vec![Samples::default(); ways.len()];
    while found.first().is_some_and(|found| found.len() < samples) {
        for ((_, way), found) in ways.iter_mut().zip(&mut found) {
            way.turn(TURN, found)?;
        }
    }
    for ((name, _), found) in ways.iter().zip(found) {
        document.add(category, name, found);
    }
    Ok(())
}

/// The ring whose sides spin, the floor below it and the yardstick, in turns: how fast two processors talk depends on where
/// in the machine the two are just then and where the memory lies, so each turn has a peer and a ring of its own.
fn spinning(samples: usize, document: &mut Document) -> anyhow::Result<()> {
    let mut lines = Samples::batches(SPIN_BATCH);
    let mut echoes = Samples::batches(SPIN_BATCH);
    let mut speed = Samples::batches(SPIN_BATCH);
    for _ in 0..SPIN_TURNS {
        cache_line(samples / SPIN_TURNS, &mut lines)?;
        spinning_ring(samples / SPIN_TURNS, &mut echoes)?;
        yardstick(samples / SPIN_TURNS, &mut speed);
    }
    document.add(TWO_PROCESSES, CACHE_LINE, lines);
    document.add(TWO_PROCESSES, RING_SPINNING, echoes);
    document.add(YARDSTICK, RING_SPINNING, speed);
    Ok(())
}

fn spinning_ring(samples: usize, found: &mut Samples) -> anyhow::Result<()> {
    let mut ring = Spinning::start()?;
    let payload = [7_u8; PAYLOAD];
    let mut copy = Vec::with_capacity(PAYLOAD);
    let mut echo = Batch(|| ring.echo(&payload, &mut copy));
    // The peer is still starting, and the ring's pages are new.
    echo.turn(SPIN_WARM_UP, &mut Samples::default())?;
    echo.turn(samples, found)
}

/// Two threads that hand a number to and fro.
fn cache_line(samples: usize, found: &mut Samples) -> anyhow::Result<()> {
    let ball = Arc::new(AtomicU64::new(0));
    let other = ball.clone();
    let player = std::thread::spawn(move || {
        let mut next = 1;
        loop {
            match other.load(Ordering::Acquire) {
                u64::MAX => return,
                seen if seen == next => {
                    other.store(next + 1, Ordering::Release);
                    next += 2;
                }
                _ => std::hint::spin_loop(),
            }
        }
    });
    let mut next = 1;
    Batch(|| {
        ball.store(next, Ordering::Release);
        while ball.load(Ordering::Acquire) != next + 1 {
            std::hint::spin_loop();
        }
        next += 2;
        Ok(())
    })
    .turn(samples, found)?;
    ball.store(u64::MAX, Ordering::Release);
    player
        .join()
        .map_err(|_| anyhow::anyhow!("the other thread panicked"))?;
    Ok(())
}
