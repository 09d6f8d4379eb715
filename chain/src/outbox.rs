//! What an instance sends: the outputs of its own board.

use std::sync::atomic::Ordering;

use hearth_abi::{AbiError, Bell};

use crate::board::{Board, PeerBoard};
use crate::descriptor::Descriptor;
use crate::error::{ChainError, SendError};
use crate::futex;
use crate::id::Instance;
use crate::memory::{Own, ReadOnly, Seen, Writable};
use crate::near::WakeUp;
use crate::ring::{Producer, Wake};
use crate::slots::Slots;

/// One edge's beginning.
#[derive(Debug)]
struct Output {
    number: u16,
    to: Instance,
    ring: Producer<Own, Seen<ReadOnly>>,
    slots: Slots<Writable>,
    /// For a receiver that waits with epoll, as the gateway does; the others sleep on the ring itself.
    bell: Option<Bell>,
    /// Where to say when and where this instance wakes the peer.
    wake_up: Own,
}

/// The sending half of an instance's edges.
#[derive(Debug)]
pub struct Outbox {
    outputs: Vec<Output>,
}

impl Outbox {
    /// Of an instance without edges.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            outputs: Vec::new(),
        }
    }

    /// Opens an edge: `output` of the own board is read by `input` of the peer's. A peer that waits with epoll has a `bell` for
    /// each of its senders, so that none can drain or block another's.
    ///
    /// # Errors
    /// One of them does not exist or is in use, or there is an edge to this peer.
    pub fn open(
        &mut self,
        board: &Board,
        output: u16,
        to: Instance,
        peer: &PeerBoard,
        input: u16,
        bell: Option<Bell>,
    ) -> Result<(), ChainError> {
        if self
            .outputs
            .iter()
            .any(|other| other.number == output || other.to == to)
        {
            return Err(ChainError::Taken {
                what: "output",
                number: output,
            });
        }
        let ring = Producer::new(
            board.head(output)?,
            peer.tail(input)?,
            peer.state(),
            board.shape().slots(),
        );
        self.outputs.push(Output {
            number: output,
            to,
            ring,
            slots: board.slots(output)?,
            bell,
            wake_up: board.wake_up(),
        });
        Ok(())
    }

    /// Closes an edge; whether there was one.
    pub fn close(&mut self, output: u16) -> bool {
        let found = self.outputs.iter().position(|other| other.number == output);
        found.map(|at| self.remove(at)).is_some()
    }

    fn remove(&mut self, at: usize) {
        self.outputs.remove(at).ring.reset();
    }

    /// Sends a descriptor to `descriptor.target`, and wakes it if it sleeps. Does not wait.
    ///
    /// # Errors
    /// There is no edge, the ring is full, or the peer has ended or broke the ring; the edge to one that has ended or
    /// broke it is closed. In all cases but a system call's the descriptor was not handed over, and the block is still the caller's.
    pub fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        let words = descriptor.to_words().map_err(SendError::Unencodable)?;
        let to = descriptor.target;
        let at = self.position(to).ok_or(SendError::NoEdge(to))?;
        let output = &mut self.outputs[at];
        match output.ring.has_room() {
            Ok(true) => {}
            Ok(false) => return Err(SendError::Full(to)),
            Err(violation) => {
                self.remove(at);
                return Err(SendError::Broken { to, violation });
            }
        }
        let (slot, after) = (output.ring.slot(), output.ring.next());
        output.slots.write(slot, after, words);
        output.ring.publish();
        match output.ring.wake() {
            Wake::No => Ok(()),
            Wake::Yes => output.wake(),
            Wake::Gone => {
                self.remove(at);
                Err(SendError::Gone(to))
            }
        }
    }

    /// Descriptors on the way to a peer that it has not taken; none if there is no edge, or its position cannot be true.
    pub fn backlog(&mut self, to: Instance) -> Option<u32> {
        let at = self.position(to)?;
        let ring = &mut self.outputs[at].ring;
        ring.look().ok()?;
        Some(ring.backlog())
    }

    #[inline]
    fn position(&self, to: Instance) -> Option<usize> {
        self.outputs.iter().position(|output| output.to == to)
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    fn wake(&self) -> Result<(), SendError> {
        let Some(bell) = &self.bell else {
            self.wake_up.store(WakeUp::now().pack(), Ordering::Relaxed);
            return futex::wake(self.ring.head()).map_err(|source| SendError::Os {
                call: "futex(FUTEX_WAKE)",
                source,
            });
        };
        match bell.ring() {
            Ok(()) => Ok(()),
            // A bell's other end closes only with its process: the server tells the rest.
            Err(AbiError::PeerGone) => Err(SendError::Gone(self.to)),
            Err(AbiError::Os { call, source }) => Err(SendError::Os { call, source }),
            Err(other) => Err(SendError::Os {
                call: "a bell",
                source: std::io::Error::other(other),
            }),
        }
    }
}
