//! The core of a descriptor ring: who may touch which slot when, and who wakes whom. It moves positions and touches no
//! slot, so it is free of `unsafe`, of memory maps and of the operating system; loom models it.
//!
//! One producer, one consumer. **Each word has one writer**, which alone has it in memory that it may write: the producer its
//! `head`, the consumer its `tail` and its `state` ([`crate::sleeper`]). A peer's word is loaded once, checked against what can be true, and
//! only then used; each side keeps its own position privately and never reads it back.
//!
//! Positions count descriptors modulo 2^31. The highest bit of a head is [`CLOSED`]: the server sets it when the
//! producer's process has ended. A futex compares 32 bits, so a consumer can sleep on the head itself, and
//! neither a new descriptor nor the producer's end is missed.
//!
//! **Waking.** As the consumer's state is read-only for the producer, no producer can take the announcement back, nor
//! tamper with another's: a few rings too many are the price. Sync points (the same name marks both ends of a pair):
//! - `published`: what the producer wrote happens before the consumer reads it.
//! - `released`: the consumer's read of a slot happens before the producer overwrites it.
//! - `wake-up`: the consumer announces that it sleeps and then looks at the heads again; the producer moves its head and
//!   then looks at the consumer's state. With a full fence between the two steps on both sides, one sees the other
//!   (Dekker). If the producer sees the announcement before the consumer is in the kernel, the wake finds nobody;
//!   but the kernel compares the head with what the consumer has seen, and does not let it sleep.

use core::ops::Deref;

use crate::error::Violation;
use crate::sleeper::{AWAKE, ENDED};
use crate::sync::{AtomicU32, Ordering, PeerWord, load_acquire};
use hearth_abi::full_fence;

/// The bit of a head that says that its producer has ended.
pub const CLOSED: u32 = 1 << 31;
/// The bits of a position.
const POSITION: u32 = CLOSED - 1;
/// Most slots of a ring: more than a pool has blocks.
pub const MAX_SLOTS: u32 = 1 << 19;

/// From `from` to `to`, in descriptors.
#[inline]
const fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) & POSITION
}

/// Loads a peer's position, which was `last` before and can be `to` at most.
#[inline]
fn checked(position: u32, last: u32, to: u32) -> Result<u32, Violation> {
    if distance(last, position) <= distance(last, to) {
        Ok(position)
    } else {
        Err(Violation::Position {
            position,
            from: last,
            to,
        })
    }
}

/// What a sender does about its receiver after publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Nothing: it looks by itself.
    No,
    /// Wake it.
    Yes,
    /// Nothing: it has ended, and nobody will read the ring.
    Gone,
}

/// The producer's end: `W` is its own word, `P` its peer's.
#[derive(Debug)]
pub struct Producer<W, P> {
    head: W,
    tail: P,
    state: P,
    slots: u32,
    position: u32,
    /// The consumer's position when it was last loaded.
    tail_seen: u32,
}

impl<W: Deref<Target = AtomicU32>, P: PeerWord> Producer<W, P> {
    /// Of a fresh ring with `slots`, a power of two up to [`MAX_SLOTS`]: `head` is its own word, `tail` and `state` the
    /// consumer's.
    pub fn new(head: W, tail: P, state: P, slots: u32) -> Self {
        debug_assert!(slots.is_power_of_two() && slots <= MAX_SLOTS);
        Self {
            head,
            tail,
            state,
            slots,
            position: 0,
            tail_seen: 0,
        }
    }

    /// Whether a slot is free; looks at the consumer's position only if none was free when it was last seen.
    ///
    /// # Errors
    /// The consumer's position cannot be true.
    #[inline]
    pub fn has_room(&mut self) -> Result<bool, Violation> {
        if self.backlog() == self.slots {
            self.look()?;
        }
        Ok(self.backlog() < self.slots)
    }

    /// Looks at the consumer's position.
    ///
    /// # Errors
    /// It cannot be true.
    #[inline]
    pub fn look(&mut self) -> Result<(), Violation> {
        // SYNC POINT: released
        let tail = load_acquire(&self.tail) & POSITION;
        self.tail_seen = checked(tail, self.tail_seen, self.position)?;
        Ok(())
    }

    /// Descriptors that the consumer has not taken, as last seen.
    #[inline]
    pub fn backlog(&self) -> u32 {
        distance(self.tail_seen, self.position)
    }

    /// The slot that is filled next.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.position & (self.slots - 1)
    }

    /// The head after the next [`Self::publish`].
    #[inline]
    pub fn next(&self) -> u32 {
        self.position.wrapping_add(1) & POSITION
    }

    /// Hands the slot to the consumer. The caller has found room and filled it.
    #[inline]
    pub fn publish(&mut self) {
        debug_assert!(self.backlog() < self.slots);
        self.position = self.next();
        // SYNC POINT: published
        self.head.store(self.position, Ordering::Release);
    }

    /// Whether the consumer must be woken after [`Self::publish`].
    #[inline]
    pub fn wake(&self) -> Wake {
        // SYNC POINT: wake-up
        full_fence();
        match self.state.load() {
            AWAKE => Wake::No,
            ENDED => Wake::Gone,
            // What a broken consumer writes there costs a system call.
            _ => Wake::Yes,
        }
    }

    /// The producer's own word, on which the consumer sleeps.
    pub fn head(&self) -> &AtomicU32 {
        &self.head
    }

    /// Leaves the ring as a fresh one.
    pub fn reset(&self) {
        self.head.store(0, Ordering::Release);
    }
}

/// What a consumer found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing so far.
    Nothing,
    /// A descriptor, in [`Consumer::slot`].
    One,
    /// Nothing, and nothing will come: the producer has ended.
    Ended,
}

/// The consumer's end: `W` is its own word, `P` its peer's.
#[derive(Debug)]
pub struct Consumer<W, P> {
    head: P,
    tail: W,
    slots: u32,
    position: u32,
    /// The producer's word when it was last loaded.
    head_seen: u32,
}

impl<W: Deref<Target = AtomicU32>, P: PeerWord> Consumer<W, P> {
    /// Of a fresh ring with `slots`, a power of two up to [`MAX_SLOTS`]: `tail` is its own word, `head` the producer's.
    pub fn new(head: P, tail: W, slots: u32) -> Self {
        debug_assert!(slots.is_power_of_two() && slots <= MAX_SLOTS);
        Self {
            head,
            tail,
            slots,
            position: 0,
            head_seen: 0,
        }
    }

    /// Whether there is a descriptor; looks at the producer's word only when all seen so far are taken.
    ///
    /// # Errors
    /// The producer's position cannot be true.
    #[inline]
    pub fn find(&mut self) -> Result<Found, Violation> {
        if self.head_seen & POSITION == self.position {
            // SYNC POINT: published
            let head = load_acquire(&self.head);
            let to = self.position.wrapping_add(self.slots) & POSITION;
            checked(head & POSITION, self.position, to)?;
            self.head_seen = head;
        }
        if self.head_seen & POSITION != self.position {
            Ok(Found::One)
        } else if self.head_seen & CLOSED != 0 {
            Ok(Found::Ended)
        } else {
            Ok(Found::Nothing)
        }
    }

    /// Whether the producer's word has changed since it was last found to have nothing.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.head.load() != self.position
    }

    /// The oldest slot that is not taken.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.position & (self.slots - 1)
    }

    /// The head that the producer published with the descriptor in [`Self::slot`], if that is the newest as last seen.
    #[inline]
    pub fn newest(&self) -> Option<u32> {
        let next = self.position.wrapping_add(1) & POSITION;
        (self.head_seen & POSITION == next).then_some(next)
    }

    /// Gives the oldest slot back. The caller has found a descriptor and copied it.
    #[inline]
    pub fn take(&mut self) {
        debug_assert!(self.head_seen & POSITION != self.position);
        self.position = self.position.wrapping_add(1) & POSITION;
        // SYNC POINT: released
        self.tail.store(self.position, Ordering::Release);
    }

    /// What the producer's word is while it has nothing: the value to sleep on.
    #[inline]
    pub fn nothing(&self) -> u32 {
        self.position
    }

    /// The producer's word, to sleep on.
    pub fn head(&self) -> &P {
        &self.head
    }

    /// Leaves the ring as a fresh one.
    pub fn reset(&self) {
        self.tail.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sleeper::Sleeper;

    const SLOTS: u32 = 4;
    type Word = Arc<AtomicU32>;

    struct Ring {
        head: Word,
        tail: Word,
        producer: Producer<Word, Word>,
        consumer: Consumer<Word, Word>,
        sleeper: Sleeper<Word>,
    }

    fn ring() -> Ring {
        let [head, tail, state]: [Word; 3] = Default::default();
        Ring {
            producer: Producer::new(head.clone(), tail.clone(), state.clone(), SLOTS),
            consumer: Consumer::new(head.clone(), tail.clone(), SLOTS),
            sleeper: Sleeper::new(state),
            head,
            tail,
        }
    }

    #[test]
    fn positions_go_round_their_slots_and_their_bits() {
        let mut ring = ring();
        let near_the_end = POSITION - 5;
        ring.producer.position = near_the_end;
        ring.producer.tail_seen = near_the_end;
        ring.consumer.position = near_the_end;
        ring.consumer.head_seen = near_the_end;
        ring.head.store(near_the_end, Ordering::Relaxed);
        ring.tail.store(near_the_end, Ordering::Relaxed);
        for round in 0..20 {
            for filled in 0..SLOTS {
                assert_eq!(ring.producer.has_room(), Ok(true), "{round} {filled}");
                ring.producer.publish();
            }
            assert_eq!(ring.producer.has_room(), Ok(false));
            for _ in 0..SLOTS {
                assert_eq!(ring.consumer.find(), Ok(Found::One));
                ring.consumer.take();
            }
            assert_eq!(ring.consumer.find(), Ok(Found::Nothing));
            assert!(!ring.consumer.is_ready());
        }
        assert!(ring.producer.position < near_the_end);
    }

    #[test]
    fn positions_that_cannot_be_true_are_refused() {
        let mut ring = ring();
        for _ in 0..3 {
            assert_eq!(ring.producer.has_room(), Ok(true));
            ring.producer.publish();
        }
        for (head, ok) in [
            (0, true),
            (3, true),
            (4, true),
            (5, false),
            (POSITION, false),
        ] {
            let mut consumer = Consumer::new(ring.head.clone(), ring.tail.clone(), SLOTS);
            ring.head.store(head, Ordering::Relaxed);
            assert_eq!(consumer.find().is_ok(), ok, "head {head}");
        }
        for (tail, ok) in [(0, true), (3, true), (4, false), (POSITION, false)] {
            ring.tail.store(tail, Ordering::Relaxed);
            ring.producer.tail_seen = 0;
            assert_eq!(ring.producer.look().is_ok(), ok, "tail {tail}");
        }
    }

    #[test]
    fn an_end_is_told_after_all_descriptors() {
        let mut ring = ring();
        ring.producer.publish();
        ring.head.fetch_or(CLOSED, Ordering::Relaxed);
        assert!(ring.consumer.is_ready());
        assert_eq!(ring.consumer.find(), Ok(Found::One));
        ring.consumer.take();
        assert_eq!(ring.consumer.find(), Ok(Found::Ended));
        assert!(ring.consumer.is_ready(), "nobody sleeps on it");
    }

    #[test]
    fn a_sleeper_is_woken_and_one_that_ended_is_not() {
        let ring = ring();
        assert_eq!(ring.producer.wake(), Wake::No);
        assert!(ring.sleeper.announce());
        assert_eq!(ring.producer.wake(), Wake::Yes);
        assert!(ring.sleeper.retract() && !ring.sleeper.retract());
        assert_eq!(ring.producer.wake(), Wake::No);
        ring.sleeper.state().store(ENDED, Ordering::Relaxed);
        assert_eq!(ring.producer.wake(), Wake::Gone);
        assert!(!ring.sleeper.announce() && !ring.sleeper.retract());
        assert_eq!(ring.producer.wake(), Wake::Gone);
    }
}
