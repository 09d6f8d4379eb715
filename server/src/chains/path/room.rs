//! Requests whose results need more room than they have: a member gives the block back and says how many bytes it needs, and gets a run
//! that has as many, with what was in the block; or the block again, if the pool has none.

use hearth_chain::{Block, Descriptor, Instance, Kind, SendError};

use super::Path;
use super::pending::{Came, Entry};
use super::seats::Wrong;

impl Path {
    /// Does what a member asks for with a descriptor whose block is its request's.
    pub(super) fn give_room(&self, from: Instance, descriptor: &Descriptor) -> Result<(), Wrong> {
        let (request, old) = (descriptor.request, Block::of(descriptor));
        let is_given_up = self.pending.with(request, Entry::is_given_up);
        let is_given_up = is_given_up.ok_or(Wrong::Stray)?;
        if descriptor.len == 0 {
            // It has waited until the request's time was up.
            if is_given_up {
                return self.end_asking(request, String::new());
            }
            // Which is noticed here, too.
            self.note(&Descriptor {
                target: Instance::GATEWAY,
                ..*descriptor
            });
            return Ok(());
        }
        let room = self.pool.room(old).map_err(|_| Wrong::Stray)?;
        if descriptor.len <= room || descriptor.len > self.pool.shape().payload_bytes() {
            let fault = "it asked for room that its request has, or that no request may have";
            return Err(Wrong::Rule(fault.to_owned()));
        }
        let bytes = descriptor.len as usize;
        let larger = match is_given_up {
            // The member is not to wait, and whatever comes back ends it.
            true => None,
            false => self.pool.allocate_for(descriptor.owner(), bytes).ok(),
        };
        let (block, kind) = match larger {
            Some(larger) => {
                if self.pool.copy(old, larger).is_err()
                    || !self.pending.move_to(request, old, larger)
                {
                    // Somebody else has ended it since.
                    let _ = self.pool.free(larger);
                    return Err(Wrong::Stray);
                }
                // Nobody has it in hand.
                let _ = self.pool.free(old);
                (larger, Kind::Grant)
            }
            None => (old, Kind::Failure),
        };
        let answer = Descriptor {
            target: from,
            block: block.index,
            generation: block.generation,
            len: 0,
            kind,
            ..*descriptor
        };
        self.note(&answer);
        match self.carry.sending().send(&answer) {
            // What could not be woken looks at its ring all the same, if late.
            Ok(()) | Err(SendError::Os { .. }) => Ok(()),
            Err(error) => self.end_asking(request, error.to_string()),
        }
    }

    /// Ends a request of which no member has anything.
    fn end_asking(&self, request: u32, reason: String) -> Result<(), Wrong> {
        let entry = self.pending.remove(request).ok_or(Wrong::Stray)?;
        let member = self.holding(entry.block).map(|note| note.holder);
        let member = self.member_of(member.unwrap_or(Instance::GATEWAY));
        let member = self.name(member).to_string();
        entry.end(self, Came::Ended { member, reason });
        Ok(())
    }
}
