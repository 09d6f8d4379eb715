//! The blocks that the gateway has granted this instance, and what comes back in them.

use std::sync::Arc;

use hearth_chain::{Descriptor, Instance, Kind, Member, Note};

use crate::chain::ChainMember;

/// A block of this instance's own.
#[derive(Debug)]
pub(in crate::chain) struct Granted {
    pub(super) descriptor: Descriptor,
    pub(super) call: Option<Call>,
    /// The request that it was used for last. Before it is used for another, it is cleared.
    pub(super) used_for: Option<u32>,
    /// Whoever uses the block in place has another reference to it.
    pub(super) hold: Arc<()>,
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
    Result(u32),
    Failure(u32),
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
                self.granted.push(Granted {
                    descriptor: *descriptor,
                    call: None,
                    used_for: None,
                    hold: Arc::default(),
                });
                true
            }
            Kind::Reply | Kind::Failure => {
                let me = self.me;
                let is_awaited = |granted: &&mut Granted| {
                    let own = granted.descriptor;
                    let is_own =
                        (own.block, own.generation) == (descriptor.block, descriptor.generation);
                    is_own && granted.call.as_ref().is_some_and(|call| call.to == from)
                };
                let Some(granted) = self.granted.iter_mut().find(is_awaited) else {
                    return false;
                };
                let note = Note {
                    holder: me,
                    epoch: 0,
                    hop: descriptor.hop,
                };
                self.pool.note(descriptor.block, note);
                if let Some(call) = &mut granted.call {
                    call.reply = Some(match descriptor.kind {
                        Kind::Reply => Reply::Result(descriptor.len),
                        _ => Reply::Failure(descriptor.len),
                    });
                }
                true
            }
            _ => false,
        }
    }

    /// A peer has ended: what it was called for has no reply, and its block is back.
    pub(in crate::chain) fn end_calls_of(&mut self, peer: Instance) {
        for call in self.granted.iter_mut().filter_map(|one| one.call.as_mut()) {
            if call.to == peer && call.reply.is_none() {
                call.reply = Some(Reply::Gone);
            }
        }
    }
}
