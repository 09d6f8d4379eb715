//! Calls of other members while a request is handled.
//!
//! Each takes a block that the gateway has granted this instance, carries the payload in it to the other member, and has it back
//! with the result. Any number of calls may be under way, as many as there are blocks; their results are taken in any order.

mod error;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

pub use self::error::CallError;
use hearth_chain::{Descriptor, Instance, Kind, Member, Note, SendError};

use super::{ChainMember, Current, MemberError};

/// Longest wait before the calls under way are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A block of this instance's own.
#[derive(Debug)]
pub(super) struct Granted {
    descriptor: Descriptor,
    call: Option<Call>,
}

/// What a block is used for.
#[derive(Debug)]
struct Call {
    to: Instance,
    member: Member,
    /// Of which request.
    request: u32,
    reply: Option<Reply>,
}

#[derive(Debug)]
enum Reply {
    Result(u32),
    Failure(u32),
    Gone,
}

impl ChainMember {
    /// Takes what is no request: a grant, a reply; false if it must not have come.
    pub(super) fn take_other(&mut self, from: Instance, descriptor: &Descriptor) -> bool {
        match descriptor.kind {
            Kind::Grant if from == Instance::GATEWAY => {
                self.granted.push(Granted {
                    descriptor: *descriptor,
                    call: None,
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
    pub(super) fn end_calls_of(&mut self, peer: Instance) {
        for call in self.granted.iter_mut().filter_map(|one| one.call.as_mut()) {
            if call.to == peer && call.reply.is_none() {
                call.reply = Some(Reply::Gone);
            }
        }
    }

    /// Begins a call; its number, for [`Self::finish_call`].
    ///
    /// # Errors
    /// [`CallError`]; nothing was called.
    pub fn begin_call(
        &mut self,
        control: &OwnedFd,
        name: &str,
        payload: &[u8],
    ) -> Result<u32, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let member = self.named(name)?;
        let table = current.descriptor.table;
        if self.routes.allows(table, self.member, member, Kind::Call) != Ok(true) {
            return Err(CallError::NotAllowed(name.to_owned()));
        }
        let limit = self.pool.shape().block_bytes() as usize;
        if payload.len() > limit {
            return Err(CallError::TooLarge {
                bytes: payload.len(),
                limit,
            });
        }
        let at = self.free_block(&current).ok_or(CallError::NoBlock)?;
        let descriptor = self.fill(at, &current, payload)?;
        let to = self.send_call(control, &current, member, name, descriptor)?;
        let granted = &mut self.granted[at];
        granted.call = Some(Call {
            to,
            member,
            request: current.descriptor.request,
            reply: None,
        });
        Ok(granted.descriptor.block)
    }

    /// Waits for a call's result, JSON text.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn finish_call(&mut self, control: &OwnedFd, call: u32) -> Result<Vec<u8>, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let request = current.descriptor.request;
        let at = self.granted.iter().position(|granted| {
            let of_request = |call: &Call| call.request == request;
            granted.descriptor.block == call && granted.call.as_ref().is_some_and(of_request)
        });
        let at = at.ok_or(CallError::NoCall(call))?;
        loop {
            let Some(call) = &mut self.granted[at].call else {
                return Err(CallError::NoCall(call));
            };
            let member = call.member;
            if let Some(reply) = call.reply.take() {
                self.granted[at].call = None;
                return self.replied(at, &current, member, &reply);
            }
            if Instant::now() >= current.deadline {
                return Err(CallError::TimedOut(self.name(member)));
            }
            self.wait(control, current.deadline)?;
        }
    }

    /// Waits for something to come, which is kept if it is a request.
    fn wait(&mut self, control: &OwnedFd, deadline: Instant) -> Result<(), MemberError> {
        let until = deadline.min(Instant::now() + LOOK_AGAIN);
        match self.peers.recv(until) {
            Ok(arrival) => {
                self.keep(arrival);
                Ok(())
            }
            Err(error) if self.goes_on_after(&error, control)? => Ok(()),
            Err(_) => Err(MemberError::Message("the chain ended during a call")),
        }
    }

    fn replied(
        &mut self,
        at: usize,
        current: &Current,
        member: Member,
        reply: &Reply,
    ) -> Result<Vec<u8>, CallError> {
        let block = self.granted[at].descriptor.block;
        self.pool.adopt_stays(block, current.descriptor.block);
        let read = |len: u32| {
            let mut bytes = Vec::new();
            let descriptor = Descriptor {
                len,
                ..self.granted[at].descriptor
            };
            // Its length may be what the other member likes: then it is none of a result.
            if let Ok(payload) = self.pool.check(&descriptor, Instance::GATEWAY) {
                payload.read(&mut bytes);
            }
            bytes
        };
        match *reply {
            Reply::Result(len) => Ok(read(len)),
            Reply::Failure(len) => Err(CallError::Failed {
                error: read(len),
                member: self.name(member),
            }),
            Reply::Gone => Err(CallError::Crashed(self.name(member))),
        }
    }

    /// A block that no call uses, or whose call nobody waits for and that is back.
    fn free_block(&mut self, current: &Current) -> Option<usize> {
        let request = current.descriptor.request;
        self.granted.iter().position(|granted| match &granted.call {
            None => true,
            Some(call) => call.request != request && call.reply.is_some(),
        })
    }

    /// Puts a payload into a block of its own; the descriptor of the call.
    fn fill(
        &mut self,
        at: usize,
        current: &Current,
        payload: &[u8],
    ) -> Result<Descriptor, CallError> {
        let own = self.granted[at].descriptor;
        let Descriptor {
            request,
            route,
            hop,
            table,
            ..
        } = current.descriptor;
        let mut descriptor = Descriptor {
            request,
            route,
            hop,
            table,
            kind: Kind::Call,
            more: false,
            ..own
        };
        let mut block = self
            .pool
            .check(&own, Instance::GATEWAY)
            .map_err(|_| CallError::NoBlock)?;
        descriptor.len = block.write(payload).map_err(|_| CallError::NoBlock)?;
        let envelope = self.pool.envelope(current.descriptor.block);
        self.pool.describe(own.block, &envelope);
        Ok(descriptor)
    }

    /// Sends a call as soon as somebody takes it.
    fn send_call(
        &mut self,
        control: &OwnedFd,
        current: &Current,
        member: Member,
        name: &str,
        mut descriptor: Descriptor,
    ) -> Result<Instance, CallError> {
        loop {
            if let Some(to) = self.peers.choose(member, &mut self.chooser) {
                descriptor.target = to;
                let note = Note {
                    holder: to,
                    epoch: 0,
                    hop: descriptor.hop,
                };
                self.pool.note(descriptor.block, note);
                match self.peers.send(&descriptor) {
                    Ok(()) | Err(SendError::Os { .. }) => return Ok(to),
                    Err(SendError::Full(_)) => {}
                    Err(_) => {
                        self.peers.forget(to);
                        continue;
                    }
                }
            }
            if Instant::now() >= current.deadline {
                return Err(CallError::Unreached(name.to_owned()));
            }
            self.wait(control, current.deadline)?;
        }
    }

    /// The member of this name.
    pub(super) fn named(&self, name: &str) -> Result<Member, CallError> {
        let at = self.names.iter().position(|one| one == name);
        let number = at.and_then(|at| u8::try_from(at + 1).ok());
        number
            .map(Member)
            .ok_or_else(|| CallError::NoMember(name.to_owned()))
    }

    fn name(&self, member: Member) -> String {
        let at = usize::from(member.0).checked_sub(1);
        let name = at.and_then(|at| self.names.get(at));
        name.cloned().unwrap_or_default()
    }
}
