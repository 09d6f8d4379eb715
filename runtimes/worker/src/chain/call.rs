//! Calls of other members while a request is handled.
//!
//! Each takes a block that the gateway has granted this instance, carries the payload in it to the other member, and has it back
//! with the result. If one of them is larger, it is in a run that is lent for it ([`lent`]). Any number of calls may be under way, as many
//! as there are blocks; their results are taken in any order.

mod error;
mod granted;
mod in_place;
mod lent;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

pub use self::error::CallError;
pub(super) use self::granted::Granted;
use self::granted::{Call, Reply};
pub use self::in_place::{Held, Returned};
use hearth_chain::{Descriptor, Instance, Kind, Member, Note, SendError};

use super::{ChainMember, Content, Current, MemberError};

/// Longest wait before the calls under way are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl ChainMember {
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
        let member = self.callable(&current, name)?;
        Self::check_size(payload.len(), self.pool.shape().payload_bytes())?;
        let at = self.free_block(&current)?;
        self.lend(control, &current, at, payload.len())?;
        self.call(control, &current, member, at, Content::Bytes(payload))
    }

    /// The member of this name, if it may be called.
    fn callable(&self, current: &Current, name: &str) -> Result<Member, CallError> {
        let member = self.named(name)?;
        let table = current.descriptor.table;
        match self.routes.allows(table, self.member, member, Kind::Call) {
            Ok(true) => Ok(member),
            _ => Err(CallError::NotAllowed(name.to_owned())),
        }
    }

    /// Sends a call in the block at this place; its number.
    fn call(
        &mut self,
        control: &OwnedFd,
        current: &Current,
        member: Member,
        at: usize,
        payload: Content<'_>,
    ) -> Result<u32, CallError> {
        let descriptor = self.fill(at, current, payload)?;
        let to = self.send_call(control, current, member, descriptor)?;
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
        let (at, returned) = self.reply(control, call)?;
        let result = self.read(at, returned.len());
        self.return_runs(at)?;
        Ok(result)
    }

    /// Waits for a call's result: the place of its block, and where the result is.
    fn reply(&mut self, control: &OwnedFd, call: u32) -> Result<(usize, Returned), CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let request = current.descriptor.request;
        let at = self.granted.iter().position(|granted| {
            let of_request = |call: &Call| call.request == request;
            granted.descriptor.block == call && granted.call.as_ref().is_some_and(of_request)
        });
        let at = at.ok_or(CallError::NoCall(call))?;
        let deadline = current.deadline();
        loop {
            let Some(call) = &mut self.granted[at].call else {
                return Err(CallError::NoCall(call));
            };
            let member = call.member;
            if let Some(reply) = call.reply.take() {
                self.granted[at].call = None;
                return self.replied(at, &current, member, &reply);
            }
            if Instant::now() >= deadline {
                return Err(CallError::TimedOut(self.name(member)));
            }
            self.wait(control, deadline)?;
        }
    }

    /// Waits for something to come, which is kept if it is a request.
    pub(super) fn wait(&mut self, control: &OwnedFd, deadline: Instant) -> Result<(), MemberError> {
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
    ) -> Result<(usize, Returned), CallError> {
        let block = self.granted[at].place().block;
        self.pool.adopt_stays(block, current.descriptor.block);
        let error = match *reply {
            Reply::Result(returned) => return Ok((at, returned)),
            Reply::Failure(len) => CallError::Failed {
                error: self.read(at, len as usize),
                member: self.name(member),
            },
            Reply::Wrong => CallError::Broken(self.name(member)),
            Reply::Gone => CallError::Crashed(self.name(member)),
        };
        if !self.granted[at].is_held() {
            self.return_runs(at)?;
        }
        Err(error)
    }

    /// What so many bytes of the call's block or run are. They were checked when they came.
    fn read(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let descriptor = Descriptor {
            len: u32::try_from(len).unwrap_or(u32::MAX),
            kind: Kind::Reply,
            ..self.granted[at].place()
        };
        if let Ok(payload) = self.pool.check(&descriptor, Instance::GATEWAY) {
            payload.read(&mut bytes);
        }
        bytes
    }

    /// A block that nobody uses: no call, no handler in place; or whose call nobody waits for and that is back. Nothing of
    /// another request is left in it, and no run is lent in its place.
    fn free_block(&mut self, current: &Current) -> Result<usize, CallError> {
        let request = current.descriptor.request;
        let is_free = |granted: &Granted| match &granted.call {
            None => !granted.is_asked,
            Some(call) => call.request != request && call.reply.is_some(),
        };
        let at = self
            .granted
            .iter()
            .position(|granted| is_free(granted) && !granted.is_held())
            .ok_or(CallError::NoBlock)?;
        self.return_runs(at)?;
        let granted = &mut self.granted[at];
        // Of one that nobody waits for.
        granted.call = None;
        let before = granted.used_for.replace(request);
        if before.is_some_and(|before| before != request) {
            self.pool.clear(granted.descriptor.block);
        }
        Ok(at)
    }

    /// Puts a payload into a block of its own; the descriptor of the call.
    fn fill(
        &mut self,
        at: usize,
        current: &Current,
        payload: Content<'_>,
    ) -> Result<Descriptor, CallError> {
        let own = Descriptor {
            kind: Kind::Call,
            len: 0,
            ..self.granted[at].place()
        };
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
            more: false,
            ..own
        };
        let mut block = self
            .pool
            .check(&own, Instance::GATEWAY)
            .map_err(|_| CallError::NoBlock)?;
        descriptor.len = payload.put(&mut block).map_err(|_| CallError::NoBlock)?;
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
            let deadline = current.deadline();
            if Instant::now() >= deadline {
                return Err(CallError::Unreached(self.name(member)));
            }
            self.wait(control, deadline)?;
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
