//! More room for a request, or a call, whose result does not fit into the blocks that it has.
//!
//! The member gives the block back to the gateway, and says how many bytes it needs. The gateway moves what is there to a
//! run of blocks that has as many, and sends it that, or the old block if there is none. Meanwhile the member has nothing in hand:
//! if it ends, or the time is up, the gateway has the block. That of a call goes back to who called, whose it is, and the run is lent
//! until the call is over.

use std::os::fd::OwnedFd;
use std::time::Instant;

use hearth_chain::{Block, Descriptor, Instance, Kind, Note, Owner};

use super::{Area, CallError, ChainMember, Content, Current, MemberError};

/// What says to a caller that its reply has found no room in time.
const TOO_LATE: &[u8] = br#"{"errorType":"Chain.Timeout","errorMessage":"the result has found no room in time","stackTrace":[]}"#;

/// What was asked of the gateway.
#[derive(Debug)]
pub(super) struct Asked {
    descriptor: Descriptor,
    /// For a call: of which instance, and the number of the block that it calls with.
    of: Option<(Instance, u32)>,
    answer: Option<Descriptor>,
}

impl Asked {
    /// Whether this is the answer, a block or run of this owner.
    fn is_answered_by(&self, answer: &Descriptor, owner: Option<Owner>) -> bool {
        let asked = &self.descriptor;
        let is_of = match (owner, self.of) {
            (Some(Owner::Call { instance, call, .. }), Some(of)) => (instance, call.into()) == of,
            (Some(Owner::Request { .. }), None) => true,
            _ => false,
        };
        match answer.kind {
            Kind::Grant => asked.request == answer.request && is_of,
            _ => asked.request == answer.request && Block::of(asked) == Block::of(answer),
        }
    }
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
            Self::check_size(bytes, self.pool.shape().payload_bytes())?;
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
        let of = match self.pool.owner(Block::of(&asked)) {
            Some(Owner::Instance { instance, .. }) => Some((instance, asked.block)),
            Some(Owner::Call { instance, call, .. }) => Some((instance, call.into())),
            _ => None,
        };
        let answer = self.ask(control, current, asked, of).inspect_err(|_| {
            // Whatever comes now goes back: nobody waits for the request any more.
            self.current = None;
        })?;
        let Some(current) = &mut self.current else {
            return Err(CallError::NoRequest);
        };
        current.descriptor.block = answer.block;
        current.descriptor.generation = answer.generation;
        match answer.kind {
            Kind::Grant => Ok(()),
            _ => Err(CallError::PoolExhausted(bytes)),
        }
    }

    /// Asks the gateway for room, and waits for its answer: the run, or the block again.
    ///
    /// # Errors
    /// The time is up, or who called has ended; the answer is still to come.
    pub(super) fn ask(
        &mut self,
        control: &OwnedFd,
        current: &Current,
        asked: Descriptor,
        of: Option<(Instance, u32)>,
    ) -> Result<Descriptor, CallError> {
        self.asked = Some(Asked {
            descriptor: asked,
            of,
            answer: None,
        });
        self.give(&asked)?;
        let deadline = current.deadline();
        loop {
            if let Some(answer) = self.asked.as_mut().and_then(|asked| asked.answer.take()) {
                self.asked = None;
                return Ok(answer);
            }
            let caller = of.map_or(self.me, |(caller, _)| caller);
            let error = if Instant::now() >= deadline {
                CallError::TimedOut("gateway".to_owned())
            } else if caller != self.me && self.peers.member(caller).is_none() {
                CallError::CallerGone
            } else {
                self.wait(control, deadline)?;
                continue;
            };
            self.asked = None;
            return Err(error);
        }
    }

    /// Takes what the gateway has sent for a request, or a call.
    pub(super) fn take_room(&mut self, descriptor: &Descriptor) -> bool {
        if self.pool.check(descriptor, Instance::GATEWAY).is_err() {
            return false;
        }
        let owner = self.pool.owner(Block::of(descriptor));
        let is_answered = |asked: &&mut Asked| asked.is_answered_by(descriptor, owner);
        if let Some(asked) = self.asked.as_mut().filter(is_answered) {
            asked.answer = Some(*descriptor);
            return true;
        }
        match owner {
            Some(owner) if owner.caller() == Some(self.me) => self.take_lent(descriptor, owner),
            // It came too late. Who called is to have its block.
            Some(Owner::Instance { instance, .. } | Owner::Call { instance, .. }) => {
                self.reply_late(instance, descriptor)
            }
            _ => self.hand_back(descriptor),
        }
    }

    fn reply_late(&mut self, caller: Instance, descriptor: &Descriptor) -> bool {
        let Ok(mut block) = self.pool.check(descriptor, Instance::GATEWAY) else {
            return false;
        };
        let len = block.write(TOO_LATE).unwrap_or_default();
        let reply = Descriptor {
            target: caller,
            kind: Kind::Failure,
            len,
            ..*descriptor
        };
        let note = Note {
            holder: caller,
            epoch: 0,
            hop: descriptor.hop,
        };
        self.pool.note(descriptor.block, note);
        self.peers.send(&reply).is_ok() || self.hand_back(descriptor)
    }

    fn hand_back(&mut self, descriptor: &Descriptor) -> bool {
        let back = Descriptor {
            target: Instance::GATEWAY,
            kind: Kind::Return,
            len: 0,
            ..*descriptor
        };
        self.give(&back).is_ok()
    }

    /// Sends a block to the gateway that is not to be passed on.
    pub(super) fn give(&mut self, descriptor: &Descriptor) -> Result<(), MemberError> {
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

#[cfg(test)]
mod tests {
    use hearth_chain::Table;

    use super::*;

    #[test]
    fn only_the_answer_to_what_was_asked_is_one() {
        let me = Instance(3);
        let descriptor = Descriptor {
            request: 7,
            generation: 1,
            target: Instance::GATEWAY,
            block: 4,
            len: 100_000,
            route: 0,
            hop: 0,
            table: Table::A,
            kind: Kind::Return,
            more: false,
        };
        let of_call = |call| Owner::Call {
            instance: me,
            call,
            is_result: false,
        };
        let request = Owner::Request { id: 7, route: 0 };
        let run = Descriptor {
            kind: Kind::Grant,
            block: 9,
            ..descriptor
        };
        let none = Descriptor {
            kind: Kind::Failure,
            ..descriptor
        };
        for (of, owner, answer, is_answer) in [
            (Some((me, 4)), Some(of_call(4)), run, true),
            (Some((me, 4)), Some(of_call(5)), run, false),
            (Some((Instance(2), 4)), Some(of_call(4)), run, false),
            (Some((me, 4)), Some(request), run, false),
            (Some((me, 4)), None, run, false),
            (None, Some(request), run, true),
            (None, Some(of_call(4)), run, false),
            (None, Some(request), Descriptor { request: 8, ..run }, false),
            (Some((me, 4)), None, none, true),
            (
                Some((me, 4)),
                None,
                Descriptor {
                    generation: 2,
                    ..none
                },
                false,
            ),
            (None, None, Descriptor { request: 8, ..none }, false),
        ] {
            let asked = Asked {
                descriptor,
                of,
                answer: None,
            };
            let found = asked.is_answered_by(&answer, owner);
            assert_eq!(found, is_answer, "{of:?}, {owner:?}, {answer:?}");
        }
    }
}
