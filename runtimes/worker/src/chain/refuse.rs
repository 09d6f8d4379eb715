//! What another member must not have sent.

use hearth_chain::{Descriptor, Instance, Kind, Owner};

use super::ChainMember;

impl ChainMember {
    /// Counts a descriptor that is not followed. Where the kernel knows who has a block in hand, this instance has the one that came
    /// with it, and gives it to the gateway, for whoever it belongs to: by the ledger's word, not by the sender's.
    pub(super) fn refuse(&mut self, descriptor: &Descriptor) {
        self.board.count_refused();
        if self.peers.goes_by_notes() {
            return;
        }
        let Some((block, owner)) = self.pool.in_use(descriptor.block) else {
            return;
        };
        if owner.caller() == Some(self.me) {
            return;
        }
        let (request, route) = match owner {
            Owner::Request { id, route } => (id, route),
            _ => (descriptor.request, descriptor.route),
        };
        // The gateway's end is noticed where it is waited for.
        let _ = self.give(&Descriptor {
            request,
            route,
            target: Instance::GATEWAY,
            generation: block.generation,
            len: 0,
            kind: Kind::Return,
            more: false,
            ..*descriptor
        });
    }
}
