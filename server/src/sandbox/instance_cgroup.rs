//! One instance's cgroup, as its owner holds it: moves the instance in, stops and counts what is in it.

use std::os::fd::OwnedFd;
use std::sync::mpsc;

use rustix::process::Pid;
use tokio::sync::oneshot;

use super::attach::Attach;
use super::cgroup::Leaf;
use super::mailbox::{Key, Mailbox, Message};
use crate::host_error::HostError;

/// The cgroup leaf of one instance. Dropping it kills what is in it and removes it (asynchronously).
pub struct InstanceCgroup {
    pub(super) key: Key,
    pub(super) uid: u32,
    pub(super) leaf: Leaf,
    pub(super) mailbox: Mailbox,
    pub(super) attach: mpsc::Sender<Attach>,
}

impl InstanceCgroup {
    /// Moves the instance (host pid, and its pidfd) into the leaf; done on a thread of its own, not waited for. When it
    /// cannot be moved, the receiver says so: it has no limits of its own then, and must be ended.
    pub fn attach(&self, pid: u32, pidfd: OwnedFd) -> oneshot::Receiver<HostError> {
        let (refused, receiver) = oneshot::channel();
        // The thread lives as long as this sender.
        let _ = self.attach.send(Attach {
            procs: self.leaf.procs(),
            pid,
            pidfd,
            uid: self.uid,
            refused,
        });
        receiver
    }

    /// Kills every process of the instance, including strays, without waiting for it. The caller, who has its pidfd,
    /// kills the instance itself, which may not have been moved into its leaf yet.
    pub fn kill(&self) {
        self.mailbox
            .send(Message::Kill(self.key, self.leaf.clone()));
    }

    /// Processes of the instance, whose own is `pid`. What that started before it was moved here is moved after it. Reads the
    /// kernel's files.
    pub fn processes(&self, pid: u32) -> usize {
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            self.leaf.adopt(pid, self.uid);
        }
        self.leaf.processes(self.uid)
    }

    /// Stops them; returns how many there are. Reads the kernel's files.
    pub fn freeze(&self) -> usize {
        self.leaf.freeze(self.uid)
    }

    /// Resumes them. Reads the kernel's files.
    pub fn thaw(&self) {
        self.leaf.thaw(self.uid);
    }

    /// Whether a process in it was killed by the memory limit.
    pub fn oom_killed(&self) -> bool {
        self.leaf.oom_kills() > 0
    }
}

impl Drop for InstanceCgroup {
    fn drop(&mut self) {
        self.mailbox
            .send(Message::Release(self.key, self.leaf.clone()));
    }
}
