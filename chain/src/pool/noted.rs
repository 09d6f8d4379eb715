//! What is noted in the blocks, for members to know and by them.

use super::{Block, Pool};
use crate::envelope::Envelope;
use crate::error::Refused;
use crate::id::{Instance, Owner};
use crate::notes::{self, Note};
use crate::trace::Stay;

impl Pool {
    /// Says of a request's first block what its members have to know, and forgets their stays in an earlier use.
    pub fn describe(&self, block: Block, envelope: &Envelope) {
        notes::describe(&self.memory, self.shape, block.index, envelope);
    }

    /// Copies a payload to another run: what is in the block, or its run, and what is said of it.
    ///
    /// # Errors
    /// One of them is not in use, or the second is smaller.
    pub fn copy(&self, from: Block, to: Block) -> Result<(), Refused> {
        let from_bytes = self.range(from, self.room(from)?)?;
        let len = from_bytes.len() as u32;
        let to_bytes = self.range(to, len)?;
        self.memory.copy(from_bytes, to_bytes.start);
        notes::copy(&self.memory, self.shape, from.index, to.index);
        Ok(())
    }

    /// The stays that members have noted, in their order: claims.
    ///
    /// # Errors
    /// The block is not in use.
    pub fn stays(&self, block: Block) -> Result<Vec<Stay>, Refused> {
        self.accounts.owner(block.index, block.generation)?;
        Ok(notes::stays(&self.memory, self.shape, block.index))
    }

    /// Notes to whom a block is passed on.
    pub fn note(&self, block: Block, note: Note) {
        if block.index < self.shape.blocks() {
            self.memory
                .store(self.shape.note_of(block.index), note.pack());
        }
    }

    /// What members say of a block: for the hop that a request reached.
    ///
    /// # Errors
    /// The block is not in use.
    pub fn noted(&self, block: Block) -> Result<Note, Refused> {
        self.accounts.owner(block.index, block.generation)?;
        Ok(Note::unpack(
            self.memory.load(self.shape.note_of(block.index)),
        ))
    }

    /// The owners of the blocks that, as members say, an instance had in hand or on its rings: the requests to fail now
    /// that it has ended.
    #[must_use]
    pub fn held_by(&self, holder: Instance, epoch: u16) -> Vec<Owner> {
        let mut owners = Vec::new();
        for index in 0..self.shape.blocks() {
            let note = Note::unpack(self.memory.load(self.shape.note_of(index)));
            if note.holder != holder || note.epoch != epoch {
                continue;
            }
            if let Some(owner) = self.accounts.current_owner(index)
                && !owners.contains(&owner)
            {
                owners.push(owner);
            }
        }
        owners
    }
}
