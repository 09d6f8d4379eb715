//! Payloads in place, as `ArrayBuffer`s over the blocks of a chain's pool.
//!
//! A block is lent to the handler until it is passed on. Then its `ArrayBuffer` is detached: whatever was made of it has no bytes
//! any more. One that the handler has moved elsewhere (`ArrayBuffer.prototype.transfer`) cannot be detached; it leads to a private
//! copy from then on, so that whoever has it sees what was there, and neither what comes into the block later nor the other way
//! round.

use std::ptr;
use std::sync::{Arc, OnceLock};

use hearth_worker::chain::{Area, ChainMember, Held, LeftCopy, MemberError};
use napi::bindgen_prelude::{ArrayBuffer, JsValue};
use napi::sys::{napi_env, napi_status, napi_value};
use napi::{Env, check_status};

unsafe extern "C" {
    // Of a version of Node's interface whose other parts are not for a process that forks.
    fn napi_detach_arraybuffer(env: napi_env, arraybuffer: napi_value) -> napi_status;
    fn napi_is_detached_arraybuffer(
        env: napi_env,
        arraybuffer: napi_value,
        result: *mut bool,
    ) -> napi_status;
}

/// What an `ArrayBuffer` that the handler has moved elsewhere leads to: it goes with it.
type Copy = Arc<OnceLock<LeftCopy>>;

/// A block in the handler's hand.
struct Lent {
    block: u32,
    copy: Copy,
    /// If it is one for calls.
    held: Option<Held>,
}

/// The blocks that the handler has in hand, in the order in which it got them.
#[derive(Default)]
pub(crate) struct Loans(Vec<Lent>);

impl Loans {
    /// Lends a block.
    pub(crate) fn lend<'env>(
        &mut self,
        env: &'env Env,
        block: u32,
        area: Area,
        held: Option<Held>,
    ) -> napi::Result<ArrayBuffer<'env>> {
        let copy = Copy::default();
        // SAFETY: the bytes are mapped for as long as the buffer: while the block is lent, as a part of the pool; then the buffer is
        // detached, or, if it has been moved elsewhere, the address leads to `copy`, which the finalizer drops. Others may write
        // there, as to any buffer that is shared.
        let buffer = unsafe {
            ArrayBuffer::from_external(env, area.at, area.capacity, copy.clone(), |_, copy| {
                drop(copy);
            })
        }?;
        self.0.push(Lent { block, copy, held });
        Ok(buffer)
    }

    /// The block of a call.
    pub(crate) fn held(&self, call: u32) -> Option<&Held> {
        let mut held = self.0.iter().filter_map(|lent| lent.held.as_ref());
        held.find(|held| held.call() == call)
    }

    /// Ends all loans, because the request is about to be passed on. `buffers` are those that were lent, in that order.
    ///
    /// # Errors
    /// Inner: there is no memory for copies, and the request must not be passed on.
    pub(crate) fn end(
        &mut self,
        env: &Env,
        chain: &mut ChainMember,
        buffers: &[ArrayBuffer<'_>],
    ) -> napi::Result<Result<(), MemberError>> {
        let mut kept = Vec::new();
        for (lent, buffer) in self.0.drain(..).zip(buffers) {
            if !detach(env, buffer)? {
                kept.push(lent);
            }
        }
        if kept.is_empty() {
            return Ok(Ok(()));
        }
        kept.sort_by_key(|lent| lent.block);
        let mut blocks = kept.iter().map(|lent| lent.block).collect();
        let copies = match chain.take_from_keepers(&mut blocks) {
            Ok(copies) => copies,
            Err(error) => return Ok(Err(error)),
        };
        for (lent, copy) in kept.iter().zip(copies) {
            // It is set once: no block is lent twice at a time.
            let _ = lent.copy.set(copy);
        }
        Ok(Ok(()))
    }
}

/// Detaches a buffer; false if it was moved elsewhere.
fn detach(env: &Env, buffer: &ArrayBuffer<'_>) -> napi::Result<bool> {
    let value = buffer.value().value;
    let mut was_moved = false;
    // SAFETY: this is the thread of this environment, inside a call from JavaScript, whose argument the value is.
    unsafe {
        check_status!(napi_is_detached_arraybuffer(
            env.raw(),
            value,
            ptr::from_mut(&mut was_moved)
        ))?;
        if !was_moved {
            check_status!(napi_detach_arraybuffer(env.raw(), value))?;
        }
    }
    Ok(!was_moved)
}
