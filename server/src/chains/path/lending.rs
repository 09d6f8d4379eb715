//! Calls whose payloads or results are larger than a block. The gateway lends them runs: for a payload to who calls, and for a result to
//! who was called, each in exchange for the block that the asker has in hand, which goes back to who calls. A run is returned when the
//! call is over. Whose it is stands in the ledger ([`Owner::Call`]); nothing else is kept of it.

use hearth_chain::{Block, Descriptor, Instance, Kind, Note, Owner, SendError};

use super::Path;
use super::grants::GRANTED;
use super::pending::Entry;
use super::seats::Wrong;

/// Runs that an instance's calls may have at a time, so that a member cannot take the whole pool in the name of another: one for the
/// payload and one for the result of each, and as many that are on their way back.
const LENT_MAX: usize = 4 * GRANTED as usize;

/// A block for a call, or a run that was lent for one.
#[derive(Debug, Clone, Copy)]
struct Lent {
    block: Block,
    caller: Instance,
    /// The number of the block that the call is made with.
    call: u16,
    /// Whether it is none that who calls has had before.
    is_result: bool,
    /// Whether it is a run that was lent.
    is_run: bool,
}

impl Lent {
    fn of(block: Block, owner: Owner) -> Option<Self> {
        let (caller, call, is_result, is_run) = match owner {
            Owner::Instance { instance, .. } => (instance, block.index as u16, false, false),
            Owner::Call {
                instance,
                call,
                is_result,
            } => (instance, call, is_result, true),
            Owner::Gateway | Owner::Request { .. } => return None,
        };
        Some(Self {
            block,
            caller,
            call,
            is_result,
            is_run,
        })
    }
}

impl Path {
    /// Does what a member says with a block for calls that it gives to the gateway; nothing if the block is none.
    pub(super) fn take_of_call(
        &self,
        from: Instance,
        descriptor: &Descriptor,
    ) -> Option<Result<(), Wrong>> {
        let block = Block::of(descriptor);
        let lent = Lent::of(block, self.pool.owner(block)?)?;
        let (member, caller) = (self.member_of(from), self.member_of(lent.caller));
        // By the kernel's word it has the block, and may have been sent it by a member that broke a rule.
        let may_have = descriptor.len == 0 && self.carry.sockets().is_some();
        if from != lent.caller && !may_have && !self.plan.allows(member, caller, Kind::Reply) {
            let fault = "it gave back a block that is another member's";
            return Some(Err(Wrong::Rule(fault.to_owned())));
        }
        Some(match descriptor.len {
            0 => self.take_lent(from, descriptor, lent),
            _ => self.lend(from, descriptor, lent),
        })
    }

    /// Lends a run for as many bytes as the descriptor says.
    fn lend(&self, from: Instance, descriptor: &Descriptor, lent: Lent) -> Result<(), Wrong> {
        let room = self.pool.room(lent.block).map_err(|_| Wrong::Stray)?;
        let is_callers = from == lent.caller;
        if descriptor.len <= room
            || descriptor.len > self.pool.shape().payload_bytes()
            || is_callers && lent.is_run
        {
            if !is_callers {
                self.give_to_caller(lent);
            }
            let fault = "it asked for room that its call has, or that no call may have";
            return Err(Wrong::Rule(fault.to_owned()));
        }
        let all = self.pool.for_calls_of(lent.caller);
        let runs = all.iter().filter_map(|(_, owner)| match owner {
            Owner::Call {
                call, is_result, ..
            } => Some((*call, *is_result)),
            _ => None,
        });
        let has_too_many = runs.clone().count() >= LENT_MAX;
        let mut results = runs.filter(|(_, is_result)| *is_result);
        // Who keeps to the rules has given that one back, or is about to.
        let has_another = !lent.is_result && results.any(|(call, _)| call == lent.call);
        let is_over = self.pending.with(descriptor.request, Entry::is_given_up);
        let run = match is_over {
            Some(false) if !has_too_many => {
                let owner = Owner::Call {
                    instance: lent.caller,
                    call: lent.call,
                    is_result: !is_callers,
                };
                let run = self.pool.allocate_for(owner, descriptor.len as usize).ok();
                // One that ends from now on has its blocks taken back, this one included.
                run.filter(|&run| self.seat_of(lent.caller).is_some() || self.let_go(run))
            }
            _ => None,
        };
        let (block, kind) = match run {
            Some(run) => {
                if self.pool.copy(lent.block, run).is_err() {
                    self.let_go(run);
                    return Err(Wrong::Stray);
                }
                self.give_to_caller(lent);
                (run, Kind::Grant)
            }
            None => (lent.block, Kind::Failure),
        };
        let answer = Descriptor {
            target: from,
            block: block.index,
            generation: block.generation,
            len: 0,
            kind,
            ..*descriptor
        };
        self.note(&answer);
        match self.carry.sending().send(&answer) {
            // What could not be woken looks at its ring all the same, if late.
            Ok(()) | Err(SendError::Os { .. })
                if run.is_none() && (has_too_many || has_another) =>
            {
                return Err(Wrong::Stray);
            }
            Ok(()) | Err(SendError::Os { .. }) => {}
            Err(_) if run.is_some() => {
                self.let_go(block);
            }
            Err(_) => self.give_to_caller(lent),
        }
        Ok(())
    }

    /// Takes back what a member has of a call.
    fn take_lent(&self, from: Instance, descriptor: &Descriptor, lent: Lent) -> Result<(), Wrong> {
        if from == lent.caller {
            if !lent.is_run {
                let fault = "it gave back a block that it was granted";
                return Err(Wrong::Rule(fault.to_owned()));
            }
            self.let_go(lent.block);
            return Ok(());
        }
        self.end_call(descriptor, lent.block);
        if self.carry.sockets().is_none() {
            return Err(Wrong::Stray);
        }
        // Who called has the kernel's word against it: it was sent something that it has refused.
        self.refuse(lent.caller, Wrong::Stray, None);
        Ok(())
    }

    /// Gives a block for calls, or a run that was lent for one, back to who calls, and says that there will be no reply.
    pub(super) fn end_call(&self, descriptor: &Descriptor, block: Block) {
        let owner = self.pool.owner(block);
        let Some(lent) = owner.and_then(|owner| Lent::of(block, owner)) else {
            return;
        };
        if self.seat_of(lent.caller).is_none() {
            // Nobody has it, so it is taken back with the others.
            return self.note_holder(block, Instance::GATEWAY);
        }
        self.give_to_caller(lent);
        let is_its = |(block, owner): &(Block, Owner)| {
            matches!(owner, Owner::Instance { .. }) && block.index == u32::from(lent.call)
        };
        let all = self.pool.for_calls_of(lent.caller);
        let Some((own, _)) = all.into_iter().find(is_its) else {
            return;
        };
        // If it takes no more, it has ended, or its call ends in time.
        let _ = self.carry.sending().send(&Descriptor {
            target: lent.caller,
            block: own.index,
            generation: own.generation,
            len: 0,
            kind: Kind::Failure,
            // The kernel's records of what it has refused have it set.
            more: false,
            ..*descriptor
        });
    }

    /// Puts what who calls has had before into its hand. What it has not is nobody's.
    fn give_to_caller(&self, lent: Lent) {
        if lent.is_result {
            self.let_go(lent.block);
            return;
        }
        self.note_holder(lent.block, lent.caller);
        if let Some(sockets) = self.carry.sockets() {
            let Block { index, generation } = lent.block;
            sockets.place.hand(index, generation, lent.caller.0);
        }
    }

    fn note_holder(&self, block: Block, holder: Instance) {
        let note = Note {
            holder,
            epoch: 0,
            hop: 0,
        };
        self.pool.note(block, note);
    }

    /// Frees a run; false, for who filters.
    fn let_go(&self, run: Block) -> bool {
        // Somebody else has taken it back, if not.
        let _ = self.pool.free(run);
        false
    }
}
