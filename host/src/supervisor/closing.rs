//! The supervisor's end.

use std::fs;

use super::Supervisor;
use crate::HostProcessError;
use crate::gateway::Gateway;
use crate::protocol::Reply;

impl Supervisor {
    /// The server is gone, or is not to be listened to any more: so is everything.
    pub(super) fn hang_up(&mut self) {
        self.server.hang_up(&self.epoll);
        self.close();
    }

    /// Ends everything, and says why.
    pub(super) fn give_up(&mut self, why: HostProcessError) {
        self.failed.get_or_insert(why);
        self.hang_up();
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        let keys: Vec<_> = self.live.keys().copied().collect();
        for key in keys {
            self.destroy(key);
        }
    }

    /// Nothing is left, and nothing will come.
    pub(super) fn done(&self) -> bool {
        let is_reaping = self.jobs.iter().any(|job| job.of.is_none());
        self.closing && self.live.is_empty() && !is_reaping
    }

    /// Removes what is not any one sandbox's.
    pub(super) fn finish(mut self, gateway: Option<Gateway>) {
        // After an error there may be some; they die with this thread at the latest.
        for live in self.live.values() {
            live.kill();
        }
        // Its interface and table on the host end with it.
        drop(gateway);
        if let Err(error) = self
            .host
            .top
            .leave_shared_cores()
            .and_then(|()| self.host.top.remove())
        {
            tracing::warn!(%error, "cannot remove the sandboxes' cgroup");
        }
        // The directory may have been removed with the one it is in.
        let _ = fs::remove_dir_all(&self.host.dir);
        for sequence in std::mem::take(&mut self.closed) {
            self.say(Reply::Done(sequence));
        }
    }
}
