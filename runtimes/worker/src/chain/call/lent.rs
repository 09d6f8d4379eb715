//! Runs that the gateway lends calls, for payloads and results that are larger than a block.
//!
//! A payload's run is asked for here, with the block that the call is made with; the block stays this instance's. A result's is asked
//! for by who is called ([`super::super::room`]), and comes with the reply. Both go back when the call is over, and nobody has them in
//! place.

use std::os::fd::OwnedFd;

use hearth_chain::{Block, Descriptor, Instance, Kind, Owner};

use super::{CallError, Granted};
use crate::chain::{ChainMember, Current, MemberError};

impl ChainMember {
    /// Sees to it that the call with the block at this place has room for so many bytes.
    pub(super) fn lend(
        &mut self,
        control: &OwnedFd,
        current: &Current,
        at: usize,
        bytes: usize,
    ) -> Result<(), CallError> {
        Self::check_size(bytes, self.pool.shape().payload_bytes())?;
        let granted = &mut self.granted[at];
        if bytes <= self.pool.room(granted.place().block) as usize {
            return Ok(());
        }
        granted.is_asked = true;
        let Descriptor {
            request,
            route,
            hop,
            table,
            ..
        } = current.descriptor;
        let asked = Descriptor {
            request,
            route,
            hop,
            table,
            target: Instance::GATEWAY,
            kind: Kind::Return,
            // Compared with what a payload may have, which fits.
            len: u32::try_from(bytes).unwrap_or(u32::MAX),
            ..granted.descriptor
        };
        let of = (self.me, granted.descriptor.block);
        let answer = self.ask(control, current, asked, Some(of))?;
        let granted = &mut self.granted[at];
        granted.is_asked = false;
        if answer.kind != Kind::Grant {
            return Err(CallError::PoolExhausted(bytes));
        }
        granted.payload = Some(answer);
        Ok(())
    }

    /// Takes what the gateway says of a call of this instance's that nobody waits for: room that came too late, or that there is none;
    /// or that who was called has given the block back.
    pub(in crate::chain) fn take_lent(&mut self, descriptor: &Descriptor, owner: Owner) -> bool {
        let call = match owner {
            Owner::Call { call, .. } => call.into(),
            _ => descriptor.block,
        };
        let is_it = |granted: &&mut Granted| granted.descriptor.block == call;
        let Some(granted) = self.granted.iter_mut().find(is_it) else {
            return false;
        };
        match descriptor.kind {
            Kind::Grant if granted.is_asked => {
                granted.is_asked = false;
                self.give_back(descriptor).is_ok()
            }
            Kind::Failure if granted.is_asked => {
                granted.is_asked = false;
                true
            }
            Kind::Failure => {
                let call = granted.call.as_mut().filter(|call| call.reply.is_none());
                call.map(|call| call.reply = Some(super::Reply::Wrong))
                    .is_some()
            }
            _ => false,
        }
    }

    /// Gives the runs back that the call at this place was lent.
    pub(super) fn return_runs(&mut self, at: usize) -> Result<(), MemberError> {
        let granted = &mut self.granted[at];
        let runs = [granted.payload.take(), granted.result.take()];
        for run in runs.into_iter().flatten() {
            self.give_back(&run)?;
        }
        Ok(())
    }

    /// Gives the runs back of calls that are over, of which nobody has anything in place.
    pub(in crate::chain) fn return_unused(&mut self) -> Result<(), MemberError> {
        let request = self.current.map(|current| current.descriptor.request);
        for at in 0..self.granted.len() {
            let granted = &self.granted[at];
            let is_wanted = granted.call.as_ref().is_some_and(|call| {
                // Of this request, a reply may still be asked for.
                call.reply.is_none() || request == Some(call.request)
            });
            if !is_wanted && !granted.is_held() {
                self.return_runs(at)?;
            }
        }
        Ok(())
    }

    /// Gives the runs back that were lent for results of calls that nobody will reply to. Where the kernel knows who has a block, the
    /// gateway does that.
    pub(super) fn return_lost(&mut self) {
        let shape = self.pool.shape();
        if !self.peers.goes_by_notes() || shape.payload_bytes() == shape.block_bytes() {
            return;
        }
        let Some(own) = self.granted.first().map(|granted| granted.descriptor) else {
            return;
        };
        for (block, call) in self.pool.results_of(self.me) {
            let is_here = |granted: &Granted| {
                let is_its = granted.descriptor.block == call;
                let result = granted.result.as_ref().map(Block::of);
                is_its && (granted.is_out() || result == Some(block))
            };
            if self.granted.iter().any(is_here) {
                continue;
            }
            // The gateway's end is noticed where it is waited for.
            let _ = self.give_back(&Descriptor {
                generation: block.generation,
                block: block.index,
                ..own
            });
        }
    }

    /// Gives a run back, if it was not taken meanwhile.
    pub(super) fn give_back(&mut self, run: &Descriptor) -> Result<(), MemberError> {
        let owner = self.pool.owner(Block::of(run));
        if owner.and_then(Owner::caller) != Some(self.me) {
            return Ok(());
        }
        self.give(&Descriptor {
            target: Instance::GATEWAY,
            kind: Kind::Return,
            len: 0,
            ..*run
        })
    }
}
