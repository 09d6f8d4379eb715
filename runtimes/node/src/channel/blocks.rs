//! Requests with their payloads in place: `worker/blocks.js`.

use hearth_worker::chain::{CallError, Content, Returned};
use napi::Env;
use napi::bindgen_prelude::{ArrayBuffer, Buffer, Either, Uint8Array};
use napi_derive::napi;

use super::{Channel, call_failed, lost};

/// What a handler gives for a payload: so many bytes that are in the block, or bytes that lie in no block that is lent. They are read
/// after the loans have ended.
type Given = Either<u32, Uint8Array>;

fn content(given: &Given) -> Content<'_> {
    match given {
        Either::A(len) => Content::InPlace(*len as usize),
        Either::B(bytes) => Content::Bytes(bytes),
    }
}

#[napi]
impl Channel {
    /// Whether requests are a chain's, with their payloads in place.
    #[napi]
    pub fn is_in_place(&mut self) -> napi::Result<bool> {
        Ok(self.chain()?.0.is_in_place())
    }

    /// The whole block of the request in hand.
    #[napi]
    pub fn chain_block<'env>(&mut self, env: &'env Env) -> napi::Result<ArrayBuffer<'env>> {
        let (chain, _) = self.chain()?;
        match (chain.block(), chain.block_number()) {
            (Some(area), Some(block)) => self.loans.lend(env, block, area, None),
            _ => Err(call_failed(&CallError::NoRequest)),
        }
    }

    /// Bytes of its payload.
    #[napi]
    pub fn chain_length(&mut self) -> napi::Result<u32> {
        let len = self.chain()?.0.block().map_or(0, |area| area.len);
        // A block is smaller.
        Ok(u32::try_from(len).unwrap_or_default())
    }

    /// Takes a block for calls, or a run of so many bytes at least: the number of its calls, and the whole of it.
    #[napi]
    pub fn chain_hold<'env>(
        &mut self,
        env: &'env Env,
        bytes: u32,
    ) -> napi::Result<(u32, ArrayBuffer<'env>)> {
        let (chain, control) = self.chain()?;
        let held = chain.hold_block(control, bytes as usize);
        let held = held.map_err(|error| call_failed(&error))?;
        let (call, block) = (held.call(), chain.block_of(&held));
        let area = chain.area_of(&held, 0);
        Ok((call, self.loans.lend(env, block, area, Some(held))?))
    }

    /// Begins to call another member with bytes, which are copied; the call's number.
    #[napi]
    pub fn chain_call_bytes(&mut self, member: String, payload: Uint8Array) -> napi::Result<u32> {
        let (chain, control) = self.chain()?;
        let called = chain.begin_call(control, &member, &payload);
        called.map_err(|error| call_failed(&error))
    }

    /// Waits for the result of such a call: a copy of it. Its block is free for the next one.
    #[napi]
    pub fn chain_result_bytes(&mut self, call: u32) -> napi::Result<Buffer> {
        let (chain, control) = self.chain()?;
        let result = chain.finish_call(control, call);
        result
            .map(Buffer::from)
            .map_err(|error| call_failed(&error))
    }

    /// Begins to call another member with what is in a block for calls. The call has the block's number.
    #[napi]
    pub fn chain_call_block(
        &mut self,
        member: String,
        block: u32,
        length: u32,
    ) -> napi::Result<()> {
        let no_call = || call_failed(&CallError::NoCall(block));
        let inner = self.inner.as_mut().ok_or_else(no_call)?;
        let (chain, control) = inner.chain().map_err(|error| call_failed(&error))?;
        let held = self.loans.held(block).ok_or_else(no_call)?;
        let called = chain.begin_call_in_place(control, &member, held, length as usize);
        called.map(drop).map_err(|error| call_failed(&error))
    }

    /// Waits for the result of such a call: its length, in the block; or a copy, if it did not fit there.
    #[napi]
    pub fn chain_result_block(&mut self, call: u32) -> napi::Result<Either<u32, Buffer>> {
        let no_call = || call_failed(&CallError::NoCall(call));
        let inner = self.inner.as_mut().ok_or_else(no_call)?;
        let (chain, control) = inner.chain().map_err(|error| call_failed(&error))?;
        let returned = chain.finish_call_in_place(control, call);
        match returned.map_err(|error| call_failed(&error))? {
            // A payload is shorter.
            Returned::InPlace(len) => Ok(Either::A(u32::try_from(len).unwrap_or_default())),
            Returned::Moved(len) => {
                let held = self.loans.held(call).ok_or_else(no_call)?;
                let moved = chain.take_moved(held, len);
                let moved = moved.map_err(|error| call_failed(&error))?;
                Ok(Either::B(Buffer::from(moved)))
            }
        }
    }

    /// Passes the request on to another member, ahead of its turn, with what is in its block or is put there. `lent` are the buffers
    /// that were given out.
    #[napi]
    pub fn chain_send_block(
        &mut self,
        env: &Env,
        member: String,
        payload: Given,
        lent: Vec<ArrayBuffer<'_>>,
    ) -> napi::Result<()> {
        let (chain, _) = self.chain()?;
        chain
            .may_send_ahead(&member, content(&payload))
            .map_err(|error| call_failed(&error))?;
        self.end_loans(env, &lent)?;
        let (chain, control) = self.chain()?;
        chain
            .send_ahead(control, &member, content(&payload))
            .map_err(|error| call_failed(&error))
    }

    /// Answers now, in the same way.
    #[napi]
    pub fn chain_respond_block(
        &mut self,
        env: &Env,
        payload: Given,
        lent: Vec<ArrayBuffer<'_>>,
    ) -> napi::Result<()> {
        let (chain, _) = self.chain()?;
        chain
            .may_respond(content(&payload))
            .map_err(|error| call_failed(&error))?;
        self.end_loans(env, &lent)?;
        let (chain, control) = self.chain()?;
        chain
            .respond(control, content(&payload))
            .map_err(|error| call_failed(&error))
    }

    /// Passes the request on, in the same way; nothing if it was passed on before.
    #[napi]
    pub fn pass_block(
        &mut self,
        env: &Env,
        payload: Given,
        lent: Vec<ArrayBuffer<'_>>,
    ) -> napi::Result<()> {
        self.end_loans(env, &lent)?;
        self.open()?
            .finish_content(content(&payload))
            .unwrap_or_else(|error| lost(&error));
        Ok(())
    }

    /// Takes back what the handler has of blocks.
    #[napi]
    pub fn end_loans_of(&mut self, env: &Env, lent: Vec<ArrayBuffer<'_>>) -> napi::Result<()> {
        self.end_loans(env, &lent)
    }
}

impl Channel {
    fn end_loans(&mut self, env: &Env, lent: &[ArrayBuffer<'_>]) -> napi::Result<()> {
        let Some(inner) = self.inner.as_mut() else {
            return Ok(());
        };
        let (chain, _) = inner.chain().map_err(|error| call_failed(&error))?;
        let ended = self.loans.end(env, chain, lent)?;
        ended.unwrap_or_else(|error| lost(&error.into()));
        Ok(())
    }
}
