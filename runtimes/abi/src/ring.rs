//! The core of a ring: who may touch which bytes when, and who wakes whom. It moves positions and never
//! touches a byte, so it is free of `unsafe`, of memory maps and of the operating system; loom models it.
//!
//! Positions count bytes since the ring was made, never wrap in practice (2^64 bytes) and never go back. The bytes
//! between `tail` and `head` are the consumer's, the others the producer's. Each side keeps its own position
//! privately, publishes it, and caches its peer's; it never reads its own back from shared memory. The peer's
//! position is loaded once, checked against what can be true, and only then used.
//!
//! Sync points (the same name marks both ends of a pair):
//! - `published`: the producer's writes happen before the consumer's reads of them.
//! - `released`: the consumer's reads happen before the producer overwrites them.
//! - `data wake-up`, `space wake-up`: a sleeper announces and then looks once more, a waker moves its position
//!   and then looks for an announcement. With a sequentially consistent fence between the two steps on both sides, at
//!   least one sees the other (Dekker's argument), so no wake-up is lost.

use core::ops::Deref;

use crate::error::Violation;
use crate::layout::{FRAME_ALIGN, RingControl};
use crate::sync::{AtomicU32, AtomicU64, Ordering, full_fence};

/// Loads the peer's position `shared`, which was `last` before and can be `to` at most.
fn load_position(shared: &AtomicU64, last: u64, to: u64) -> Result<u64, Violation> {
    let position = shared.load(Ordering::Acquire);
    if !position.is_multiple_of(FRAME_ALIGN) {
        return Err(Violation::Misaligned {
            position,
            align: FRAME_ALIGN,
        });
    }
    if position.wrapping_sub(last) > to.wrapping_sub(last) {
        return Err(Violation::PositionOutOfRange {
            position,
            from: last,
            to,
        });
    }
    Ok(position)
}

/// Takes an announcement, if there is one. It writes only over a 1, so that it cannot undo an announcement that it has
/// not seen; and it reads first, so that a peer that does not sleep costs no exclusive access.
fn take(announcement: &AtomicU32) -> bool {
    announcement.load(Ordering::Relaxed) == 1
        && announcement
            .compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// The producer's end of a ring. `C` leads to the shared words.
#[derive(Debug)]
pub struct Producer<C> {
    control: C,
    capacity: u64,
    head: u64,
    /// The consumer's position when it was last loaded.
    tail: u64,
}

impl<C: Deref<Target = RingControl>> Producer<C> {
    /// The producer of a fresh ring of `capacity` bytes, a power of two and a multiple of [`FRAME_ALIGN`].
    pub fn new(control: C, capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= FRAME_ALIGN);
        Self {
            control,
            capacity,
            head: 0,
            tail: 0,
        }
    }

    /// Size of the ring in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Offset in the ring at which the next byte will lie.
    pub fn offset(&self) -> u64 {
        self.head & (self.capacity - 1)
    }

    /// Free bytes as last seen, without looking at the shared words.
    pub fn free_seen(&self) -> u64 {
        self.capacity - self.head.wrapping_sub(self.tail)
    }

    /// Free bytes; looks at the consumer's position only when fewer than `want` were free when last seen.
    ///
    /// # Errors
    /// The consumer's position cannot be true.
    pub fn free(&mut self, want: u64) -> Result<u64, Violation> {
        if self.free_seen() < want {
            // SYNC POINT: released
            self.tail = load_position(&self.control.tail.0, self.tail, self.head)?;
        }
        Ok(self.free_seen())
    }

    /// Hands the next `bytes` to the consumer. The caller has found them free and filled them.
    pub fn publish(&mut self, bytes: u64) {
        debug_assert!(bytes.is_multiple_of(FRAME_ALIGN) && bytes <= self.free_seen());
        self.head = self.head.wrapping_add(bytes);
        // SYNC POINT: published
        self.control.head.0.store(self.head, Ordering::Release);
    }

    /// Takes the consumer's announcement that it sleeps: after `true`, its bell must be rung.
    pub fn take_consumer_waiting(&mut self) -> bool {
        // SYNC POINT: data wake-up
        full_fence();
        take(&self.control.consumer_waiting.0)
    }

    /// Announces that this side is about to sleep until `want` bytes are free, and looks once more. `false`: they are
    /// free now, nothing is announced.
    ///
    /// # Errors
    /// The consumer's position cannot be true; nothing is announced.
    pub fn prepare_wait(&mut self, want: u64) -> Result<bool, Violation> {
        self.control.producer_waiting.0.store(1, Ordering::Relaxed);
        // SYNC POINT: space wake-up
        full_fence();
        let full = self.free(want).map(|free| free < want);
        if full != Ok(true) {
            self.cancel_wait();
        }
        full
    }

    /// Takes the announcement back.
    pub fn cancel_wait(&mut self) {
        self.control.producer_waiting.0.store(0, Ordering::Relaxed);
    }
}

/// The consumer's end of a ring. `C` leads to the shared words.
#[derive(Debug)]
pub struct Consumer<C> {
    control: C,
    capacity: u64,
    tail: u64,
    /// The producer's position when it was last loaded.
    head: u64,
}

impl<C: Deref<Target = RingControl>> Consumer<C> {
    /// The consumer of a fresh ring of `capacity` bytes, a power of two and a multiple of [`FRAME_ALIGN`].
    pub fn new(control: C, capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= FRAME_ALIGN);
        Self {
            control,
            capacity,
            tail: 0,
            head: 0,
        }
    }

    /// Size of the ring in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Offset in the ring of the oldest byte that is not released.
    pub fn offset(&self) -> u64 {
        self.tail & (self.capacity - 1)
    }

    /// Published bytes; looks at the producer's position only when all seen so far are released.
    ///
    /// # Errors
    /// The producer's position cannot be true.
    pub fn available(&mut self) -> Result<u64, Violation> {
        if self.head == self.tail {
            let to = self.tail.wrapping_add(self.capacity);
            // SYNC POINT: published
            self.head = load_position(&self.control.head.0, self.head, to)?;
        }
        Ok(self.head.wrapping_sub(self.tail))
    }

    /// Gives the oldest `bytes` back to the producer. The caller has found them published and is done with them.
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(
            bytes.is_multiple_of(FRAME_ALIGN) && bytes <= self.head.wrapping_sub(self.tail)
        );
        self.tail = self.tail.wrapping_add(bytes);
        // SYNC POINT: released
        self.control.tail.0.store(self.tail, Ordering::Release);
    }

    /// Takes the producer's announcement that it sleeps: after `true`, its bell must be rung.
    pub fn take_producer_waiting(&mut self) -> bool {
        // SYNC POINT: space wake-up
        full_fence();
        take(&self.control.producer_waiting.0)
    }

    /// Announces that this side is about to sleep until there is data, and looks once more. `false`: there is data now,
    /// nothing is announced.
    ///
    /// # Errors
    /// The producer's position cannot be true; nothing is announced.
    pub fn prepare_wait(&mut self) -> Result<bool, Violation> {
        self.control.consumer_waiting.0.store(1, Ordering::Relaxed);
        // SYNC POINT: data wake-up
        full_fence();
        let empty = self.available().map(|available| available == 0);
        if empty != Ok(true) {
            self.cancel_wait();
        }
        empty
    }

    /// Takes the announcement back.
    pub fn cancel_wait(&mut self) {
        self.control.consumer_waiting.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Four slots.
    const CAPACITY: u64 = 4 * FRAME_ALIGN;

    fn ring() -> (Producer<Arc<RingControl>>, Consumer<Arc<RingControl>>) {
        let control = Arc::new(RingControl::default());
        (
            Producer::new(Arc::clone(&control), CAPACITY),
            Consumer::new(control, CAPACITY),
        )
    }

    #[test]
    fn positions_go_round() {
        let (mut producer, mut consumer) = ring();
        for step in 0..50 {
            assert_eq!(producer.free(CAPACITY), Ok(CAPACITY));
            assert_eq!(producer.offset(), step * 3 * FRAME_ALIGN % CAPACITY);
            producer.publish(3 * FRAME_ALIGN);
            assert_eq!(producer.free(CAPACITY), Ok(FRAME_ALIGN));
            assert_eq!(consumer.available(), Ok(3 * FRAME_ALIGN));
            assert_eq!(consumer.offset(), step * 3 * FRAME_ALIGN % CAPACITY);
            consumer.release(FRAME_ALIGN);
            consumer.release(2 * FRAME_ALIGN);
            assert_eq!(consumer.available(), Ok(0));
        }
    }

    #[test]
    fn the_peers_position_is_loaded_only_when_it_matters() {
        let (mut producer, mut consumer) = ring();
        producer.publish(FRAME_ALIGN);
        assert_eq!(consumer.available(), Ok(FRAME_ALIGN));
        producer.publish(FRAME_ALIGN);
        assert_eq!(consumer.available(), Ok(FRAME_ALIGN), "the cached position");
        consumer.release(FRAME_ALIGN);
        assert_eq!(
            producer.free(2 * FRAME_ALIGN),
            Ok(2 * FRAME_ALIGN),
            "the cached position"
        );
        assert_eq!(producer.free(3 * FRAME_ALIGN), Ok(3 * FRAME_ALIGN));
    }

    #[test]
    fn an_announcement_is_taken_once_and_only_if_there_is_one() {
        let (mut producer, mut consumer) = ring();
        assert!(!producer.take_consumer_waiting() && !consumer.take_producer_waiting());
        assert_eq!(consumer.prepare_wait(), Ok(true));
        assert_eq!(producer.prepare_wait(CAPACITY), Ok(false));
        assert!(!consumer.take_producer_waiting());
        producer.publish(CAPACITY);
        assert!(producer.take_consumer_waiting() && !producer.take_consumer_waiting());
        assert_eq!(consumer.prepare_wait(), Ok(false));
        assert!(!producer.take_consumer_waiting());
        assert_eq!(producer.prepare_wait(FRAME_ALIGN), Ok(true));
        consumer.release(FRAME_ALIGN);
        assert!(consumer.take_producer_waiting() && !consumer.take_producer_waiting());
        assert_eq!(producer.prepare_wait(FRAME_ALIGN), Ok(false));
        assert_eq!(producer.prepare_wait(2 * FRAME_ALIGN), Ok(true));
        producer.cancel_wait();
        assert!(!consumer.take_producer_waiting());
    }

    #[test]
    fn positions_that_cannot_be_true_are_refused() {
        let (mut producer, mut consumer) = ring();
        producer.publish(2 * FRAME_ALIGN);
        assert_eq!(consumer.available(), Ok(2 * FRAME_ALIGN));
        consumer.release(2 * FRAME_ALIGN);
        for (position, ok) in [
            (0, false),
            (32, false),
            (64, true),
            (65, false),
            (192, true),
            (224, false),
        ] {
            producer.control.head.0.store(position, Ordering::Relaxed);
            let mut consumer = Consumer {
                control: Arc::clone(&consumer.control),
                ..consumer
            };
            assert_eq!(consumer.available().is_ok(), ok, "head {position}");
        }
        for (position, ok) in [
            (0, true),
            (32, true),
            (33, false),
            (64, true),
            (96, false),
            (u64::MAX - 31, false),
        ] {
            producer.control.tail.0.store(position, Ordering::Relaxed);
            let mut producer = Producer {
                control: Arc::clone(&producer.control),
                ..producer
            };
            assert_eq!(producer.free(CAPACITY).is_ok(), ok, "tail {position}");
        }
    }
}
