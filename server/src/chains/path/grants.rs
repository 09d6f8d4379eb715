//! Blocks that instances use for calls of their own. The gateway grants them when an instance joins, and takes them back when it has
//! ended: at once, or, if another instance has one in hand and may still write to it, when that one returns it or ends.

use hearth_chain::{Block, Descriptor, Instance, Kind, Owner};

use super::{Path, Seat};

/// Blocks for each instance whose member may call others: calls that it has under way at a time.
pub(super) const GRANTED: u32 = 4;

/// A block of an instance that has ended.
#[derive(Debug)]
pub(super) struct Abandoned {
    block: Block,
    /// Who had it in hand when its owner ended.
    holder: Instance,
}

impl Path {
    /// Grants an instance its blocks, if it may make calls. From a pool that is half empty it gets fewer: requests go first.
    pub(super) fn grant(&self, seat: &Seat) {
        if !self.may_call(seat.member) {
            return;
        }
        for _ in 0..GRANTED {
            if self.pool.in_use() * 2 >= self.pool.shape().blocks() {
                return;
            }
            let owner = Owner::Instance {
                instance: seat.instance,
                epoch: 0,
            };
            let Ok(block) = self.pool.allocate(owner) else {
                return;
            };
            let descriptor = Descriptor {
                request: 0,
                generation: block.generation,
                target: seat.instance,
                block: block.index,
                len: 0,
                route: 0,
                hop: 0,
                table: self.table,
                kind: Kind::Grant,
                more: false,
            };
            self.note(&descriptor);
            // An instance that takes none has ended, and its blocks come back.
            let _ = self.carry.sending().send(&descriptor);
        }
    }

    /// Takes back the blocks of an instance that has ended, and those that it had in hand of others that had ended before.
    pub(super) fn reclaim_grants(&self, ended: Instance) {
        let mut abandoned = self.abandoned.lock();
        for (block, _) in self.pool.for_calls_of(ended) {
            let holder = self.holding(block).map_or(ended, |note| note.holder);
            if holder != ended && self.seat_of(holder).is_some() {
                abandoned.push(Abandoned { block, holder });
            } else {
                // Nobody else frees it.
                let _ = self.pool.free(block);
            }
        }
        for back in abandoned.extract_if(.., |one| one.holder == ended) {
            let _ = self.pool.free(back.block);
        }
    }

    /// Takes back a block whose owner has ended, whoever had it in hand; whether there was one.
    pub(super) fn free_abandoned(&self, block: Block) -> bool {
        let mut abandoned = self.abandoned.lock();
        let at = abandoned.iter().position(|one| one.block == block);
        let freed = at.map(|at| self.pool.free(abandoned.swap_remove(at).block));
        freed.is_some()
    }

    /// Takes back a block whose owner has ended, from who had it in hand.
    pub(super) fn take_back(&self, from: Instance, descriptor: &Descriptor) -> Option<()> {
        let block = Block::of(descriptor);
        let mut abandoned = self.abandoned.lock();
        let at = abandoned
            .iter()
            .position(|one| one.block == block && one.holder == from)?;
        abandoned.swap_remove(at);
        self.pool.free(block).ok()
    }
}
