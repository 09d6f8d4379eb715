//! What instances sent and must not: counted, told and, with it, the blocks taken back. Each pair of sender and target is remembered,
//! not each descriptor: a member may send as many as it likes.

use std::sync::atomic::Ordering;

use hearth_chain::sk_msg::{Denied, Reason};
use hearth_chain::{Block, Instance, Kind, Member, Note, Owner, Refused};
use hearth_ebpf::sproxy::records::Refusal;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::Path;
use super::pending::Came;
use crate::chains::RefusalStatus;

/// Pairs that are remembered, the latest ones.
const REMEMBERED: usize = 64;
/// Denied descriptors after which an instance is ended: an honest one has a few at most, when another ends.
const DENIED_MAX: u64 = 10_000;

/// Denied descriptors of an instance that are looked at for the log.
const TOLD_MAX: u64 = 256;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Vec<RefusalStatus>>);

impl Refusals {
    /// Adds one; how many there were of this kind, with it.
    fn add(&self, refusal: RefusalStatus) -> u64 {
        let mut all = self.0.lock();
        let is_same = |other: &RefusalStatus| {
            let key = |one: &RefusalStatus| (one.instance, one.to_instance, one.reason);
            key(other) == key(&refusal)
        };
        let count = match all.iter().position(is_same) {
            Some(at) => all.remove(at).count + 1,
            None => 1,
        };
        if all.len() >= REMEMBERED {
            all.remove(0);
        }
        all.push(RefusalStatus { count, ..refusal });
        count
    }

    /// All that are remembered, the latest last.
    pub(super) fn all(&self) -> Vec<RefusalStatus> {
        self.0.lock().clone()
    }
}

/// A reason as the API has it.
fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Kind => "kind_not_allowed",
        Reason::Target => "no_such_instance",
        Reason::Edge => "no_edge",
        Reason::Block => "block_not_in_hand",
        Reason::Gone => "instance_gone",
        Reason::Unknown(_) => "unknown",
    }
}

impl Path {
    /// Counts what the gateway itself refused.
    pub(super) fn count_refused(&self, from: Instance) {
        let member = self.member_of(from);
        if let Some(refused) = self.refused.get(usize::from(member.0)) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        self.note_refusal(from, Instance::GATEWAY, "not_valid", 0);
    }

    /// Remembers a refusal, and tells it, if it is not one of very many of this instance: so many there were before.
    fn note_refusal(&self, from: Instance, to: Instance, reason: &'static str, before: u64) {
        let (member, target) = (self.member_of(from), self.member_of(to));
        // Numbers that no instance ever had belong to no member.
        let to_member = (to == Instance::GATEWAY || target != Member::GATEWAY).then_some(target.0);
        let count = self.refusals.add(RefusalStatus {
            from: member.0,
            instance: from.0,
            to: to_member,
            to_instance: to.0,
            reason,
            count: 1,
            last: Timestamp::now(),
        });
        // Of a flood some are told, also of one to ever other targets.
        if count.is_power_of_two() && before < TOLD_MAX {
            let (from, to) = (from.0, to.0);
            let (member, target) = (self.name(member), self.name(target));
            tracing::warn!(
                chain = self.spec.name, %member, instance = from, %target, target_instance = to, reason, count,
                "an instance of a chain sent what it may not"
            );
        }
    }

    /// Does what the kernel has not: the descriptor came here instead of to its target.
    pub(super) fn deny(&self, from: Instance, denied: &Denied) {
        let to = denied.descriptor.target;
        let seat = self.seat_of(from);
        let before = seat
            .as_ref()
            .map_or(0, |seat| seat.denied.fetch_add(1, Ordering::Relaxed));
        self.note_refusal(from, to, name(denied.reason), before);
        if denied.is_returned {
            self.reclaim(from, denied);
        }
        if let Some(seat) = seat
            && before + 1 >= DENIED_MAX
        {
            let fault = "it sent what its chain does not allow, time and again".to_owned();
            seat.accuse(&self.spec.name, fault, None);
        }
    }

    /// Takes back a block that was in the sender's hand. Which one it is, and in which use, the kernel has made sure of: one that was
    /// freed and is used again is not meant. To whom it belongs, only the pool knows.
    fn reclaim(&self, from: Instance, denied: &Denied) {
        let block = Block::of(&denied.descriptor);
        let ended = self
            .pending
            .remove_if(|_, entry| entry.block == block)
            .pop();
        if let Some((_, entry)) = ended {
            let to = denied.descriptor.target;
            let target = self.name(self.member_of(to));
            let came = match denied.reason {
                Reason::Target | Reason::Gone => Came::Ended {
                    member: target.to_string(),
                    reason: "it ended just before the request reached it".into(),
                },
                _ => Came::Broken {
                    member: self.name(self.member_of(from)).to_string(),
                    reason: match denied.reason {
                        Reason::Edge => {
                            format!("it sent the request to \"{target}\", to which it has no edge")
                        }
                        _ => "it sent the request on as no member may".into(),
                    },
                },
            };
            return entry.end(self, came);
        }
        if self.free_abandoned(block) {
            return;
        }
        // A block for its own calls, or for another's: it goes back there.
        let Some(caller) = self.pool.owner(block).and_then(Owner::caller) else {
            return;
        };
        if caller != from {
            self.end_call(&denied.descriptor, block);
        } else if let Some(sockets) = self.carry.sockets()
            && self.seat_of(caller).is_some()
        {
            let Block { index, generation } = block;
            sockets.place.hand(index, generation, caller.0);
        }
    }

    /// Blocks that others have for calls of their own, and that an instance had in hand that has ended, are theirs again: they
    /// are told of its end, and use them for other calls.
    pub(super) fn take_from_ended(&self, ended: Instance) {
        let Some(sockets) = self.carry.sockets() else {
            return;
        };
        let seats = self.seats.read();
        for seat in seats.iter().filter(|seat| self.may_call(seat.member)) {
            for (block, owner) in self.pool.for_calls_of(seat.instance) {
                if sockets.holder(block) != Some(ended) {
                    continue;
                }
                match owner {
                    // Of which who calls knows nothing so far.
                    Owner::Call {
                        is_result: true, ..
                    } => {
                        let _ = self.pool.free(block);
                    }
                    _ => sockets
                        .place
                        .hand(block.index, block.generation, seat.instance.0),
                }
            }
        }
    }

    /// Who has a block in hand, and at which place of its route: by the kernel's word where it carries the descriptors, else by its
    /// members'.
    pub(super) fn holding(&self, block: Block) -> Result<Note, Refused> {
        let noted = self.pool.noted(block)?;
        let holder = self.carry.sockets().and_then(|all| all.holder(block));
        Ok(Note {
            holder: holder.unwrap_or(noted.holder),
            ..noted
        })
    }

    /// Ends the instances whose sockets the kernel has given up: what they sent was no descriptor.
    pub(super) fn end_dead_sockets(&self) {
        let Some(sockets) = self.carry.sockets() else {
            return;
        };
        for seat in self.seats.read().iter() {
            let did = sockets.place.seated(seat.instance.0).unwrap_or_default();
            if did.refused[Refusal::Size as usize] > 0 && !seat.hung.is_cancelled() {
                self.note_refusal(seat.instance, Instance::GATEWAY, "no_descriptor", 0);
                let fault = "it sent what is no descriptor".to_owned();
                seat.accuse(&self.spec.name, fault, None);
            }
        }
    }

    /// Whether a member may call any other.
    pub(super) fn may_call(&self, member: Member) -> bool {
        let mut members = (1..=self.plan.members()).map(Member);
        members.any(|to| self.plan.allows(member, to, Kind::Call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_remembered_once_and_the_oldest_are_forgotten() {
        let refusals = Refusals::default();
        let refusal = |instance, to_instance| RefusalStatus {
            from: 1,
            instance,
            to: Some(2),
            to_instance,
            reason: "no_edge",
            count: 1,
            last: Timestamp::UNIX_EPOCH,
        };
        for count in 1..=3 {
            assert_eq!(refusals.add(refusal(1, 2)), count);
        }
        assert_eq!(refusals.add(refusal(1, 3)), 1);
        assert_eq!(refusals.all().len(), 2);
        for to in 0..1_000 {
            refusals.add(refusal(7, to));
        }
        let all = refusals.all();
        assert_eq!(all.len(), REMEMBERED);
        assert_eq!(all.last().unwrap().to_instance, 999);
    }
}
