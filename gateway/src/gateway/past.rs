//! The fast way, as the process that serves sees it.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use hearth_host::Capability;

use super::Gateway;
use crate::fast::Fast;

impl Gateway {
    /// Why there is none.
    pub(crate) fn fast_missing(&self) -> Option<Capability> {
        self.fast.as_ref().err().map(|reason| Fast::missing(reason))
    }

    /// Sockets that say when it may have to be closed.
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fast.iter().flat_map(Fast::watched)
    }

    /// One of them has said so.
    pub(crate) fn wake(&mut self) {
        if let Ok(fast) = &mut self.fast {
            fast.wake();
        }
    }

    /// How long it has nothing to do by itself.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.fast.as_ref().ok()?.due()
    }

    /// Does what is due. What the server is to be told.
    pub(crate) fn work(&mut self) -> Option<Capability> {
        let fast = self.fast.as_mut().ok()?;
        fast.work();
        fast.news()
    }
}
