//! What an instance receives: the outputs of its peers' boards.

use std::sync::atomic::Ordering;

use crate::board::{Board, MAX_OPEN_INPUTS, PeerBoard};
use crate::descriptor::Descriptor;
use crate::error::{ChainError, RecvError, Refused};
use crate::futex;
use crate::id::Instance;
use crate::memory::{Own, ReadOnly, Seen};
use crate::near::WakeUp;
use crate::ring::{Consumer, Found};
use crate::sleeper::{ASLEEP, Sleeper};
use crate::slots::Slots;
use crate::sync::PeerWord as _;
use rustix::thread::futex::Wait;

/// A descriptor, and who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The sender, as the transport knows it.
    pub from: Instance,
    /// What it sent.
    pub descriptor: Descriptor,
}

/// One edge's end.
#[derive(Debug)]
struct Input {
    number: u16,
    from: Instance,
    ring: Consumer<Own, Seen<ReadOnly>>,
    slots: Slots<ReadOnly>,
    /// When and where the peer says that it woke somebody.
    wake_up: Seen<ReadOnly>,
}

/// The receiving half of an instance's edges.
#[derive(Debug)]
pub struct Inbox {
    me: Instance,
    inputs: Vec<Input>,
    /// The input that is looked at first, so that no peer is heard before the others time and again.
    next: usize,
    sleeper: Sleeper<Own>,
    /// The server's notices, and how many were taken.
    notices: Own,
    noticed: u32,
}

impl Inbox {
    /// Of an instance and its own board, without edges.
    #[must_use]
    pub fn new(me: Instance, board: &Board) -> Self {
        Self {
            me,
            inputs: Vec::new(),
            next: 0,
            sleeper: Sleeper::new(board.state()),
            notices: board.notices(),
            noticed: 0,
        }
    }

    /// Opens an edge: `input` of the own board reads `output` of the peer's.
    ///
    /// # Errors
    /// One of them does not exist, or the input is in use, or as many are open as can be.
    pub fn open(
        &mut self,
        board: &Board,
        input: u16,
        from: Instance,
        peer: &PeerBoard,
        output: u16,
    ) -> Result<(), ChainError> {
        let is_full = self.inputs.len() >= MAX_OPEN_INPUTS;
        if is_full || self.inputs.iter().any(|other| other.number == input) {
            return Err(ChainError::Taken {
                what: "input",
                number: input,
            });
        }
        let ring = Consumer::new(
            peer.head(output)?,
            board.tail(input)?,
            peer.slots_per_output(),
        );
        self.inputs.push(Input {
            number: input,
            from,
            ring,
            slots: peer.slots(output)?,
            wake_up: peer.wake_up(),
        });
        Ok(())
    }

    /// Closes an edge; whether there was one. What has not been received is not.
    pub fn close(&mut self, input: u16) -> bool {
        let found = self.inputs.iter().position(|other| other.number == input);
        found.map(|at| self.remove(at)).is_some()
    }

    fn remove(&mut self, at: usize) {
        self.inputs.remove(at).ring.reset();
    }

    /// The next descriptor, if there is one: of each peer in turn.
    ///
    /// # Errors
    /// A peer has ended, or broke its ring, and its edge is closed; or it sent what is no descriptor for this instance. Each is
    /// reported once, and the next call goes on with the others.
    pub fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        let inputs = self.inputs.len();
        let mut next = self.next;
        for _ in 0..inputs {
            // Not by a division, which takes as long as all else here.
            let at = if next < inputs { next } else { 0 };
            next = at + 1;
            let input = &mut self.inputs[at];
            let from = input.from;
            match input.ring.find() {
                Ok(Found::Nothing) => {}
                Ok(Found::One) => {
                    let words = input.slots.read(input.ring.slot(), input.ring.newest());
                    input.ring.take();
                    self.next = at + 1;
                    return self.read(from, words).map(Some);
                }
                Ok(Found::Ended) => {
                    self.remove(at);
                    return Err(RecvError::Gone(from));
                }
                Err(violation) => {
                    self.remove(at);
                    return Err(RecvError::Broken { from, violation });
                }
            }
        }
        Ok(None)
    }

    fn read(&self, from: Instance, words: [u64; 2]) -> Result<Arrival, RecvError> {
        let refuse = |refused| RecvError::Refused { from, refused };
        let descriptor = Descriptor::from_words(words).map_err(refuse)?;
        if descriptor.target != self.me {
            return Err(refuse(Refused::Misdelivered(descriptor.target)));
        }
        Ok(Arrival { from, descriptor })
    }

    /// When and where a peer says that it last woke somebody.
    pub(crate) fn wake_up(&self, from: Instance) -> Option<WakeUp> {
        let input = self.inputs.iter().find(|input| input.from == from)?;
        Some(WakeUp::unpack(input.wake_up.load()))
    }

    /// Whether [`Self::try_recv`] or [`Self::take_notice`] has anything to say. Touches no word that changes unless a peer or the
    /// server changes it.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inputs.iter().any(|input| input.ring.is_ready())
            || self.notices.load(Ordering::Relaxed) != self.noticed
    }

    /// Whether the server has told this instance to look at its control socket since this was last asked.
    #[inline]
    pub fn take_notice(&mut self) -> bool {
        let notices = self.notices.load(Ordering::Acquire);
        let is_new = notices != self.noticed;
        self.noticed = notices;
        is_new
    }

    /// Announces that this side is about to sleep: from now on peers wake it, by a futex or by their bells. `false`: do not sleep,
    /// look. After a sleep, and after `false`, call [`Self::retract`].
    ///
    /// # Errors
    /// The server has closed this instance's board.
    pub fn announce(&self) -> Result<bool, RecvError> {
        if self.sleeper.announce() {
            Ok(!self.is_ready())
        } else {
            Err(RecvError::Closed)
        }
    }

    /// Takes the announcement back. `false`: a [`crate::Waker`] or the server has, to end the wait.
    pub fn retract(&self) -> bool {
        self.sleeper.retract()
    }

    /// The words to sleep on between [`Self::announce`] and [`Self::retract`]. They stay mapped while `self` is as it is.
    pub(crate) fn waiters(&self) -> Vec<Wait> {
        let own = futex::waiter(self.sleeper.state(), ASLEEP);
        let inputs = self.inputs.iter();
        let notices = futex::waiter(&raw const *self.notices, self.noticed);
        let heads =
            inputs.map(|input| futex::waiter(input.ring.head().address(), input.ring.nothing()));
        [own, notices].into_iter().chain(heads).collect()
    }
}
