//! Payloads in place: the request's block, as a handler has it that wants no copy.

pub use hearth_chain::LeftCopy;
use hearth_chain::{Payload, Refused};

use super::{CallError, ChainMember, Current, MemberError};

/// Where a payload lies that is to be sent.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// In memory of this process's own, from which it is copied into the block.
    Bytes(&'a [u8]),
    /// In the block: so many bytes from its beginning.
    InPlace(usize),
}

impl Content<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::InPlace(len) => *len,
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes it a block's payload; its length.
    pub(super) fn put(self, block: &mut Payload<'_>) -> Result<u32, Refused> {
        match self {
            Self::Bytes(bytes) => block.write(bytes),
            Self::InPlace(len) => block.resize(len),
        }
    }
}

/// A block that this instance has in hand: the whole of it may be read and written until it is passed on. Other members of the
/// chain could write to it too, if they broke the rules.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Its first byte.
    pub at: *mut u8,
    /// Bytes of the payload.
    pub len: usize,
    /// Bytes of the block, or of its run.
    pub capacity: usize,
}

impl ChainMember {
    /// The block of the request in hand, with the payload in it; none once it is passed on.
    #[must_use]
    pub fn block(&self) -> Option<Area> {
        let descriptor = &self.current.as_ref()?.descriptor;
        // It was checked when it came, and no one takes it away while it is here: of a request that is given up, the gateway
        // waits for the block.
        Some(self.area(descriptor.block, descriptor.len as usize))
    }

    /// The number of that block.
    #[must_use]
    pub fn block_number(&self) -> Option<u32> {
        self.current.map(|current| current.descriptor.block)
    }

    /// Whether [`Self::send_ahead`] would pass this on to this member, if there is room.
    ///
    /// # Errors
    /// [`CallError`], which it would return.
    pub fn may_send_ahead(&self, name: &str, payload: Content<'_>) -> Result<(), CallError> {
        self.place_ahead(name, payload).map(drop)
    }

    /// Whether this could be the payload of a request in hand, if there is room.
    ///
    /// # Errors
    /// It could not, or there is no request.
    pub fn may_respond(&self, payload: Content<'_>) -> Result<(), CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        Self::check_size(payload.len(), self.limit(&current, payload))
    }

    /// How many bytes a payload may have: what is in place cannot be moved to more room.
    pub(super) fn limit(&self, current: &Current, payload: Content<'_>) -> u32 {
        match payload {
            Content::Bytes(_) => self.pool.shape().payload_bytes(),
            Content::InPlace(_) => self.pool.room(current.descriptor.block),
        }
    }

    pub(super) fn check_size(bytes: usize, limit: u32) -> Result<(), CallError> {
        let limit = limit as usize;
        match bytes <= limit {
            true => Ok(()),
            false => Err(CallError::TooLarge { bytes, limit }),
        }
    }

    /// Takes these blocks, with their runs, from whoever has kept their addresses: what is there from now on are private copies, in the order of
    /// the blocks. All other blocks have other addresses, too.
    ///
    /// # Errors
    /// There is no memory; the blocks must not be passed on.
    pub fn take_from_keepers(
        &mut self,
        blocks: &mut Vec<u32>,
    ) -> Result<Vec<LeftCopy>, MemberError> {
        Ok(self.pool.leave_copies(blocks)?)
    }

    pub(super) fn area(&self, block: u32, len: usize) -> Area {
        Area {
            at: self.pool.address(block),
            len,
            capacity: self.pool.room(block) as usize,
        }
    }
}
