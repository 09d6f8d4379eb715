//! How a helper's thread reports to the keeper.

use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use crate::SandboxError;
use crate::network::Attached;
use crate::protocol::{Counters, Key, LeafNumber, Sequence};

/// What a helper's thread reports.
pub(crate) enum News {
    /// An instance could not be moved into its cgroup.
    AttachFailed(Key, LeafNumber, String),
    /// Something was done with an image, or not.
    Image(Sequence, Result<(), SandboxError>),
    /// A sandbox has a network, or cannot have it.
    Attached(Key, Result<Attached, SandboxError>),
    /// Nothing is left of a sandbox's network.
    Detached(Key),
    /// Something about a network was done, or counted, or not.
    Network(Sequence, Result<Option<Counters>, SandboxError>),
}

/// Where helpers report. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    sender: mpsc::Sender<News>,
    bell: Arc<OwnedFd>,
}

impl Reporter {
    /// The keeper has the other end, and waits at the bell.
    pub(crate) fn new(sender: mpsc::Sender<News>, bell: Arc<OwnedFd>) -> Self {
        Self { sender, bell }
    }

    /// Reports.
    pub(crate) fn report(&self, news: News) {
        // The keeper may have ended.
        let _ = self.sender.send(news);
        // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}
