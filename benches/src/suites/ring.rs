//! The ring alone, in one thread: write with checksum, then read and verify a copy, as the server does. The lower bound
//! is copying the payload in and out.

use std::hint::black_box;
use std::time::Instant;

use anyhow::ensure;
use hearth_abi::frame::FrameHeader;
use hearth_abi::layout::DEFAULT_RING_BYTES;
use hearth_abi::{Bell, Endpoint, Flags, Kind, Region};

use crate::peers::ring::{receive, send};
use crate::results::{Document, Samples};
use crate::scale::Scale;

/// Payload sizes in bytes, and how they are called.
const SIZES: [(usize, &str); 5] = [
    (64, "64 B"),
    (1 << 10, "1 KB"),
    (4 << 10, "4 KB"),
    (16 << 10, "16 KB"),
    (64 << 10, "64 KB"),
];
/// Repetitions in a sample, so that reading the clock (some 20 ns) does not count.
const BATCH: usize = 64;
/// Samples of one thing before the next has its turn.
const TURN: usize = 100;

/// The category of the round trips.
pub const ROUND_TRIP: &str = "round trip in one thread, by payload (means of 64)";
/// The category of the floor.
pub const COPIES: &str = "floor: the payload copied in and out, no ring (means of 64)";
/// The category of the yardstick, which tells how fast this machine was just then. The goals were set where it takes
/// [`YARDSTICK_GOAL_NS`].
pub const YARDSTICK: &str =
    "yardstick: two crc32fast checksums of 1 KB, beside each row (means of 64)";
/// The yardstick where the ring's goals were set, in ns.
pub const YARDSTICK_GOAL_NS: f64 = 124.0;
/// The category of the checksums.
pub const SUMS: &str = "both checksums alone (means of 64)";
/// The category of the bells.
const BELLS: &str = "a bell: ring and take in one thread (means of 64)";
/// The figures of the checksums' share.
pub const SHARE: &str = "checksums' share of the round trip, at most";

/// Measures the ring in one thread, then beside other ways to talk.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    for (size, name) in SIZES {
        one_size(scale, size, name, document)?;
    }
    bells(scale.pick(10_000, 200), document)?;
    super::transports::run(scale, document)
}

/// Samples of the yardstick: a processor's speed has phases of seconds, so each row has its own, taken in turn with it.
pub fn yardstick(samples: usize, found: &mut Samples) {
    let payload = [7_u8; 1 << 10];
    for _ in 0..samples {
        let begun = Instant::now();
        for _ in 0..BATCH {
            black_box(crc32fast::hash(black_box(&payload)));
            black_box(crc32fast::hash(black_box(&payload)));
        }
        found.push(begun.elapsed());
    }
}

/// What waking costs the side that rings, with nobody asleep.
fn bells(samples: usize, document: &mut Document) -> anyhow::Result<()> {
    let eventfd = Bell::new()?;
    let (ring, sleep) = Bell::pair()?;
    let bells = [("eventfd", &eventfd, &eventfd), ("pipe", &ring, &sleep)];
    for (name, ring, sleep) in bells {
        let mut found = Samples::batches(BATCH);
        for _ in 0..samples {
            let begun = Instant::now();
            for _ in 0..BATCH {
                ring.ring()?;
                black_box(sleep.drain()?);
            }
            found.push(begun.elapsed());
        }
        document.add(BELLS, name, found);
    }
    Ok(())
}

fn one_size(scale: Scale, size: usize, name: &str, document: &mut Document) -> anyhow::Result<()> {
    let (region, fd) = Region::create(DEFAULT_RING_BYTES)?;
    let mut worker = Region::attach(std::os::fd::AsFd::as_fd(&fd))?.worker();
    let mut host = region.host();
    let payload: Vec<u8> = (0..size).map(|index| index as u8).collect();
    let (mut between, mut copy) = (vec![0; size], Vec::with_capacity(size));
    let header = FrameHeader::new(Kind::ResponseResult, Flags::NONE, &[7; 16], size as u32);

    let mut round_trips = Samples::batches(BATCH);
    let (mut copies, mut sums) = (Samples::batches(BATCH), Samples::batches(BATCH));
    let mut speed = Samples::batches(BATCH);
    // Large payloads take a hundred times as long as small ones.
    let samples = scale.pick(if size > 4 << 10 { 5_000 } else { 20_000 }, 200);
    while round_trips.len() < samples {
        for _ in 0..TURN {
            let begun = Instant::now();
            for _ in 0..BATCH {
                round_trip(&mut worker, &mut host, black_box(&payload), &mut copy)?;
            }
            round_trips.push(begun.elapsed());
        }
        ensure!(copy == payload, "the payload came back changed");
        for _ in 0..TURN {
            let begun = Instant::now();
            for _ in 0..BATCH {
                between.copy_from_slice(black_box(&payload));
                copy.copy_from_slice(black_box(&between));
                black_box(&copy);
            }
            copies.push(begun.elapsed());
        }
        for _ in 0..TURN {
            let begun = Instant::now();
            for _ in 0..BATCH {
                black_box(header.checksum(black_box(&payload)));
                black_box(header.checksum(black_box(&payload)));
            }
            sums.push(begun.elapsed());
        }
        yardstick(TURN, &mut speed);
    }
    let whole = document.add(ROUND_TRIP, name, round_trips);
    document.add(COPIES, name, copies);
    document.add(YARDSTICK, name, speed);
    let sums = document.add(SUMS, name, sums);
    document.figure(SHARE, name, 100.0 * sums / whole, "%");
    Ok(())
}

/// One frame from the worker to the host, with everything a busy pair of peers does for it.
fn round_trip(
    worker: &mut Endpoint,
    host: &mut Endpoint,
    payload: &[u8],
    copy: &mut Vec<u8>,
) -> anyhow::Result<()> {
    send(worker, Kind::ResponseResult, payload)?;
    receive(host, copy)?;
    black_box(copy.as_slice());
    Ok(())
}
