//! The core of a ring: who may touch which bytes when, and who wakes whom. It moves positions and never
//! touches a byte, so it is free of `unsafe`, of memory maps and of the operating system; loom models it.
//!
//! Positions count bytes since the ring was made, never wrap in practice (2^64 bytes) and never go back. The bytes
//! between `tail` and `head` are the consumer's, the others the producer's. Each side keeps its own position
//! privately, publishes it, and caches its peer's; it never reads its own back from shared memory. The peer's
//! position is loaded once, checked against what can be true, and only then used.
//!
//! The consumer publishes its position late: it keeps back up to a [`KEEP_BACK`]th of the ring that it is done with, so that
//! it looks for a sleeping producer once for many frames and not for each. No producer sleeps for what is kept back,
//! provided that it never wants more than the rest of the ring ([`crate::layout::max_payload`] sees to that): once
//! the consumer has taken everything, the rest is free, and before that the producer waits for what is yet to be taken.
//!
//! Sync points (the same name marks both ends of a pair):
//! - `published`: the producer's writes happen before the consumer's reads of them.
//! - `released`: the consumer's reads happen before the producer overwrites them.
//! - `data wake-up`, `space wake-up`: a sleeper announces and then looks once more, a waker moves its position
//!   and then looks for an announcement. With a sequentially consistent fence between the two steps on both sides, at
//!   least one sees the other (Dekker's argument), so no wake-up is lost.

use core::ops::Deref;

use crate::error::Violation;
use crate::layout::{FRAME_ALIGN, KEEP_BACK, RingControl};
use crate::sync::{AtomicU32, AtomicU64, Ordering, full_fence};

/// Loads the peer's position `shared`, which was `last` before and can be `to` at most.
#[inline]
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
#[inline]
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
    /// Something was published since the consumer's announcement was last looked for.
    unannounced: bool,
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
            unannounced: false,
        }
    }

    /// Size of the ring in bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Offset in the ring at which the next byte will lie.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.head & (self.capacity - 1)
    }

    /// Free bytes as last seen, without looking at the shared words.
    #[inline]
    pub fn free_seen(&self) -> u64 {
        self.capacity - self.head.wrapping_sub(self.tail)
    }

    /// Free bytes; looks at the consumer's position only when fewer than `want` were free when last seen.
    ///
    /// # Errors
    /// The consumer's position cannot be true.
    #[inline]
    pub fn free(&mut self, want: u64) -> Result<u64, Violation> {
        if self.free_seen() < want {
            // SYNC POINT: released
            self.tail = load_position(&self.control.tail.0, self.tail, self.head)?;
        }
        Ok(self.free_seen())
    }

    /// Hands the next `bytes` to the consumer. The caller has found them free and filled them.
    #[inline]
    pub fn publish(&mut self, bytes: u64) {
        debug_assert!(bytes.is_multiple_of(FRAME_ALIGN) && bytes <= self.free_seen());
        self.head = self.head.wrapping_add(bytes);
        // SYNC POINT: published
        self.control
            .head
            .0
            .position
            .store(self.head, Ordering::Release);
        self.unannounced = true;
    }

    /// Takes the consumer's announcement that it sleeps: after `true`, ring its bell. A sleeping consumer has
    /// seen everything published before its last check, so this checks only what was published since.
    #[inline]
    pub fn take_consumer_waiting(&mut self) -> bool {
        if !core::mem::take(&mut self.unannounced) {
            return false;
        }
        // SYNC POINT: data wake-up
        full_fence();
        take(&self.control.consumer_waiting.0)
    }

    /// Whether the consumer has taken everything, but for what it may keep back. Looks at its position in any case.
    ///
    /// # Errors
    /// The consumer's position cannot be true.
    pub fn is_drained(&mut self) -> Result<bool, Violation> {
        let kept = u64::from(KEEP_BACK);
        Ok(self.free(u64::MAX)? >= self.capacity - self.capacity / kept)
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
    /// The position as last published: `tail` less what is kept back.
    released: u64,
    /// The producer's position when it was last loaded.
    head: u64,
    /// A position was published since the producer's announcement was last looked for.
    unannounced: bool,
}

impl<C: Deref<Target = RingControl>> Consumer<C> {
    /// The consumer of a fresh ring of `capacity` bytes, a power of two and a multiple of [`FRAME_ALIGN`].
    pub fn new(control: C, capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= FRAME_ALIGN);
        Self {
            control,
            capacity,
            tail: 0,
            released: 0,
            head: 0,
            unannounced: false,
        }
    }

    /// Size of the ring in bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Offset in the ring of the oldest byte that is not released.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.tail & (self.capacity - 1)
    }

    /// Published bytes; looks at the producer's position only when all seen so far are released.
    ///
    /// # Errors
    /// The producer's position cannot be true.
    #[inline]
    pub fn available(&mut self) -> Result<u64, Violation> {
        if self.head == self.tail {
            let to = self.tail.wrapping_add(self.capacity);
            // SYNC POINT: published
            self.head = load_position(&self.control.head.0.position, self.head, to)?;
        }
        Ok(self.head.wrapping_sub(self.tail))
    }

    /// Gives the oldest `bytes` back to the producer, at once or together with later ones. The caller has found them
    /// published and is done with them.
    #[inline]
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(
            bytes.is_multiple_of(FRAME_ALIGN) && bytes <= self.head.wrapping_sub(self.tail)
        );
        self.tail = self.tail.wrapping_add(bytes);
        let kept = self.tail.wrapping_sub(self.released);
        // The first is published at once: it shows that the ring is in use.
        if kept > self.capacity / u64::from(KEEP_BACK) || self.released == 0 {
            // SYNC POINT: released
            self.control.tail.0.store(self.tail, Ordering::Release);
            self.released = self.tail;
            self.unannounced = true;
        }
    }

    /// Takes the producer's announcement that it sleeps: after `true`, ring its bell. A sleeping producer has
    /// seen the position published before its last check, so this checks only if it has changed since.
    #[inline]
    pub fn take_producer_waiting(&mut self) -> bool {
        if !core::mem::take(&mut self.unannounced) {
            return false;
        }
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
            (64, false),
            (128, true),
            (129, false),
            (384, true),
            (448, false),
        ] {
            producer
                .control
                .head
                .0
                .position
                .store(position, Ordering::Relaxed);
            let mut consumer = Consumer {
                control: Arc::clone(&consumer.control),
                ..consumer
            };
            assert_eq!(consumer.available().is_ok(), ok, "head {position}");
        }
        for (position, ok) in [
            (0, true),
            (64, true),
            (65, false),
            (128, true),
            (192, false),
            (u64::MAX - 63, false),
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
