//! What lies where in the region. These numbers are the protocol: a change to one is a new [`PROTOCOL_VERSION`].
//!
//! ```text
//! 0        RegionHeader      magic, version, sizes; written once by the host
//! 128      RingControl       of the ring host → worker
//! 640      RingControl       of the ring worker → host
//! 1152     StampWords        when the worker took the request and the handler began; read for one without an answer
//! 4096     bytes             of the ring host → worker
//! 4096+n   bytes             of the ring worker → host
//! ```

use crate::sync::{AtomicU32, AtomicU64};

/// Version of everything in this module and in [`crate::frame`]; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 7;

/// First word of a region: `HEARTHCH` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHCH");

/// Bytes before the rings: one page, so that the rings are page-aligned.
pub const HEADER_BYTES: usize = 4096;

/// Distance that keeps words of different writers out of each other's way: two cache lines, because
/// processors fetch lines in pairs.
pub const LINE_BYTES: usize = 128;

/// Frames begin at multiples of this: a cache line, so that header and payload are read and written in whole lines. It is
/// also what a header takes, so that one never meets the ring's end and filler always has room for one.
pub const FRAME_ALIGN: u64 = 64;

/// Bytes of a frame before its payload: the header, and unused bytes up to the next cache line.
pub const FRAME_HEADER_BYTES: usize = FRAME_ALIGN as usize;

/// What part of a ring its consumer may keep back although it is done with it (a capacity divided by this): a position that is
/// published, and a peer's announcement looked for, once for many frames.
pub const KEEP_BACK: u32 = 8;

/// Smallest ring, in bytes: one page, room for two frames of 1.5 KiB.
pub const MIN_RING_BYTES: u32 = 4 << 10;

/// Largest ring, in bytes: bounds what one instance can make the host map and keeps every length far from
/// the limits of `u32`.
pub const MAX_RING_BYTES: u32 = 64 << 20;

/// Ring capacity that the host uses by default, in bytes each way.
pub const DEFAULT_RING_BYTES: u32 = 256 << 10;

/// Offset of the control words of the ring host → worker.
pub const TO_WORKER_CONTROL: usize = LINE_BYTES;

/// Offset of the control words of the ring worker → host.
pub const TO_HOST_CONTROL: usize = TO_WORKER_CONTROL + size_of_control();

/// Offset of the worker's stamps.
pub const STAMPS: usize = TO_HOST_CONTROL + size_of_control();

const fn size_of_control() -> usize {
    4 * LINE_BYTES
}

/// The payload that one frame can carry in a ring of `ring_bytes`, in bytes. A frame that does not fit before the ring's
/// end needs less filler than its own length. So at twice this and the headers, a frame fits any ring of which the consumer
/// has read everything, even while it keeps back what it may: a producer never waits for that.
#[must_use]
pub const fn max_payload(ring_bytes: u32) -> u32 {
    (ring_bytes - ring_bytes / KEEP_BACK) / 2 - FRAME_HEADER_BYTES as u32
}

/// Bytes that a frame of `payload` bytes takes in the ring.
#[must_use]
#[inline]
pub const fn frame_bytes(payload: u32) -> u64 {
    // By the mask, which is two instructions; `next_multiple_of` compiles to seven, and this is asked six times for a frame.
    (FRAME_HEADER_BYTES as u64 + payload as u64 + (FRAME_ALIGN - 1)) & !(FRAME_ALIGN - 1)
}

/// Whether a ring may have this size.
#[must_use]
pub const fn ring_size_is_valid(ring_bytes: u32) -> bool {
    ring_bytes.is_power_of_two() && ring_bytes >= MIN_RING_BYTES && ring_bytes <= MAX_RING_BYTES
}

/// The first [`LINE_BYTES`] of a region. The host writes it before it passes on the descriptor, and it is not needed
/// after mapping.
#[repr(C, align(128))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`PROTOCOL_VERSION`].
    pub version: u32,
    /// [`HEADER_BYTES`].
    pub header_bytes: u32,
    /// Capacity of the ring host → worker, in bytes.
    pub to_worker_bytes: u32,
    /// Capacity of the ring worker → host, in bytes.
    pub to_host_bytes: u32,
    /// How long a worker spins for its next request before it sleeps, in microseconds; see [`crate::spin`].
    pub busy_poll_us: u32,
    /// Zero.
    pub reserved: [u32; 25],
}

impl RegionHeader {
    /// The header of a region with two rings of `ring_bytes`.
    #[must_use]
    pub const fn new(ring_bytes: u32) -> Self {
        Self {
            magic: MAGIC,
            version: PROTOCOL_VERSION,
            header_bytes: HEADER_BYTES as u32,
            to_worker_bytes: ring_bytes,
            to_host_bytes: ring_bytes,
            busy_poll_us: 0,
            reserved: [0; 25],
        }
    }

    /// Bytes of the whole region.
    #[must_use]
    pub const fn region_bytes(&self) -> u64 {
        self.header_bytes as u64 + self.to_worker_bytes as u64 + self.to_host_bytes as u64
    }
}

/// What has cache lines of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Line<T>(pub T);

/// The shared words of one ring. Each is written by one role, but for the two announcements, which the sleeper
/// sets and the peer takes back.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RingControl {
    /// Bytes ever published; the producer's.
    pub head: Line<Published>,
    /// Bytes ever released; the consumer's.
    pub tail: Line<AtomicU64>,
    /// 1 while the consumer sleeps, or is about to, until there is data.
    pub consumer_waiting: Line<AtomicU32>,
    /// 1 while the producer sleeps, or is about to, until there is space.
    pub producer_waiting: Line<AtomicU32>,
}

/// A producer's position, and on the same cache line what it says beside it: who waits for the one has fetched the other.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Published {
    /// Bytes ever published.
    pub position: AtomicU64,
    /// Of the ring worker → host: the stamps of the request whose answer began last. Not used in the other.
    pub stamps: StampWords,
    /// What was counted while that request was served. Not used in the other.
    pub counters: CounterWords,
}

/// Instants of a request, in nanoseconds of `CLOCK_MONOTONIC`; 0 before they are reached. Written by the worker, read by the
/// host. See `stamps`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct StampWords {
    /// The whole request was read.
    pub taken: AtomicU64,
    /// The handler was called.
    pub began: AtomicU64,
    /// The handler was done.
    pub ended: AtomicU64,
}

/// What a worker has counted of the request whose answer began last. Written by the worker, read by the host. See `counters`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CounterWords {
    /// Page faults: in the low half those served from memory, in the high half those that waited for a disk.
    pub faults: AtomicU64,
    /// In the low half involuntary context switches, in the high half collections of garbage.
    pub stops: AtomicU64,
    /// Nanoseconds that those collections took.
    pub paused: AtomicU64,
    /// 1 if the words above are this request's.
    pub counted: AtomicU64,
}

const _: () = {
    assert!(size_of::<RegionHeader>() == LINE_BYTES && align_of::<RegionHeader>() == LINE_BYTES);
    assert!(FRAME_HEADER_BYTES as u64 == FRAME_ALIGN && FRAME_ALIGN.is_power_of_two());
    assert!((MIN_RING_BYTES as usize).is_multiple_of(HEADER_BYTES));
    assert!(FRAME_ALIGN as usize == crate::checksum::BLOCK);
    // The longest frame and filler for it, beside what is kept back.
    let longest = frame_bytes(max_payload(MIN_RING_BYTES));
    let kept = (MIN_RING_BYTES / KEEP_BACK) as u64;
    assert!(longest.is_multiple_of(FRAME_ALIGN) && kept.is_multiple_of(FRAME_ALIGN));
    assert!(2 * longest + kept <= MIN_RING_BYTES as u64);
};

// Loom's atomics are handles of another size.
#[cfg(not(loom))]
const _: () = {
    use core::mem::offset_of;
    assert!(
        size_of::<RingControl>() == size_of_control() && align_of::<RingControl>() == LINE_BYTES
    );
    assert!(offset_of!(RingControl, head) == 0);
    assert!(offset_of!(Published, position) == 0 && offset_of!(Published, stamps) == 8);
    assert!(offset_of!(Published, counters) == 32);
    // Who waits for the position has fetched them all.
    assert!(size_of::<Published>() <= 64);
    assert!(offset_of!(RingControl, tail) == LINE_BYTES);
    assert!(offset_of!(RingControl, consumer_waiting) == 2 * LINE_BYTES);
    assert!(offset_of!(RingControl, producer_waiting) == 3 * LINE_BYTES);
    assert!(size_of::<Line<Published>>() == LINE_BYTES);
    assert!(size_of::<Line<StampWords>>() == LINE_BYTES);
    assert!(offset_of!(StampWords, taken) == 0);
    assert!(offset_of!(StampWords, began) == 8);
    assert!(offset_of!(StampWords, ended) == 16);
    assert!(STAMPS.is_multiple_of(LINE_BYTES));
    assert!(STAMPS + size_of::<Line<StampWords>>() <= HEADER_BYTES);
};
