//! The removal of what takes the kernel long, on a thread of its own.

use std::sync::{Arc, Mutex};

use super::lock;
use crate::helpers::{Helper, Reporter};
use crate::network::address::{INTERFACE, Slots};
use crate::network::connections::Connections;
use crate::network::link::Route;

/// Removes what is left of a sandbox when its rules are gone: its interface and its connections. The kernel takes milliseconds
/// for it, which nothing should wait for.
pub(super) struct Remover {
    slots: Arc<Mutex<Slots>>,
    route: Route,
    here: Connections,
    /// In the host's own namespace, once there may be some.
    pub(super) host: Option<Connections>,
}

impl Remover {
    /// In the calling thread's network namespace.
    pub(super) fn start(
        slots: Arc<Mutex<Slots>>,
        reporter: Reporter,
    ) -> Result<Helper<Self>, String> {
        Helper::start("hearth-unlink", reporter, move || {
            Ok(Self {
                slots,
                route: Route::open().map_err(|error| error.to_string())?,
                here: Connections::open().map_err(|error| error.to_string())?,
                host: None,
            })
        })
    }

    pub(super) fn remove(&self, slot: u32, mark: u32) {
        // The interface may have disappeared with the sandbox's namespace.
        let _ = self.route.remove(INTERFACE + slot);
        for connections in [Some(&self.here), self.host.as_ref()].into_iter().flatten() {
            if let Err(error) = connections.forget(mark) {
                tracing::warn!(%error, "cannot forget the connections of a sandbox");
            }
        }
        lock(&self.slots).put(slot);
    }
}
