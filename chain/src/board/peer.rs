//! A peer's board: what it says is a claim, loaded once and checked by whoever uses it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{BEGUN, CURRENT, LATEST, LOAD, REFUSED, Shape, TURN, WAKE_UP};
use crate::error::ChainError;
use crate::file::File;
use crate::memory::{Memory, ReadOnly, Seen};
use crate::slots::Slots;
use crate::sync::PeerWord;

/// A peer's board, to read.
#[derive(Debug)]
pub struct PeerBoard {
    shape: Shape,
    memory: Arc<Memory<ReadOnly>>,
}

impl PeerBoard {
    /// Maps a peer's board.
    ///
    /// # Errors
    /// The file is no board of this shape, or mapping it fails.
    pub fn attach(fd: OwnedFd, shape: Shape) -> Result<Self, ChainError> {
        let file = File::passed("board", fd, Some(shape.bytes()))?;
        Ok(Self {
            shape,
            memory: file.map_read_only()?,
        })
    }

    /// How many requests the instance says it has in hand: a claim, which sends it more or less of its chain's requests and
    /// nothing else.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.memory.peer_word(LOAD).load()
    }

    /// Which request the instance says it handles; 0 if none.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.memory.peer_word(CURRENT).load()
    }

    /// Which request the instance says it began last; 0 if none.
    #[must_use]
    pub fn begun(&self) -> u32 {
        self.memory.peer_word(BEGUN).load()
    }

    /// How many descriptors the instance says it has refused.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.memory.peer_word(REFUSED).load()
    }

    pub(crate) fn slots_per_output(&self) -> u32 {
        self.shape.slots()
    }

    pub(crate) fn turn(&self) -> Seen<ReadOnly> {
        self.memory.peer_word(TURN)
    }

    pub(crate) fn wake_up(&self) -> Seen<ReadOnly> {
        self.memory.peer_word(WAKE_UP)
    }

    pub(crate) fn state(&self) -> Seen<ReadOnly> {
        self.memory.peer_word(0)
    }

    pub(crate) fn tail(&self, input: u16) -> Result<Seen<ReadOnly>, ChainError> {
        Ok(self.memory.peer_word(self.shape.tail(input)?))
    }

    pub(crate) fn head(&self, output: u16) -> Result<Seen<ReadOnly>, ChainError> {
        Ok(self.memory.peer_word(self.shape.head(output)?))
    }

    pub(crate) fn slots(&self, output: u16) -> Result<Slots<ReadOnly>, ChainError> {
        Ok(Slots::new(
            &self.memory,
            self.shape.slots_at(output),
            self.shape.head(output)? + LATEST,
        ))
    }
}
