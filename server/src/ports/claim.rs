//! What a change claims before it is stored, and takes over then.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Entry, PortError, PortTable};
use crate::model::{Port, PortLimits, PortTrigger};

/// Ports that a change has claimed. Given up when dropped.
pub struct Claim {
    table: PortTable,
    function: Arc<str>,
    wanted: Vec<PortTrigger>,
    limits: PortLimits,
    /// What is new; without a socket until it is open, or because its connections are steered.
    sockets: HashMap<Port, Option<OwnedFd>>,
}

impl Claim {
    /// Nothing yet.
    pub(super) fn new(
        table: &PortTable,
        function: &str,
        wanted: &[PortTrigger],
        limits: PortLimits,
    ) -> Self {
        Self {
            table: table.clone(),
            function: function.into(),
            wanted: wanted.to_vec(),
            limits,
            sockets: HashMap::new(),
        }
    }

    /// A reserved port is open.
    pub(super) fn opened(&mut self, port: Port, socket: Option<OwnedFd>) {
        self.sockets.insert(port, socket);
    }

    /// Whether the port had to be claimed: false if the function has it.
    pub(super) fn reserve(&mut self, port: Port) -> Result<bool, PortError> {
        let mut entries = self.table.0.entries.lock();
        if let Some(entry) = entries.get(&port) {
            return match entry.function == self.function {
                true => Ok(false),
                false => Err(PortError::Function(entry.function.to_string())),
            };
        }
        let entry = Entry {
            function: self.function.clone(),
            trigger: None,
            failed: None,
            closed: CancellationToken::new(),
        };
        entries.insert(port, entry);
        drop(entries);
        self.sockets.insert(port, None);
        Ok(true)
    }

    /// From here on the function has these ports, and no other.
    pub fn take_over(mut self) {
        let inner = &self.table.0;
        let mut entries = inner.entries.lock();
        entries.retain(|port, entry| {
            let stays = entry.function != self.function
                || self.wanted.iter().any(|trigger| trigger.port() == *port);
            if !stays {
                entry.closed.cancel();
            }
            stays
        });
        for trigger in &self.wanted {
            let port = trigger.port();
            let Some(entry) = entries.get_mut(&port) else {
                continue;
            };
            entry.trigger = Some(*trigger);
            if let Some(socket) = self.sockets.remove(&port) {
                inner.hand_on(port, socket, entry);
            }
        }
        inner.ingress.limit(&self.function, self.limits);
        inner.settle(&self.function, &entries);
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
