//! One edge's beginning: how much is under way, on the boards as with rings.

use super::stream::{Sent, Stream};
use crate::board::{Board, PeerBoard};
use crate::error::{ChainError, SendError};
use crate::id::Instance;
use crate::memory::{Own, ReadOnly, Seen};
use crate::ring::{CLOSED, Producer, Wake};

/// The bits of a count.
pub(super) const POSITION: u32 = CLOSED - 1;

/// See the module.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) number: u16,
    pub(super) to: Instance,
    /// Of its ring only the positions are used: the descriptor travels by the socket.
    ring: Producer<Own, Seen<ReadOnly>>,
}

impl Output {
    pub(super) fn open(
        board: &Board,
        number: u16,
        to: Instance,
        peer: &PeerBoard,
        input: u16,
    ) -> Result<Self, ChainError> {
        let slots = board.shape().slots();
        Ok(Self {
            number,
            to,
            ring: Producer::new(board.head(number)?, peer.tail(input)?, peer.state(), slots),
        })
    }

    /// Sends a descriptor's words by the socket. Does not wait.
    pub(super) fn send(&mut self, stream: &Stream, words: [u64; 2]) -> Result<(), SendError> {
        let to = self.to;
        match self.ring.has_room() {
            Ok(true) => {}
            Ok(false) => return Err(SendError::Full(to)),
            Err(violation) => return Err(SendError::Broken { to, violation }),
        }
        if self.ring.wake() == Wake::Gone {
            return Err(SendError::Gone(to));
        }
        match stream.send(words) {
            Sent::Yes => {
                self.ring.publish();
                Ok(())
            }
            Sent::Full => Err(SendError::Full(to)),
            Sent::Gone => Err(SendError::Gone(to)),
            Sent::Failed(source) => Err(SendError::Os {
                call: "send",
                source,
            }),
        }
    }

    /// Descriptors that the peer has not taken; none if its count cannot be true.
    pub(super) fn backlog(&mut self) -> Option<u32> {
        self.ring.look().ok()?;
        Some(self.ring.backlog())
    }

    /// Leaves the words as fresh ones.
    pub(super) fn reset(&self) {
        self.ring.reset();
    }
}
