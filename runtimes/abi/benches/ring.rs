//! Round trips through one ring in one thread: write with checksum, read with check of the copy, as the host reads.
//!
//! Prints a JSON object a line for each payload size. `--quick` takes few samples, to see that it works.
//! A sample is a batch of round trips where one takes less than a microsecond, so that reading the clock does
//! not count; its value is the batch's mean.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use hearth_abi::layout::DEFAULT_RING_BYTES;
use hearth_abi::{Bell, Endpoint, Flags, Kind, Region};

/// Payload sizes, in bytes.
const SIZES: [usize; 5] = [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Samples taken of each size, and the share at the beginning that is not counted.
const SAMPLES: usize = 20_000;
const QUICK_SAMPLES: usize = 200;
const WARM_UP_SHARE: usize = 10;

/// Round trips in a sample, up to the size from which one takes a microsecond.
const BATCH: usize = 64;
const BATCH_UP_TO_BYTES: usize = 4 << 10;

const ID: [u8; 16] = [7; 16];

fn main() -> Result<(), Box<dyn Error>> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let samples = if quick { QUICK_SAMPLES } else { SAMPLES };
    for size in SIZES {
        let batch = if size <= BATCH_UP_TO_BYTES { BATCH } else { 1 };
        let name = format!("ring round trip, {size} B");
        report("ring", &name, &measure(size, batch, samples)?, batch, size);
    }
    if !quick {
        let (name, bell) = ("eventfd ring and drain", Bell::new()?);
        report(
            "bell",
            name,
            &measure_bell(&bell, &bell, samples)?,
            BATCH,
            8,
        );
        let (name, (ring, sleep)) = ("pipe ring and drain", Bell::pair()?);
        report(
            "bell",
            name,
            &measure_bell(&ring, &sleep, samples)?,
            BATCH,
            8,
        );
    }
    Ok(())
}

/// Nanoseconds of a round trip of `size` bytes, a value for each sample.
fn measure(size: usize, batch: usize, samples: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let (region, fd) = Region::create(DEFAULT_RING_BYTES)?;
    let mut worker = Region::attach(std::os::fd::AsFd::as_fd(&fd))?.worker();
    let mut host = region.host();
    let payload: Vec<u8> = (0..size).map(|index| index as u8).collect();
    let mut copy = Vec::with_capacity(size);
    let mut nanoseconds = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = Instant::now();
        for _ in 0..batch {
            round_trip(&mut worker, &mut host, &payload, &mut copy)?;
        }
        nanoseconds.push(start.elapsed().as_nanos() as f64 / batch as f64);
    }
    if copy != payload {
        return Err("the payload came back changed".into());
    }
    Ok(nanoseconds)
}

/// One frame from the worker to the host, with everything a busy pair of peers does for it.
fn round_trip(
    worker: &mut Endpoint,
    host: &mut Endpoint,
    payload: &[u8],
    copy: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    copy.clear();
    if !worker
        .tx
        .try_send(Kind::ResponseResult, Flags::NONE, &ID, black_box(payload))?
    {
        return Err("an empty ring is full".into());
    }
    black_box(worker.tx.bell_needed());
    let Some(mut frame) = host.rx.try_recv()? else {
        return Err("the frame is missing".into());
    };
    frame.copy_to(copy)?;
    frame.consume();
    black_box(host.rx.bell_needed());
    black_box(copy.as_slice());
    Ok(())
}

/// Nanoseconds of ringing a bell and taking the ring, a value for each sample.
fn measure_bell(ring: &Bell, sleep: &Bell, samples: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut nanoseconds = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = Instant::now();
        for _ in 0..BATCH {
            ring.ring()?;
            black_box(sleep.drain()?);
        }
        nanoseconds.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    Ok(nanoseconds)
}

/// Prints the figures of `samples` but for the warm-up, as one line of JSON.
fn report(category: &str, name: &str, samples: &[f64], batch: usize, bytes: usize) {
    let mut counted = samples[samples.len() / WARM_UP_SHARE..].to_vec();
    counted.sort_by(f64::total_cmp);
    let count = counted.len() as f64;
    let mean = counted.iter().sum::<f64>() / count;
    let variance = counted
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / count;
    // Nearest rank.
    let percentile =
        |share: f64| counted[((share * count).ceil() as usize).clamp(1, counted.len()) - 1];
    println!(
        "{{\"name\":\"{name}\",\"category\":\"{category}\",\"iterations\":{},\"metrics\":{{\"min_ns\":{:.1},\"max_ns\":{:.1},\
         \"mean_ns\":{mean:.1},\"median_ns\":{:.1},\"p95_ns\":{:.1},\"p99_ns\":{:.1},\"std_dev_ns\":{:.1}}},\
         \"throughput_bytes_per_s\":{:.0}}}",
        counted.len() * batch,
        percentile(0.0),
        percentile(1.0),
        percentile(0.5),
        percentile(0.95),
        percentile(0.99),
        variance.sqrt(),
        bytes as f64 * 1e9 / mean,
    );
}
