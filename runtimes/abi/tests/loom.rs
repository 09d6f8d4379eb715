//! A model of the ring's core: every interleaving, and every reordering that the memory model allows, of two threads
//! that pass slots through rings of one and two, up to a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p hearth-abi --release --test loom`, in a target directory of its own.
#![cfg(loom)]

use hearth_abi::layout::{FRAME_ALIGN, RingControl};
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

    /// Writes `value` to the next slot. The slot must be free.
    fn put(&self, producer: &mut Producer<Arc<RingControl>>, value: u64) {
        self.slot(producer.offset()).with_mut(|slot| {
            // SAFETY: loom checks that nobody else accesses the slot meanwhile; that is the test.
            unsafe { *slot = value }
        });
        producer.publish(FRAME_ALIGN);
    }

    /// Reads the oldest slot. It must be published.
    fn take(&self, consumer: &mut Consumer<Arc<RingControl>>) -> u64 {
        let value = self.slot(consumer.offset()).with(|slot| {
            // SAFETY: as above.
            unsafe { *slot }
        });
        consumer.release(FRAME_ALIGN);
        value
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
                sender.put(&mut producer, value);
            }
        });
        let mut consumer = ring.consumer();
        for value in 1..=4 {
            while consumer.available().expect("a true position") == 0 {
                thread::yield_now();
            }
            assert_eq!(ring.take(&mut consumer), value);
        }
        producer.join().expect("no panic");
    });
}

/// SYNC POINTS `data wake-up` and `space wake-up`: both sides sleep whenever they have to wait. A wake-up that gets lost
/// leaves both asleep, which loom reports.
fn sleepers(slots: usize, count: u64) {
    model(move || {
        let ring = Arc::new(Ring::new(slots));
        let sender = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            let mut producer = sender.producer();
            for value in 1..=count {
                while producer.free(FRAME_ALIGN).expect("a true position") < FRAME_ALIGN {
                    if producer.prepare_wait(FRAME_ALIGN).expect("a true position") {
                        sender.wake_producer.wait();
                        producer.cancel_wait();
                    }
                }
                sender.put(&mut producer, value);
                if producer.take_consumer_waiting() {
                    sender.wake_consumer.notify();
                }
            }
        });
        let mut consumer = ring.consumer();
        for value in 1..=count {
            while consumer.available().expect("a true position") == 0 {
                if consumer.prepare_wait().expect("a true position") {
                    ring.wake_consumer.wait();
                    consumer.cancel_wait();
                }
            }
            assert_eq!(ring.take(&mut consumer), value);
            if consumer.take_producer_waiting() {
                ring.wake_producer.notify();
            }
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn no_wake_up_is_lost_in_a_ring_of_one() {
    sleepers(1, 3);
}

#[test]
fn no_wake_up_is_lost_in_a_ring_of_two() {
    sleepers(2, 3);
}
