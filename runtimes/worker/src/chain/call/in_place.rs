//! Calls whose payload is written in place, and whose result is read there: the handler has the block before and after.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{CallError, Granted};
use crate::chain::{Area, ChainMember, Content};

/// A block of this instance's own in a handler's hand, or a run that it was lent in its place. When this is dropped, other calls may
/// use the block.
#[derive(Debug)]
pub struct Held {
    block: u32,
    _hold: Arc<()>,
}

impl Held {
    /// The number of a call with it.
    #[must_use]
    pub fn call(&self) -> u32 {
        self.block
    }
}

/// Where a call's result is, and how many bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// Where the payload was.
    InPlace(usize),
    /// In a run of its own, since there was not room enough.
    Moved(usize),
}

impl Returned {
    /// Bytes of the result.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::InPlace(len) | Self::Moved(len) => len,
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl ChainMember {
    /// Takes room for a call, of a block at least. Its payload is empty; the memory is zero, or what an earlier call for the same request
    /// left there.
    ///
    /// # Errors
    /// There is no request to make calls for, or no block is free, or no run of so many bytes.
    pub fn hold_block(&mut self, control: &OwnedFd, bytes: usize) -> Result<Held, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        Self::check_size(bytes, self.pool.shape().payload_bytes())?;
        let at = self.free_block(&current)?;
        self.lend(control, &current, at, bytes)?;
        let granted = &self.granted[at];
        Ok(Held {
            block: granted.descriptor.block,
            _hold: Arc::clone(&granted.hold),
        })
    }

    /// Where a held block lies, with a payload of so many bytes; after a call whose result was moved, the result. It is the holder's
    /// but while a call is under way.
    #[must_use]
    pub fn area_of(&self, held: &Held, len: usize) -> Area {
        self.area(self.block_of(held), len)
    }

    /// The number of the block, or of the first of the run.
    #[must_use]
    pub fn block_of(&self, held: &Held) -> u32 {
        let is_it = |granted: &&Granted| granted.descriptor.block == held.block;
        let granted = self.granted.iter().find(is_it);
        granted.map_or(held.block, |granted| granted.place().block)
    }

    /// Calls a member with the first `len` bytes of a held block and waits. After an error the block must be dropped: the other
    /// member may still have it in hand.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call_in_place(
        &mut self,
        control: &OwnedFd,
        name: &str,
        held: &Held,
        len: usize,
    ) -> Result<Returned, CallError> {
        let call = self.begin_call_in_place(control, name, held, len)?;
        self.finish_call_in_place(control, call)
    }

    /// Begins such a call; its number, for [`Self::finish_call_in_place`].
    ///
    /// # Errors
    /// [`CallError`]; nothing was called.
    pub fn begin_call_in_place(
        &mut self,
        control: &OwnedFd,
        name: &str,
        held: &Held,
        len: usize,
    ) -> Result<u32, CallError> {
        self.begin_call_of(control, name, held, Content::InPlace(len))
    }

    /// Begins a call with what is in a held block, or is put there.
    ///
    /// # Errors
    /// [`CallError`]; nothing was called.
    pub fn begin_call_of(
        &mut self,
        control: &OwnedFd,
        name: &str,
        held: &Held,
        payload: Content<'_>,
    ) -> Result<u32, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let member = self.callable(&current, name)?;
        Self::check_size(payload.len(), self.pool.room(self.block_of(held)))?;
        let is_it = |granted: &Granted| granted.descriptor.block == held.block;
        let at = self.granted.iter().position(is_it);
        // One that a call is under way with is not the handler's.
        let at = at.filter(|&at| self.granted[at].call.is_none());
        let at = at.ok_or(CallError::NoBlock)?;
        self.call(control, &current, member, at, payload)
    }

    /// Waits for a call's result. One that was moved is at [`Self::area_of`] until it is copied out ([`Self::take_moved`]) or the
    /// block is used again.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn finish_call_in_place(
        &mut self,
        control: &OwnedFd,
        call: u32,
    ) -> Result<Returned, CallError> {
        let (_, returned) = self.reply(control, call)?;
        Ok(returned)
    }

    /// Copies a result out that was moved, and gives back the run that it is in. What the call was made with stays the holder's.
    ///
    /// # Errors
    /// There is no such result, or the gateway is gone.
    pub fn take_moved(&mut self, held: &Held, len: usize) -> Result<Vec<u8>, CallError> {
        let is_it = |granted: &Granted| granted.descriptor.block == held.block;
        let at = self.granted.iter().position(is_it);
        let at = at.ok_or(CallError::NoCall(held.block))?;
        let bytes = self.read(at, len);
        if let Some(run) = self.granted[at].result.take() {
            self.give_back(&run)?;
        }
        Ok(bytes)
    }
}
