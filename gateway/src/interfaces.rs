//! Work at interfaces that the kernel does not end before every processor has let go of them, which takes milliseconds: on a
//! thread of its own, in order.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use hearth_ebpf::gateway::Attachments;
use hearth_host::protocol::Key;

use crate::address::INTERFACE;
use crate::connections::Connections;
use crate::link::Route;

/// What is left of a sandbox when its rules are gone.
pub(crate) struct Remnant {
    pub(crate) key: Key,
    pub(crate) slot: u32,
    /// That of its connections.
    pub(crate) mark: u32,
}

/// What is to be done.
pub(crate) enum Job {
    /// Let the programs of the fast way see what comes from this slot.
    Attach(u32),
    /// Remove what is left of a sandbox.
    Remove(Remnant),
    /// Take the programs off all interfaces of sandboxes.
    DetachAll,
}

/// What was done.
pub(crate) enum Done {
    Removed(Remnant),
    /// The programs see nothing of a sandbox: why.
    NotAttached(io::Error),
}

/// See the module.
pub(crate) struct Worker {
    pub(crate) jobs: mpsc::Receiver<Job>,
    pub(crate) route: Route,
    /// Here and in the host's own namespace.
    pub(crate) connections: [Connections; 2],
    /// None if there is no fast way.
    pub(crate) attachments: Option<Attachments>,
}

impl Worker {
    /// Starts its thread, which says what it has done, and rings the bell then.
    pub(crate) fn start(mut self, bell: Arc<OwnedFd>) -> io::Result<mpsc::Receiver<Done>> {
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            while let Ok(job) = self.jobs.recv() {
                let Some(done) = self.work(job) else {
                    continue;
                };
                if sender.send(done).is_err() {
                    return; // the gateway has ended
                }
                // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
                let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
            }
        };
        std::thread::Builder::new()
            .name("hearth-links".to_owned())
            .spawn(work)?;
        Ok(receiver)
    }

    fn work(&mut self, job: Job) -> Option<Done> {
        match job {
            Job::Attach(slot) => {
                let attached = self
                    .attachments
                    .as_mut()?
                    .attach(slot as u16, INTERFACE + slot);
                // An interface that has disappeared with its sandbox needs no program.
                let failed = attached.err()?;
                (failed.raw_os_error() != Some(rustix::io::Errno::NODEV.raw_os_error()))
                    .then_some(Done::NotAttached(failed))
            }
            Job::Remove(remnant) => {
                self.remove(&remnant);
                Some(Done::Removed(remnant))
            }
            Job::DetachAll => {
                self.attachments = None;
                None
            }
        }
    }

    fn remove(&mut self, remnant: &Remnant) {
        // The interface may have disappeared with the sandbox's namespace.
        let _ = self.route.remove(INTERFACE + remnant.slot);
        if let Some(attachments) = &mut self.attachments {
            attachments.detach(remnant.slot as u16);
        }
        for connections in &self.connections {
            if let Err(error) = connections.forget(remnant.mark) {
                tracing::warn!(%error, "cannot forget the connections of a sandbox");
            }
        }
    }
}
