//! Calls whose payload is written in place, and whose result is read there: the handler has the block before and after.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{CallError, Granted};
use crate::chain::{Area, ChainMember, Content};

/// A block of this instance's own in a handler's hand. When this is dropped, other calls may use the block.
#[derive(Debug)]
pub struct Held {
    block: u32,
    _hold: Arc<()>,
}

impl Held {
    /// The block's number, which is that of a call with it.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block
    }
}

impl ChainMember {
    /// Takes a block for a call. Its payload is empty; the memory is zero, or what an earlier call for the same request left there.
    ///
    /// # Errors
    /// There is no request to make calls for, or no block is free.
    pub fn hold_block(&mut self) -> Result<Held, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let at = self.free_block(&current).ok_or(CallError::NoBlock)?;
        let granted = &mut self.granted[at];
        // Of a call that nobody waits for.
        granted.call = None;
        Ok(Held {
            block: granted.descriptor.block,
            _hold: Arc::clone(&granted.hold),
        })
    }

    /// Where a held block lies, with a payload of so many bytes. It is the holder's but while a call is under way.
    #[must_use]
    pub fn area_of(&self, held: &Held, len: usize) -> Area {
        self.area(held.block, len)
    }

    /// Calls a member with the first `len` bytes of a held block and waits; the length of the result, which is in the same block
    /// then. After an error the block must be dropped: the other member may still have it in hand.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call_in_place(
        &mut self,
        control: &OwnedFd,
        name: &str,
        held: &Held,
        len: usize,
    ) -> Result<usize, CallError> {
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
        Self::check_size(payload.len(), self.pool.room(held.block))?;
        let is_it = |granted: &Granted| granted.descriptor.block == held.block;
        let at = self.granted.iter().position(is_it);
        // One that a call is under way with is not the handler's.
        let at = at.filter(|&at| self.granted[at].call.is_none());
        let at = at.ok_or(CallError::NoBlock)?;
        self.call(control, &current, member, at, payload)
    }

    /// Waits for a call's result: its length, in the call's block.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn finish_call_in_place(
        &mut self,
        control: &OwnedFd,
        call: u32,
    ) -> Result<usize, CallError> {
        let (_, len) = self.reply(control, call)?;
        // Its length may be what the other member likes.
        match Self::check_size(len as usize, self.pool.room(call)) {
            Ok(()) => Ok(len as usize),
            Err(_) => Ok(0),
        }
    }
}
