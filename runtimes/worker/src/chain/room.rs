//! More room for a request whose result does not fit into the blocks that it has.
//!
//! The member gives the request's block back to the gateway, and says how many bytes it needs. The gateway moves the request to a
//! run of blocks that has as many, and sends it that, or the old block if there is none. Meanwhile the member has nothing in hand:
//! if it ends, or the time is up, the gateway has the block.

use std::os::fd::OwnedFd;
use std::time::Instant;

use hearth_chain::{Descriptor, Instance, Kind, Note};

use super::{Area, CallError, ChainMember, Content, Current, MemberError};

/// What was asked of the gateway.
#[derive(Debug)]
pub(super) struct Asked {
    request: u32,
    answer: Option<Descriptor>,
}

impl ChainMember {
    /// Sees to it that a payload fits into the request's block or run. If that takes another one, the request has it from now on, and
    /// what was in the old one is at its beginning.
    ///
    /// # Errors
    /// [`CallError`]. The request goes on, unless its time is up.
    pub(super) fn make_room(
        &mut self,
        control: &OwnedFd,
        payload: Content<'_>,
    ) -> Result<(), CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let bytes = payload.len();
        if bytes <= self.pool.room(current.descriptor.block) as usize {
            return Ok(());
        }
        Self::check_size(bytes, self.limit(&current, payload))?;
        self.enlarge(control, &current, bytes)
    }

    /// Gives a handler that has its payload in place room for so many bytes. They may be elsewhere then, and what was in the block, or
    /// the run, is at their beginning.
    ///
    /// # Errors
    /// As for a result of so many bytes. The block is where it was.
    pub fn grow(&mut self, control: &OwnedFd, bytes: usize) -> Result<Area, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let room = self.pool.room(current.descriptor.block);
        if bytes > room as usize {
            let is_call = current.descriptor.kind == Kind::Call;
            let most = self.pool.shape().payload_bytes();
            Self::check_size(bytes, if is_call { room } else { most })?;
            self.enlarge(control, &current, bytes)?;
        }
        self.block().ok_or(CallError::NoRequest)
    }

    fn enlarge(
        &mut self,
        control: &OwnedFd,
        current: &Current,
        bytes: usize,
    ) -> Result<(), CallError> {
        let asked = Descriptor {
            target: Instance::GATEWAY,
            kind: Kind::Return,
            // Compared with what a payload may have, which fits.
            len: u32::try_from(bytes).unwrap_or(u32::MAX),
            ..current.descriptor
        };
        self.asked = Some(Asked {
            request: asked.request,
            answer: None,
        });
        self.give(&asked)?;
        loop {
            if let Some(answer) = self.asked.take_if(|asked| asked.answer.is_some()) {
                return self.take_answer(answer.answer, bytes);
            }
            if Instant::now() >= current.deadline {
                // Whatever comes now goes back: nobody waits for the request any more.
                self.asked = None;
                self.current = None;
                return Err(CallError::TimedOut("gateway".to_owned()));
            }
            self.wait(control, current.deadline)?;
        }
    }

    fn take_answer(&mut self, answer: Option<Descriptor>, bytes: usize) -> Result<(), CallError> {
        let (Some(answer), Some(current)) = (answer, &mut self.current) else {
            return Err(CallError::NoRequest);
        };
        current.descriptor.block = answer.block;
        current.descriptor.generation = answer.generation;
        match answer.kind {
            Kind::Grant => Ok(()),
            _ => Err(CallError::PoolExhausted(bytes)),
        }
    }

    /// Takes what the gateway has sent for a request.
    pub(super) fn take_room(&mut self, descriptor: &Descriptor) -> bool {
        if self.pool.check(descriptor, Instance::GATEWAY).is_err() {
            return false;
        }
        let is_asked = |asked: &&mut Asked| asked.request == descriptor.request;
        match self.asked.as_mut().filter(is_asked) {
            Some(asked) => {
                asked.answer = Some(*descriptor);
                true
            }
            // It came too late.
            None => self
                .give(&Descriptor {
                    target: Instance::GATEWAY,
                    kind: Kind::Return,
                    len: 0,
                    ..*descriptor
                })
                .is_ok(),
        }
    }

    /// Sends a block to the gateway that is not to be passed on.
    fn give(&mut self, descriptor: &Descriptor) -> Result<(), MemberError> {
        let note = Note {
            holder: Instance::GATEWAY,
            epoch: 0,
            hop: descriptor.hop,
        };
        self.pool.note(descriptor.block, note);
        Ok(self.peers.send(descriptor)?)
    }

    /// Ends a request whose result finds no room.
    pub(super) fn fail_for_room(&mut self, error: CallError) -> Result<(), MemberError> {
        let error_type = match error {
            CallError::Member(error) => return Err(error),
            CallError::TooLarge { .. } => "Runtime.ResultTooLarge",
            _ => error.error_type(),
        };
        // None of these texts has anything in it that JSON escapes.
        let text =
            format!(r#"{{"errorType":"{error_type}","errorMessage":"{error}","stackTrace":[]}}"#);
        self.fail(text.as_bytes())
    }
}
