//! What a change claims before it is stored, and takes over then.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use super::{Entry, PortError, PortTable};
use crate::model::{Port, PortLimits, PortOwner, PortTrigger};

/// Ports that a change has claimed. Given up when dropped.
pub struct Claim {
    table: PortTable,
    owner: PortOwner,
    wanted: Vec<PortTrigger>,
    limits: PortLimits,
    /// What is new; without a socket until it is open, or because its connections are steered.
    sockets: HashMap<Port, Option<OwnedFd>>,
}

impl Claim {
    /// Nothing yet.
    pub(super) fn new(
        table: &PortTable,
        owner: &PortOwner,
        wanted: &[PortTrigger],
        limits: PortLimits,
    ) -> Self {
        Self {
            table: table.clone(),
            owner: owner.clone(),
            wanted: wanted.to_vec(),
            limits,
            sockets: HashMap::new(),
        }
    }

    /// A reserved port is open.
    pub(super) fn opened(&mut self, port: Port, socket: Option<OwnedFd>) {
        self.sockets.insert(port, socket);
    }

    /// Whether the port had to be claimed: false if its owner is the one that wants it.
    pub(super) fn reserve(&mut self, port: Port) -> Result<bool, PortError> {
        let mut entries = self.table.0.entries.lock();
        if let Some(entry) = entries.get(&port) {
            return match entry.owner == self.owner {
                true => Ok(false),
                false => Err(PortError::Owner(entry.owner.clone())),
            };
        }
        let entry = Entry::new(self.owner.clone(), None);
        entries.insert(port, entry);
        drop(entries);
        self.sockets.insert(port, None);
        Ok(true)
    }

    /// From here on the owner has these ports, and no other.
    pub fn take_over(mut self) {
        let inner = &self.table.0;
        let mut entries = inner.entries.lock();
        entries.retain(|port, entry| {
            let stays = entry.owner != self.owner
                || self
                    .wanted
                    .iter()
                    .any(|trigger| trigger.port() == Some(*port));
            if !stays {
                entry.closed.cancel();
            }
            stays
        });
        for trigger in &self.wanted {
            let Some(port) = trigger.port() else {
                continue;
            };
            let Some(entry) = entries.get_mut(&port) else {
                continue;
            };
            entry.trigger = Some(trigger.clone());
            if let Some(Some(socket)) = self.sockets.remove(&port) {
                inner.hand_on(port, socket, entry, entry.closed.clone());
            }
        }
        self.table.link(&self.owner, &self.wanted);
        inner.ingress.limit(&self.owner, self.limits);
        inner.settle(&self.owner, &entries);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut entries = self.table.0.entries.lock();
        for port in self.sockets.keys() {
            entries.remove(port);
        }
    }
}
