//! The removal of what takes the kernel long, on a thread of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use hearth_host::protocol::Key;

use crate::address::INTERFACE;
use crate::connections::Connections;
use crate::link::Route;

/// What is left of a sandbox when its rules are gone.
pub(crate) struct Remnant {
    pub(crate) key: Key,
    pub(super) slot: u32,
    /// That of its connections.
    pub(super) mark: u32,
}

/// Removes interfaces and connections. The kernel takes milliseconds for it, which nothing should wait for.
pub(crate) struct Remover {
    pub(super) route: Route,
    /// Here and in the host's own namespace.
    pub(super) connections: [Connections; 2],
}

impl Remover {
    /// Starts its thread: it takes remnants, gives them back when they are removed, and rings the bell then.
    pub(crate) fn start(
        self,
        bell: Arc<OwnedFd>,
    ) -> io::Result<(mpsc::Sender<Remnant>, mpsc::Receiver<Remnant>)> {
        let (sender, remnants) = mpsc::channel();
        let (removed, receiver) = mpsc::channel();
        let work = move || {
            for remnant in remnants {
                self.remove(&remnant);
                if removed.send(remnant).is_err() {
                    return; // the gateway has ended
                }
                // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
                let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
            }
        };
        std::thread::Builder::new()
            .name("hearth-unlink".to_owned())
            .spawn(work)?;
        Ok((sender, receiver))
    }

    fn remove(&self, remnant: &Remnant) {
        // The interface may have disappeared with the sandbox's namespace.
        let _ = self.route.remove(INTERFACE + remnant.slot);
        for connections in &self.connections {
            if let Err(error) = connections.forget(remnant.mark) {
                tracing::warn!(%error, "cannot forget the connections of a sandbox");
            }
        }
    }
}
