//! Models of the cores: every interleaving, and every reordering that the memory model allows, of two or three threads, up to a
//! bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p hearth-chain --release --test loom`, in a target directory of its own.
#![cfg(loom)]

use hearth_chain::accounts::{Accounts, Entry};
use hearth_chain::free_list::FreeList;
use hearth_chain::latest::Latest;
use hearth_chain::ring::{CLOSED, Consumer, Found, Producer, Wake};
use hearth_chain::routes::pins::Pins;
use hearth_chain::sleeper::{ASLEEP, ENDED, Sleeper};
use hearth_chain::{Owner, Table};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Unforced thread switches in one execution: three find every two-variable race, and keep a model under a minute.
const PREEMPTIONS: usize = 3;

fn model(check: impl Fn() + Send + Sync + 'static) {
    bounded(PREEMPTIONS, check);
}

fn bounded(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

/// SYNC POINT `freed`: a block is with one thread at a time, and what the one before did to it is done. Three blocks and two
/// threads that take two each and give them back in the order that ABA needs.
#[test]
fn a_free_block_is_given_to_one() {
    model(|| {
        let list = Arc::new(FreeList::full(3));
        let blocks: Arc<[UnsafeCell<u32>; 3]> = Arc::new([0; 3].map(UnsafeCell::new));
        let work = |list: Arc<FreeList>, blocks: Arc<[UnsafeCell<u32>; 3]>| {
            move || {
                let taken: Vec<u32> = (0..2).filter_map(|_| list.pop()).collect();
                for &index in &taken {
                    // SAFETY: loom checks that nobody else accesses it meanwhile; that is the test.
                    blocks[index as usize].with_mut(|block| unsafe { *block += 1 });
                }
                for &index in &taken {
                    list.push(index);
                }
            }
        };
        let other = thread::spawn(work(list.clone(), blocks.clone()));
        work(list.clone(), blocks)();
        other.join().expect("no panic");
        let mut left: Vec<u32> = std::iter::from_fn(|| list.pop()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2]);
    });
}

fn accounts(blocks: usize) -> Accounts<Box<[Entry]>> {
    Accounts::new((0..blocks).map(|_| Entry::default()).collect())
}

/// The answer comes back while the request times out: one of them frees the block, and clears it once.
#[test]
fn a_block_is_freed_once() {
    model(|| {
        let accounts = Arc::new(accounts(1));
        let owner = Owner::Request { id: 1, route: 0 };
        let (block, generation) = accounts.allocate(owner).expect("a block");
        let other = accounts.clone();
        let timeout = thread::spawn(move || {
            let mut cleared = 0;
            let freed = other.reclaim(owner, |_| cleared += 1);
            assert_eq!(freed, cleared);
            freed
        });
        let mut cleared = 0;
        let freed = accounts.free(block, generation, |_| cleared += 1).is_ok();
        assert_eq!(cleared, u32::from(freed));
        assert_eq!(timeout.join().expect("no panic") + cleared, 1);
        let again = accounts.allocate(Owner::Gateway).expect("it came back");
        assert!(again != (block, generation) && accounts.allocate(owner).is_err());
    });
}

/// SYNC POINTS `allocated` and `superseded`: who looks a block up by its generation gets that generation's owner or an error,
/// while it is freed and given to another; and a reclaim of the first owner never takes it from the second.
#[test]
fn a_generation_has_one_owner() {
    model(|| {
        let accounts = Arc::new(accounts(1));
        let [first, second] = [1, 2].map(|id| Owner::Request { id, route: 0 });
        let (block, generation) = accounts.allocate(first).expect("a block");
        let other = accounts.clone();
        let writer = thread::spawn(move || {
            other.free(block, generation, |_| {}).is_ok() && other.allocate(second).is_ok()
        });
        let next = generation + 1;
        for (wanted, owner) in [(generation, first), (next, second)] {
            if let Ok(found) = accounts.owner(block, wanted) {
                assert_eq!(found, Some(owner));
            }
        }
        let reclaimed = accounts.reclaim(first, |_| {});
        let reused = writer.join().expect("no panic");
        if reused {
            let is_seconds = accounts.owner(block, next) == Ok(Some(second));
            assert!(is_seconds || reclaimed == 1);
        }
        assert!(reclaimed == 0 || accounts.owner(block, generation).is_err());
    });
}

/// A ring with slots that loom watches: an access that the positions do not order is reported as a race.
struct Ring {
    head: Arc<AtomicU32>,
    tail: Arc<AtomicU32>,
    slots: Vec<UnsafeCell<u64>>,
}

type Words = Arc<AtomicU32>;

impl Ring {
    fn new(slots: usize) -> Self {
        Self {
            head: Arc::default(),
            tail: Arc::default(),
            slots: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    fn producer(&self, state: &Words) -> Producer<Words, Words> {
        let slots = self.slots.len() as u32;
        Producer::new(self.head.clone(), self.tail.clone(), state.clone(), slots)
    }

    fn consumer(&self) -> Consumer<Words, Words> {
        Consumer::new(
            self.head.clone(),
            self.tail.clone(),
            self.slots.len() as u32,
        )
    }

    fn put(&self, producer: &mut Producer<Words, Words>, value: u64) {
        // SAFETY: loom checks that nobody else accesses the slot meanwhile; that is the test.
        self.slots[producer.slot() as usize].with_mut(|slot| unsafe { *slot = value });
        producer.publish();
    }

    fn take(&self, consumer: &mut Consumer<Words, Words>) -> u64 {
        // SAFETY: as above.
        let value = self.slots[consumer.slot() as usize].with(|slot| unsafe { *slot });
        consumer.take();
        value
    }
}

/// SYNC POINTS `published` and `released`: what is read is what was written, and nothing is overwritten before it is read.
#[test]
fn descriptors_arrive_in_order_and_whole() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        let sender = ring.clone();
        let producer = thread::spawn(move || {
            let mut producer = sender.producer(&Arc::default());
            for value in 1..=4 {
                while !producer.has_room().expect("a true position") {
                    thread::yield_now();
                }
                sender.put(&mut producer, value);
            }
        });
        let mut consumer = ring.consumer();
        for value in 1..=4 {
            while consumer.find().expect("a true position") != Found::One {
                thread::yield_now();
            }
            assert_eq!(ring.take(&mut consumer), value);
        }
        producer.join().expect("no panic");
    });
}

/// SYNC POINTS `copy` and `copied`: the copy of a descriptor is read whole or not at all.
#[test]
fn a_copy_is_whole() {
    model(|| {
        let latest = Arc::new(Latest::default());
        let other = latest.clone();
        let sender = thread::spawn(move || {
            for after in 1..=2 {
                other.write(after, [after.into(); 2]);
            }
        });
        for after in [1, 2] {
            if let Some(words) = latest.read(after) {
                assert_eq!(words, [after.into(); 2]);
            }
        }
        sender.join().expect("no panic");
        assert_eq!(latest.read(2), Some([2, 2]));
    });
}

/// The kernel's futexes: a sleeper compares all words under the lock that a waker takes.
#[derive(Default)]
struct Futex {
    bucket: Mutex<()>,
    woken: Condvar,
}

impl Futex {
    fn wait(&self, words: &[(&AtomicU32, u32)]) {
        let bucket = self.bucket.lock().expect("no panic");
        if words
            .iter()
            .all(|(word, value)| word.load(Ordering::Relaxed) == *value)
        {
            drop(self.woken.wait(bucket).expect("no panic"));
        }
    }

    fn wake(&self) {
        let _bucket = self.bucket.lock().expect("no panic");
        self.woken.notify_all();
    }
}

/// What a receiver with two rings does when it has nothing to do; it must not sleep for good.
fn sleep(sleeper: &Sleeper<Words>, consumers: &[Consumer<Words, Words>], futex: &Futex) -> bool {
    if !sleeper.announce() {
        return false;
    }
    if !consumers.iter().any(Consumer::is_ready) {
        let heads = consumers
            .iter()
            .map(|consumer| (&**consumer.head(), consumer.nothing()));
        let words: Vec<_> = heads.chain([(sleeper.state(), ASLEEP)]).collect();
        futex.wait(&words);
    }
    sleeper.retract();
    true
}

/// SYNC POINT `wake-up`: two producers, one consumer that sleeps whenever it finds nothing. A wake-up that gets lost leaves it
/// asleep, which loom reports.
#[test]
fn no_wake_up_is_lost() {
    bounded(2, || {
        let rings = Arc::new([Ring::new(1), Ring::new(1)]);
        let state: Words = Arc::default();
        let futex = Arc::new(Futex::default());
        let mut senders = Vec::new();
        for index in 0..2 {
            let (rings, state, futex) = (rings.clone(), state.clone(), futex.clone());
            senders.push(thread::spawn(move || {
                let mut producer = rings[index].producer(&state);
                assert_eq!(producer.has_room(), Ok(true));
                rings[index].put(&mut producer, 7);
                if producer.wake() == Wake::Yes {
                    futex.wake();
                }
            }));
        }
        let sleeper = Sleeper::new(state);
        let mut consumers = [rings[0].consumer(), rings[1].consumer()];
        let mut received = 0;
        while received < 2 {
            let before = received;
            for (ring, consumer) in rings.iter().zip(&mut consumers) {
                if consumer.find() == Ok(Found::One) {
                    assert_eq!(ring.take(consumer), 7);
                    received += 1;
                }
            }
            if received == before {
                assert!(sleep(&sleeper, &consumers, &futex));
            }
        }
        for sender in senders {
            sender.join().expect("no panic");
        }
    });
}

/// One producer and several descriptors, so that a wake-up races with the sleep after the one before.
#[test]
fn no_wake_up_is_lost_between_two_sleeps() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        let state: Words = Arc::default();
        let futex = Arc::new(Futex::default());
        let sender = {
            let (ring, state, futex) = (ring.clone(), state.clone(), futex.clone());
            thread::spawn(move || {
                let mut producer = ring.producer(&state);
                for value in 1..=2 {
                    ring.put(&mut producer, value);
                    if producer.wake() == Wake::Yes {
                        futex.wake();
                    }
                }
            })
        };
        let sleeper = Sleeper::new(state);
        let mut consumers = [ring.consumer()];
        for value in 1..=2 {
            while consumers[0].find() != Ok(Found::One) {
                assert!(sleep(&sleeper, &consumers, &futex));
            }
            assert_eq!(ring.take(&mut consumers[0]), value);
        }
        sender.join().expect("no panic");
    });
}

/// The server ends a producer while its consumer goes to sleep, and ends the consumer while a producer sends.
#[test]
fn an_end_is_noticed() {
    model(|| {
        let ring = Arc::new(Ring::new(1));
        let state: Words = Arc::default();
        let futex = Arc::new(Futex::default());
        let server = {
            let (ring, futex) = (ring.clone(), futex.clone());
            thread::spawn(move || {
                ring.head.fetch_or(CLOSED, Ordering::Release);
                futex.wake();
            })
        };
        let sleeper = Sleeper::new(state.clone());
        let mut consumers = [ring.consumer()];
        while consumers[0].find() != Ok(Found::Ended) {
            assert!(sleep(&sleeper, &consumers, &futex));
        }
        server.join().expect("no panic");
        state.store(ENDED, Ordering::Release);
        assert!(!sleep(&sleeper, &consumers, &futex));
        assert_eq!(ring.producer(&state).wake(), Wake::Gone);
    });
}

/// SYNC POINTS `pinned` and `unpinned`: nobody writes a table that a request follows.
#[test]
fn a_table_that_is_followed_is_not_written() {
    bounded(4, || {
        let pins = Arc::new(Pins::default());
        let tables: Arc<[UnsafeCell<u32>; 2]> = Arc::new([0; 2].map(UnsafeCell::new));
        let (others, read) = (pins.clone(), tables.clone());
        let request = thread::spawn(move || {
            let table = others.pin();
            // SAFETY: loom checks that nobody writes meanwhile; that is the test.
            read[table as usize].with(|table| unsafe { *table });
            others.unpin(table);
        });
        for _ in 0..2 {
            if let Some(table) = pins.retired() {
                // SAFETY: as above.
                tables[table as usize].with_mut(|table| unsafe { *table += 1 });
                pins.activate(table);
            }
        }
        request.join().expect("no panic");
        assert_eq!((pins.followers(Table::A), pins.followers(Table::B)), (0, 0));
    });
}

/// The model's own check: without the announcement a wake-up is lost, and the model finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_model_without_announcements_fails() {
    model(|| {
        let word: Words = Arc::default();
        let futex = Arc::new(Futex::default());
        let (other, wakes) = (word.clone(), futex.clone());
        let sender = thread::spawn(move || {
            let is_asleep = other.load(Ordering::Relaxed) == 2;
            other.store(1, Ordering::Release);
            if is_asleep {
                wakes.wake();
            }
        });
        if word.load(Ordering::Acquire) == 0 {
            futex.wait(&[(&word, 0)]);
        }
        sender.join().expect("no panic");
    });
}

/// A run that is freed and given out again as blocks, and as another run, beside a reader: a generation has one owner and one length, and
/// two threads that take what comes back never have the same block.
#[test]
fn a_generation_has_one_length() {
    model(|| {
        let entries = (0..2).map(|_| Entry::default()).collect::<Box<[_]>>();
        let accounts = Arc::new(Accounts::with_runs(entries, 0));
        let [first, second] = [1, 2].map(|id| Owner::Request { id, route: 0 });
        let (block, generation) = accounts.allocate_run(first, 2).expect("a run");
        let other = accounts.clone();
        let writer = thread::spawn(move || {
            assert!(other.free(block, generation, |_| {}).is_ok());
            let taken: Vec<_> = (0..2).filter_map(|_| other.allocate(second).ok()).collect();
            assert_eq!(taken.len(), 2, "both came back");
        });
        if let Ok(found) = accounts.used(block, generation) {
            assert_eq!((found.owner, found.blocks), (Some(first), 2));
        }
        if let Ok(found) = accounts.used(block, generation + 1) {
            assert_eq!((found.owner, found.blocks), (Some(second), 1));
        }
        writer.join().expect("no panic");
        assert_eq!(accounts.in_use(), 2);
    });
}

/// SYNC POINT `freed`, for runs: what the one before did to its blocks is done when another thread has any of them.
#[test]
fn a_run_is_with_one_thread() {
    model(|| {
        let entries = (0..2).map(|_| Entry::default()).collect::<Box<[_]>>();
        let accounts = Arc::new(Accounts::with_runs(entries, 0));
        let blocks: Arc<[UnsafeCell<u32>; 2]> = Arc::new([0; 2].map(UnsafeCell::new));
        let work = |accounts: Arc<Accounts<_>>, blocks: Arc<[UnsafeCell<u32>; 2]>, len: u32| {
            move || {
                let owner = Owner::Request { id: len, route: 0 };
                let Ok((block, generation)) = accounts.allocate_run(owner, len) else {
                    return;
                };
                for index in block..block + len {
                    // SAFETY: loom checks that nobody else accesses it meanwhile; that is the test.
                    blocks[index as usize].with_mut(|block| unsafe { *block += 1 });
                }
                assert!(accounts.free(block, generation, |_| {}).is_ok());
            }
        };
        let other = thread::spawn(work(accounts.clone(), blocks.clone(), 2));
        work(accounts.clone(), blocks, 1)();
        other.join().expect("no panic");
        assert_eq!(accounts.in_use(), 0);
        assert!(accounts.allocate_run(Owner::Gateway, 2).is_ok());
    });
}
