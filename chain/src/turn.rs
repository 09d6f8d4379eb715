//! Who looks for what comes next before it sleeps, where a chain has more instances than the host has processors for them: one
//! at a time.
//!
//! An instance that looks keeps a processor from the next one of the route. So whoever has passed a request on (not: called) sleeps at once, and
//! the next one runs in its place: to be woken where somebody has just been busy takes a few microseconds, on a processor that
//! has halted it takes tens. Whoever answers the gateway wakes one of those to which the gateway sends, and sleeps as well: that one
//! looks for the next request.
//!
//! They wait for their turn by a futex on a word of the gateway's board, which all instances can read and none can write. Whoever
//! wakes it too often makes the others look in vain, which [`hearth_abi::spin::AdaptiveSpin`] bounds.

use rustix::thread::futex::Wait;

use crate::descriptor::{Descriptor, Kind};
use crate::futex;
use crate::id::Instance;
use crate::memory::{ReadOnly, Seen};
use crate::sync::PeerWord as _;

/// An instance's part in it.
#[derive(Debug)]
pub(crate) struct Turn {
    word: Seen<ReadOnly>,
    /// The last request came from the gateway.
    is_first: bool,
    /// It is somebody else's turn.
    rests: bool,
}

impl Turn {
    /// Of an instance that has not received anything, by the word of the gateway's board.
    pub(crate) const fn new(word: Seen<ReadOnly>) -> Self {
        Self {
            word,
            is_first: false,
            rests: false,
        }
    }

    /// Whether it is somebody else's turn now.
    pub(crate) fn rests(&self) -> bool {
        self.rests
    }

    /// Whether this instance gets the turn after the end of a request.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Something has come.
    pub(crate) fn received(&mut self, from: Instance, descriptor: &Descriptor) {
        self.rests = false;
        if descriptor.kind == Kind::Pass {
            self.is_first = from == Instance::GATEWAY;
        }
    }

    /// Something has been sent.
    pub(crate) fn sent(&mut self, descriptor: &Descriptor) {
        if descriptor.target != Instance::GATEWAY {
            // Who calls waits for the reply, and who replies may be called again: of both it may be worth looking.
            self.rests = descriptor.kind == Kind::Pass;
        } else if ends(descriptor.kind) && !self.is_first {
            self.rests = true;
            // It fails for bad addresses only.
            let _ = futex::wake_one(self.word.as_atomic());
        }
    }

    /// The word to wait on.
    pub(crate) fn waiter(&self) -> Wait {
        futex::waiter(self.word.address(), self.word.load())
    }
}

/// Whether the gateway answers by it: after others it has something for the instance.
const fn ends(kind: Kind) -> bool {
    matches!(kind, Kind::Pass | Kind::End | Kind::Failure)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::board::{Board, PeerBoard, Shape};
    use crate::futex::Woken;

    fn turns<const N: usize>() -> [Turn; N] {
        let shape = Shape::new(1, 1, 8).expect("a shape");
        let gateway = Board::create(shape).expect("a board");
        [(); N].map(|()| {
            let seen = gateway.for_peer().expect("a descriptor");
            Turn::new(PeerBoard::attach(seen, shape).expect("the board").turn())
        })
    }

    fn to(target: Instance, kind: Kind) -> Descriptor {
        Descriptor::for_test(target, kind)
    }

    const PEER: Instance = Instance(2);

    #[test]
    fn whoever_passes_a_request_on_rests_until_something_comes() {
        let [mut turn] = turns();
        turn.received(Instance::GATEWAY, &to(PEER, Kind::Pass));
        assert!(turn.is_first() && !turn.rests());
        turn.sent(&to(PEER, Kind::Call));
        assert!(!turn.rests(), "the reply may come soon");
        turn.sent(&to(PEER, Kind::Pass));
        assert!(turn.rests());
        turn.received(PEER, &to(PEER, Kind::Call));
        assert!(!turn.rests() && turn.is_first(), "requests still come here");
        turn.sent(&to(Instance::GATEWAY, Kind::Return));
        assert!(!turn.rests(), "the gateway answers that at once");
        turn.sent(&to(Instance::GATEWAY, Kind::End));
        assert!(!turn.rests(), "the next request is for this one");
    }

    #[test]
    fn whoever_answers_gives_the_turn_to_one_that_waits_for_it() {
        let [waiting, mut last] = turns();
        last.received(PEER, &to(PEER, Kind::Pass));
        let asleep = std::thread::spawn(move || {
            let far = Instant::now() + Duration::from_secs(60);
            futex::wait(&[waiting.waiter()], far).expect("a sleep")
        });
        // It sleeps at some point, and until then there is nobody to wake.
        while !asleep.is_finished() {
            last.sent(&to(Instance::GATEWAY, Kind::End));
            std::thread::yield_now();
        }
        assert!(last.rests());
        assert_eq!(asleep.join().expect("no panic"), Woken::By(0));
    }
}
