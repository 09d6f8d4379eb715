//! What becomes of a sandbox that has ended, as far as the worker has not to do it.

use hearth_host::protocol::Key;

use super::{Gateway, Sandbox};
use crate::interfaces::{Done, Job, Remnant};
use crate::rules;

impl Gateway {
    /// Ends what a sandbox may do, and has the rest removed. False if there is nothing to remove.
    pub(crate) fn detach(&mut self, key: Key) -> bool {
        let Some(Sandbox { slot, group, .. }) = self.sandboxes.remove(&key) else {
            return false;
        };
        let change = self.groups.leave(group, key);
        let removed = rules::remove(&self.nftables, slot, &self.addresses, group, change);
        if let Err(error) = removed {
            tracing::warn!(%error, "cannot remove the rules of a sandbox");
        }
        if let Ok(fast) = &mut self.fast {
            fast.detach(slot, group, self.groups.limits(group));
        }
        let mark = self.addresses.mark(slot);
        let sent = self.worker.send(Job::Remove(Remnant { key, slot, mark }));
        if sent.is_err() {
            // It has ended before its time.
            self.slots.put(slot);
        }
        sent.is_ok()
    }

    /// What the worker has done. The sandbox of which nothing is left: its addresses are free.
    pub(crate) fn done(&mut self, done: Done) -> Option<Key> {
        match done {
            Done::Removed(Remnant { key, slot, .. }) => {
                self.slots.put(slot);
                Some(key)
            }
            Done::NotAttached(error) => {
                if let Ok(fast) = &mut self.fast {
                    fast.fail(&format!("an interface of a sandbox: {error}"));
                }
                None
            }
        }
    }
}
