//! Payloads in place: the request's block, as a handler has it that wants no copy.

pub use hearth_chain::LeftCopy;
use hearth_chain::{Payload, Refused};

use super::{CallError, ChainMember, MemberError};

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
    /// Bytes of the block.
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

    /// Whether [`Self::send_ahead`] would pass so many bytes on to this member.
    ///
    /// # Errors
    /// [`CallError`], which it would return.
    pub fn may_send_ahead(&self, name: &str, bytes: usize) -> Result<(), CallError> {
        self.place_ahead(name, bytes).map(drop)
    }

    /// Whether so many bytes could be the payload of a request in hand.
    ///
    /// # Errors
    /// They could not, or there is no request.
    pub fn may_respond(&self, bytes: usize) -> Result<(), CallError> {
        self.current.ok_or(CallError::NoRequest)?;
        self.check_size(bytes)
    }

    pub(super) fn check_size(&self, bytes: usize) -> Result<(), CallError> {
        let limit = self.pool.shape().block_bytes() as usize;
        match bytes <= limit {
            true => Ok(()),
            false => Err(CallError::TooLarge { bytes, limit }),
        }
    }

    /// Takes these blocks from whoever has kept their addresses: what is there from now on are private copies, in the order of
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
            capacity: self.pool.shape().block_bytes() as usize,
        }
    }
}
