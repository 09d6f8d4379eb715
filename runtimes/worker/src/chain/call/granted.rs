//! The blocks that the gateway has granted this instance, and what comes back in them.

use std::sync::Arc;

use hearth_chain::{Block, Descriptor, Instance, Kind, Member, Note, Owner};

use super::Returned;
use crate::chain::ChainMember;

/// A block of this instance's own.
#[derive(Debug)]
pub(in crate::chain) struct Granted {
    pub(super) descriptor: Descriptor,
    /// The run that was lent for a payload that is larger than the block.
    pub(super) payload: Option<Descriptor>,
    /// The run that a result came in that is larger than what it was called with.
    pub(super) result: Option<Descriptor>,
    pub(super) call: Option<Call>,
    /// The gateway has the block, and is to answer for it.
    pub(super) is_asked: bool,
    /// The request that it was used for last. Before it is used for another, it is cleared.
    pub(super) used_for: Option<u32>,
    /// Whoever uses the block in place has another reference to it.
    pub(super) hold: Arc<()>,
}

impl Granted {
    fn new(descriptor: Descriptor) -> Self {
        Self {
            descriptor,
            payload: None,
            result: None,
            call: None,
            is_asked: false,
            used_for: None,
            hold: Arc::default(),
        }
    }

    /// Where the payload of a call lies, and its result once it is back.
    pub(super) fn place(&self) -> Descriptor {
        self.result.or(self.payload).unwrap_or(self.descriptor)
    }

    /// Whether someone has the block in place.
    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.hold) > 1
    }

    /// Whether a call has neither a result nor an error so far.
    pub(super) fn is_out(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.reply.is_none())
    }
}

/// What a block is used for.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) to: Instance,
    pub(super) member: Member,
    /// Of which request.
    pub(super) request: u32,
    pub(super) reply: Option<Reply>,
}

/// What came back.
#[derive(Debug)]
pub(super) enum Reply {
    Result(Returned),
    Failure(u32),
    /// Something that may not be followed.
    Wrong,
    Gone,
}

impl ChainMember {
    /// Takes what is no request: a grant, a reply; false if it must not have come.
    pub(in crate::chain) fn take_other(&mut self, from: Instance, descriptor: &Descriptor) -> bool {
        match descriptor.kind {
            // Of a request, not of this instance: what it asked for.
            Kind::Grant | Kind::Failure if from == Instance::GATEWAY && descriptor.request != 0 => {
                self.take_room(descriptor)
            }
            Kind::Grant if from == Instance::GATEWAY => {
                self.granted.push(Granted::new(*descriptor));
                true
            }
            Kind::Reply | Kind::Failure => self.take_reply(from, descriptor),
            _ => false,
        }
    }

    /// Takes what came of a call: in the block that it was sent in, or in the run that was lent for its result. The ledger says
    /// for which call that is, where no member can write.
    fn take_reply(&mut self, from: Instance, descriptor: &Descriptor) -> bool {
        let block = Block::of(descriptor);
        let call = match self.pool.owner(block) {
            Some(Owner::Call {
                instance,
                call,
                is_result: true,
            }) if instance == self.me => Some(u32::from(call)),
            _ => None,
        };
        let is_awaited = |granted: &&mut Granted| {
            // Of whatever generation it says that it is.
            let is_sent = granted.place().block == block.index;
            let is_out = granted.is_out() && granted.call.as_ref().is_some_and(|to| to.to == from);
            is_out && (is_sent || call == Some(granted.descriptor.block))
        };
        let Some(granted) = self.granted.iter_mut().find(is_awaited) else {
            return false;
        };
        let is_moved = granted.place().block != block.index;
        if is_moved {
            granted.result = Some(*descriptor);
        }
        let len = descriptor.len as usize;
        let reply = match (self.pool.check(descriptor, from), descriptor.kind) {
            (Err(_), _) => Reply::Wrong,
            (Ok(_), Kind::Reply) if is_moved => Reply::Result(Returned::Moved(len)),
            (Ok(_), Kind::Reply) => Reply::Result(Returned::InPlace(len)),
            (Ok(_), _) => Reply::Failure(descriptor.len),
        };
        let note = Note {
            holder: self.me,
            epoch: 0,
            hop: descriptor.hop,
        };
        self.pool.note(descriptor.block, note);
        if let Some(call) = &mut granted.call {
            call.reply = Some(reply);
        }
        true
    }

    /// A peer has ended: what it was called for has no reply, and its block is back.
    pub(in crate::chain) fn end_calls_of(&mut self, peer: Instance) {
        for call in self.granted.iter_mut().filter_map(|one| one.call.as_mut()) {
            if call.to == peer && call.reply.is_none() {
                call.reply = Some(Reply::Gone);
            }
        }
        self.return_lost();
    }
}
