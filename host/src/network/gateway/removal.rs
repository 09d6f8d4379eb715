//! The slow part of removing a sandbox's network, for a thread of its own.

use std::sync::{Arc, Mutex};

use super::lock;
use crate::network::address::{INTERFACE, Slots};
use crate::network::connections::Connections;
use crate::network::link::Route;
use crate::protocol::Key;

/// What remains of a sandbox after its rules are gone.
pub(in crate::network) struct Leftover {
    pub(in crate::network) key: Key,
    pub(super) slot: u32,
    pub(super) mark: u32,
}

/// Removes its interface and its connections. That takes the kernel milliseconds, for which nothing should wait.
pub(in crate::network) struct Remover {
    pub(super) slots: Arc<Mutex<Slots>>,
    pub(super) route: Route,
    pub(super) here: Connections,
    pub(super) host: Option<Connections>,
}

impl Remover {
    /// From now on the host's own namespace may have connections, too.
    pub(in crate::network) fn reach_host(&mut self, host: Connections) {
        self.host = Some(host);
    }

    pub(in crate::network) fn remove(&self, leftover: &Leftover) {
        // The interface may have disappeared with the sandbox's namespace.
        let _ = self.route.remove(INTERFACE + leftover.slot);
        for connections in [Some(&self.here), self.host.as_ref()].into_iter().flatten() {
            if let Err(error) = connections.forget(leftover.mark) {
                tracing::warn!(%error, "cannot forget the connections of a sandbox");
            }
        }
        lock(&self.slots).put(leftover.slot);
    }
}
