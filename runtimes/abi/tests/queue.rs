//! The channel against a plain queue: any sequence of sends, pieces, grants and receives, both ways, delivers every
//! frame once, in order, whole; says "full" only when it is; and sleeps only when there is nothing to do.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::os::fd::AsFd;

use hearth_abi::layout::{MIN_RING_BYTES, frame_bytes};
use hearth_abi::{Endpoint, Flags, Kind, Receiver, Region, Sender};
use proptest::prelude::*;

/// Kinds that may be sent, to tell frames apart.
const KINDS: [Kind; 4] = [
    Kind::RequestEvent,
    Kind::RequestBody,
    Kind::ResponseBody,
    Kind::ResponseError,
];

/// A frame as the queue holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    kind: Kind,
    more: bool,
    id: [u8; 16],
    payload: Vec<u8>,
}

/// One step on one of the two rings.
#[derive(Debug, Clone)]
enum Step {
    Send { len: usize, more: bool },
    Piece { len: usize, more: bool },
    Receive { how: u8 },
    Sleep { len: usize },
    WarmUp,
}

fn step() -> impl Strategy<Value = (bool, Step)> {
    // Small, around the largest frame, larger than the ring.
    let len = prop_oneof![0..100_usize, 1_600..1_900_usize, 0..10_000_usize];
    let step = prop_oneof![
        4 => (len.clone(), any::<bool>()).prop_map(|(len, more)| Step::Send { len, more }),
        3 => (len.clone(), any::<bool>()).prop_map(|(len, more)| Step::Piece { len, more }),
        8 => any::<u8>().prop_map(|how| Step::Receive { how }),
        2 => len.prop_map(|len| Step::Sleep { len }),
        2 => Just(Step::WarmUp),
    ];
    (any::<bool>(), step)
}

/// One ring and the queue it is compared with.
struct Pair<'a> {
    tx: &'a mut Sender,
    rx: &'a mut Receiver,
    queue: &'a mut VecDeque<Sent>,
    count: u64,
}

impl Pair<'_> {
    /// A frame of `len` bytes that no other step sends.
    fn fresh(&self, len: usize, more: bool) -> Sent {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.count.to_le_bytes());
        let kind = KINDS[self.count as usize % KINDS.len()];
        let payload = (0..len)
            .map(|index| (index as u64 ^ (self.count * 31)) as u8)
            .collect();
        Sent {
            kind,
            more,
            id,
            payload,
        }
    }

    /// Whether `len` bytes must fit: they need at most as much filler as frame.
    fn surely_fits(&self, len: usize) -> bool {
        let used: u64 = self
            .queue
            .iter()
            .map(|sent| frame_bytes(sent.payload.len() as u32))
            .sum();
        self.queue.is_empty() || used + 3 * frame_bytes(len as u32) <= u64::from(MIN_RING_BYTES) / 2
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Send { len, more } => self.send(len, more),
            Step::Piece { len, more } => self.piece(len, more),
            Step::Receive { how } => self.receive(how),
            Step::Sleep { len } => self.sleep(len),
            Step::WarmUp => self.tx.warm_up(),
        }
    }

    fn send(&mut self, len: usize, more: bool) {
        let sent = self.fresh(len, more);
        let outcome = self
            .tx
            .try_send(sent.kind, Flags::more(more), &sent.id, &sent.payload);
        if len > self.tx.max_payload() {
            outcome.expect_err("too long for a frame");
        } else if outcome.expect("a legal length") {
            self.queue.push_back(sent);
        } else {
            assert!(!self.surely_fits(len), "full, said a ring with room");
        }
    }

    fn piece(&mut self, len: usize, more: bool) {
        let mut sent = self.fresh(len, more);
        match self
            .tx
            .try_send_piece(sent.kind, &sent.id, &sent.payload, more)
            .expect("legal")
        {
            Some(taken) => {
                assert!(taken <= self.tx.max_payload() && (taken > 0 || len == 0));
                sent.more |= taken < len;
                sent.payload.truncate(taken);
                self.queue.push_back(sent);
            }
            None => assert!(!self.surely_fits(len.min(self.tx.max_payload()))),
        }
    }

    fn receive(&mut self, how: u8) {
        let Some(mut frame) = self.rx.try_recv().expect("an honest peer") else {
            assert!(self.queue.is_empty(), "a frame got lost");
            return;
        };
        let sent = self.queue.pop_front().expect("a frame out of nothing");
        assert_eq!(
            (frame.kind(), frame.flags().has_more(), *frame.id()),
            (sent.kind, sent.more, sent.id)
        );
        assert_eq!(frame.len(), sent.payload.len());
        match how % 4 {
            // Unread.
            0 => drop(frame),
            1 => {
                // SAFETY: both ends are this test's, and the sender does not run meanwhile.
                assert!(unsafe { frame.payload() }.expect("an honest peer") == sent.payload);
                frame.consume();
            }
            _ => {
                let mut copy = vec![1];
                frame.copy_to(&mut copy).expect("an honest peer");
                assert!(copy[1..] == sent.payload);
            }
        }
    }

    /// Announcements are made exactly when there is nothing to do, and taken once, by the next that is published.
    fn sleep(&mut self, len: usize) {
        let empty = self.queue.is_empty();
        assert_eq!(self.rx.prepare_wait(), empty);
        let _ = self.tx.bell_needed();
        if empty {
            assert!(self.rx.prepare_wait());
            self.send(0, false);
            assert!(self.tx.bell_needed());
            self.receive(2);
        }
        assert!(!self.tx.bell_needed());

        let len = len.min(self.tx.max_payload());
        let _ = self.rx.bell_needed();
        let mut asleep = self.tx.prepare_wait(len);
        assert!(!asleep || !self.surely_fits(len));
        while asleep {
            assert!(
                !self.queue.is_empty(),
                "asleep, and the ring has all the room there is"
            );
            self.receive(2);
            if self.rx.bell_needed() {
                asleep = self.tx.prepare_wait(len);
            }
        }
        assert!(!self.rx.bell_needed());
        let before = self.queue.len();
        self.send(len, false);
        assert!(self.queue.len() > before, "woken where there is no room");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn the_channel_is_two_queues(steps in prop::collection::vec(step(), 1..300)) {
        let (region, fd) = Region::create(MIN_RING_BYTES).expect("a region");
        let mut worker: Endpoint = Region::attach(fd.as_fd()).expect("the region").worker();
        let mut host = region.host();
        let mut queues = [VecDeque::new(), VecDeque::new()];
        let drain = (0..400).map(|index| (index % 2 == 0, Step::Receive { how: 2 }));
        for (count, (to_worker, step)) in (0..).zip(steps.into_iter().chain(drain)) {
            let [down, up] = &mut queues;
            let mut pair = if to_worker {
                Pair { tx: &mut host.tx, rx: &mut worker.rx, queue: down, count }
            } else {
                Pair { tx: &mut worker.tx, rx: &mut host.rx, queue: up, count }
            };
            pair.apply(step);
        }
        prop_assert!(queues.iter().all(VecDeque::is_empty));
    }
}
