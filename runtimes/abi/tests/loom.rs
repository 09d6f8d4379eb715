//! A model of the ring's core: every interleaving, and every reordering that the memory model allows, of two threads
//! that pass slots through small rings, up to a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p hearth-abi --release --test loom`, in a target directory of its own.
#![cfg(loom)]

use hearth_abi::layout::{FRAME_ALIGN, KEEP_BACK, RingControl};
use hearth_abi::ring::{Consumer, Producer};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Notify};
use loom::thread;

/// Unforced thread switches in one execution: three find every two-variable race, and keep a model under a minute.
const PREEMPTIONS: usize = 3;

/// A ring with bytes that loom watches: an access that the positions do not order is reported as a race.
struct Ring {
    control: Arc<RingControl>,
    slots: Vec<UnsafeCell<u64>>,
    wake_consumer: Notify,
    wake_producer: Notify,
}

impl Ring {
    fn new(slots: usize) -> Self {
        Self {
            control: Arc::new(RingControl::default()),
            slots: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
            wake_consumer: Notify::new(),
            wake_producer: Notify::new(),
        }
    }

    fn capacity(&self) -> u64 {
        self.slots.len() as u64 * FRAME_ALIGN
    }

    fn producer(&self) -> Producer<Arc<RingControl>> {
        Producer::new(Arc::clone(&self.control), self.capacity())
    }

    fn consumer(&self) -> Consumer<Arc<RingControl>> {
        Consumer::new(Arc::clone(&self.control), self.capacity())
    }

    fn slot(&self, offset: u64) -> &UnsafeCell<u64> {
        &self.slots[(offset / FRAME_ALIGN) as usize]
    }

    /// Writes `value` to the next `slots` slots. They must be free.
    fn put(&self, producer: &mut Producer<Arc<RingControl>>, value: u64, slots: u64) {
        for index in 0..slots {
            let offset = (producer.offset() + index * FRAME_ALIGN) % self.capacity();
            self.slot(offset).with_mut(|slot| {
                // SAFETY: loom checks that nobody else accesses the slot meanwhile; that is the test.
                unsafe { *slot = value }
            });
        }
        producer.publish(slots * FRAME_ALIGN);
    }

    /// Writes to the next slot without publishing it, if it is known to be free: what warming up does.
    fn claim(&self, producer: &Producer<Arc<RingControl>>) {
        if producer.free_seen() >= FRAME_ALIGN {
            self.slot(producer.offset()).with_mut(|slot| {
                // SAFETY: as above.
                unsafe { *slot = 0 }
            });
        }
    }

    /// Reads the oldest `slots` slots, which must be published and hold the same.
    fn take(&self, consumer: &mut Consumer<Arc<RingControl>>, slots: u64) -> u64 {
        let values = (0..slots).map(|index| {
            let offset = (consumer.offset() + index * FRAME_ALIGN) % self.capacity();
            self.slot(offset).with(|slot| {
                // SAFETY: as above.
                unsafe { *slot }
            })
        });
        let values: Vec<u64> = values.collect();
        assert!(values.iter().all(|value| *value == values[0]));
        consumer.release(slots * FRAME_ALIGN);
        values[0]
    }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(check);
}

/// SYNC POINTS `published` and `released`: what is read is what was written, and nothing is overwritten before it is read.
#[test]
fn slots_arrive_in_order_and_whole() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        let sender = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            let mut producer = sender.producer();
            for value in 1..=4 {
                while producer.free(FRAME_ALIGN).expect("a true position") < FRAME_ALIGN {
                    thread::yield_now();
                }
                sender.put(&mut producer, value, 1);
                sender.claim(&producer);
            }
        });
        let mut consumer = ring.consumer();
        for value in 1..=4 {
            while consumer.available().expect("a true position") == 0 {
                thread::yield_now();
            }
            assert_eq!(ring.take(&mut consumer, 1), value);
        }
        producer.join().expect("no panic");
    });
}

/// SYNC POINTS `data wake-up` and `space wake-up`: both sides sleep whenever they have to wait. A wake-up that gets lost
/// leaves both asleep, which loom reports. `frames` are their sizes in slots.
fn sleepers(slots: usize, frames: &'static [u64]) {
    model(move || {
        let ring = Arc::new(Ring::new(slots));
        let sender = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            let mut producer = sender.producer();
            for (value, size) in (1..).zip(frames) {
                let want = size * FRAME_ALIGN;
                while producer.free(want).expect("a true position") < want {
                    if producer.prepare_wait(want).expect("a true position") {
                        sender.wake_producer.wait();
                        producer.cancel_wait();
                    }
                }
                sender.put(&mut producer, value, *size);
                sender.claim(&producer);
                if producer.take_consumer_waiting() {
                    sender.wake_consumer.notify();
                }
            }
        });
        let mut consumer = ring.consumer();
        for (value, size) in (1..).zip(frames) {
            while consumer.available().expect("a true position") == 0 {
                if consumer.prepare_wait().expect("a true position") {
                    ring.wake_consumer.wait();
                    consumer.cancel_wait();
                }
            }
            assert_eq!(ring.take(&mut consumer, *size), value);
            if consumer.take_producer_waiting() {
                ring.wake_producer.notify();
            }
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn no_wake_up_is_lost_in_a_ring_of_one() {
    sleepers(1, &[1, 1, 1]);
}

#[test]
fn no_wake_up_is_lost_in_a_ring_of_two() {
    sleepers(2, &[1, 1, 1]);
}

/// A ring that is large enough for its consumer to keep a slot back, and a producer that wants all the others.
#[test]
fn nobody_sleeps_for_what_is_kept_back() {
    assert_eq!(KEEP_BACK, 8);
    sleepers(8, &[1, 1, 7]);
}
