//! What a handler can do with the other members of its chain.

use std::ops::Deref;

use hearth_worker::chain::{Area, CallError, Content, Held};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Context;
use crate::block::{Block, Passed, Request, in_hand};

/// Another member could not be reached, or failed, or must not be called by this one.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ChainError(Cause);

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Call(CallError),
    #[error("the payload is not JSON: {0}")]
    Json(serde_json::Error),
}

impl ChainError {
    /// Its type, `Chain.NoInstance` or one of its like.
    #[must_use]
    pub fn error_type(&self) -> &'static str {
        match &self.0 {
            Cause::Call(error) => error.error_type(),
            Cause::Json(_) => "Chain.InvalidPayload",
        }
    }

    /// The other member's own error, JSON text, if it failed.
    #[must_use]
    pub fn cause(&self) -> Option<&[u8]> {
        match &self.0 {
            Cause::Call(error) => error.cause(),
            Cause::Json(_) => None,
        }
    }
}

impl From<CallError> for ChainError {
    fn from(error: CallError) -> Self {
        Self(Cause::Call(error))
    }
}

impl From<serde_json::Error> for ChainError {
    fn from(error: serde_json::Error) -> Self {
        Self(Cause::Json(error))
    }
}

/// Says of a context that it is of a handler whose payloads are values: of [`crate::serve`].
#[derive(Debug)]
pub enum Values {}

/// Says of a context that it is of a handler whose payloads are in place: of [`crate::serve_blocks`].
#[derive(Debug)]
pub enum InPlace {}

/// The chain, while a request of it is handled. The chain's `edges` say who may be called. Calls have JSON values, which are copied,
/// or blocks, which are not; a request is passed on as what the handler has it as:
///
/// ```no_run
/// hearth_native::serve_blocks(|request, context| {
///     Ok(context.chain()?.send_block("next", request)?)
/// })
/// ```
///
/// A handler that has the block could go on writing to it after it has passed on a value, so it cannot:
///
/// ```compile_fail
/// hearth_native::serve_blocks(|request, context| {
///     context.chain()?.send("next", &1)?;
///     Ok(request.pass())
/// })
/// ```
#[derive(Debug)]
pub struct Chain<'c, 'a, P = Values> {
    context: &'c mut Context<'a, P>,
}

impl<'c, 'a, P> Chain<'c, 'a, P> {
    pub(crate) fn new(context: &'c mut Context<'a, P>) -> Self {
        Self { context }
    }

    /// Calls a member and waits for its result.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn call<R: DeserializeOwned>(
        &mut self,
        member: &str,
        payload: &impl Serialize,
    ) -> Result<R, ChainError> {
        let payload = serde_json::to_vec(payload)?;
        let (chain, control) = self.context.member()?;
        let call = chain.begin_call(control, member, &payload)?;
        let result = chain.finish_call(control, call)?;
        Ok(serde_json::from_slice(&result)?)
    }

    /// A block for the payload of a call, empty; beyond that are zeros, or what an earlier call for this request left there. There are
    /// four of them at a time.
    ///
    /// # Errors
    /// All are in use.
    pub fn block(&mut self) -> Result<CallBlock<'a>, ChainError> {
        self.block_for(0)
    }

    /// The same with room for so many bytes: in several blocks side by side, if one has not as many.
    ///
    /// # Errors
    /// All are in use, or the pool has no room for so many bytes, or never has.
    pub fn block_for(&mut self, bytes: usize) -> Result<CallBlock<'a>, ChainError> {
        let (chain, control) = self.context.member()?;
        let held = chain.hold_block(control, bytes)?;
        let block = Block::new(chain.area_of(&held, 0));
        Ok(CallBlock { block, held })
    }

    /// Calls a member with a block and waits; the same block, with the result in it. A result that has no room there is in several blocks
    /// that have it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn call_block(
        &mut self,
        member: &str,
        mut block: CallBlock<'a>,
    ) -> Result<CallBlock<'a>, ChainError> {
        let (chain, control) = self.context.member()?;
        let returned = chain.call_in_place(control, member, &block.held, block.len())?;
        block.block = Block::new(chain.area_of(&block.held, returned.len()));
        Ok(block)
    }
}

impl Chain<'_, '_, Values> {
    /// Passes the request on now, to the member's next place on the route. What the handler returns goes nowhere.
    ///
    /// # Errors
    /// [`ChainError`]; the request goes on.
    pub fn send(&mut self, member: &str, payload: &impl Serialize) -> Result<(), ChainError> {
        let payload = serde_json::to_vec(payload)?;
        let (chain, control) = self.context.member()?;
        Ok(chain.send_ahead(control, member, Content::Bytes(&payload))?)
    }

    /// Ends the request with this result now. What the handler returns goes nowhere.
    ///
    /// # Errors
    /// [`ChainError`]; the request goes on.
    pub fn respond(&mut self, payload: &impl Serialize) -> Result<(), ChainError> {
        let payload = serde_json::to_vec(payload)?;
        let (chain, control) = self.context.member()?;
        Ok(chain.respond(control, Content::Bytes(&payload))?)
    }
}

impl<'a> Chain<'_, 'a, InPlace> {
    /// Gives the request room for so many bytes: as many as the chain's `pool.payload_kb` says at most. The payload is what it was. If
    /// that takes other blocks of the pool, the gateway moves it there.
    ///
    /// # Errors
    /// [`ChainError`]; the request can only fail then, with this error or another one that the handler returns.
    pub fn enlarge(
        &mut self,
        request: Request<'a>,
        bytes: usize,
    ) -> Result<Request<'a>, ChainError> {
        let len = request.len();
        let (chain, control) = self.context.member()?;
        let area = chain.grow(control, bytes)?;
        Ok(Request::new(Block::new(Area { len, ..area })))
    }

    /// Passes the request's block on now, to the member's next place on the route.
    ///
    /// # Errors
    /// [`ChainError`]; the request can only fail then, with this error or another one that the handler returns.
    pub fn send_block(
        &mut self,
        member: &str,
        request: Request<'a>,
    ) -> Result<Passed<'a>, ChainError> {
        let payload = Content::InPlace(request.len());
        let (chain, control) = self.context.member()?;
        chain.send_ahead(control, member, payload)?;
        Ok(Passed::already())
    }

    /// Ends the request now, with what is in its block.
    ///
    /// # Errors
    /// [`ChainError`], as [`Self::send_block`].
    pub fn respond_block(&mut self, request: Request<'a>) -> Result<Passed<'a>, ChainError> {
        let payload = Content::InPlace(request.len());
        let (chain, control) = self.context.member()?;
        chain.respond(control, payload)?;
        Ok(Passed::already())
    }
}

/// A block for calls. Dropping it gives it back.
#[derive(Debug)]
pub struct CallBlock<'a> {
    block: Block<'a>,
    held: Held,
}

impl<'a> Deref for CallBlock<'a> {
    type Target = Block<'a>;

    fn deref(&self) -> &Block<'a> {
        &self.block
    }
}

in_hand!(CallBlock);
