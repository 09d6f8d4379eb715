//! The messages to the sandbox thread.

use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use rustix::event::EventfdFlags;
use tokio::sync::oneshot;

use super::cgroup::Leaf;
use super::{PrewarmedSpec, Sandbox, SandboxError, SandboxSpec};

/// A sandbox, as the thread counts them; never used twice.
pub type Key = u64;

/// Everything the sandbox thread does.
pub enum Message {
    /// Create a sandbox. It is destroyed again if nothing waits for the response any more.
    Create(
        Box<SandboxSpec>,
        oneshot::Sender<Result<Sandbox, SandboxError>>,
    ),
    /// Create a pre-warmed sandbox, unless there is one for that runtime.
    KeepPrewarmed(Box<PrewarmedSpec>),
    /// End that of a runtime.
    EndPrewarmed(&'static str),
    /// Create an instance cgroup immediately.
    InstanceCgroup(Key, oneshot::Sender<Result<Leaf, SandboxError>>),
    /// Prepare instance cgroups for later.
    FillPool(Key),
    /// Kill everything in an instance cgroup, and its orphans.
    Kill(Key, Leaf),
    /// The same, and remove the cgroup once it is empty.
    Release(Key, Leaf),
    /// Destroy a sandbox, and say so when it is gone.
    Destroy(Key, Option<oneshot::Sender<()>>),
    /// Destroy all sandboxes, and say so when they are gone. Nothing can be made after that.
    Shutdown(oneshot::Sender<()>),
    /// No new sandbox can be requested any more.
    Orphaned,
}

/// Sends messages. Cheap to clone.
#[derive(Clone)]
pub struct Mailbox {
    sender: mpsc::Sender<Message>,
    bell: Arc<OwnedFd>,
}

impl Mailbox {
    /// A mailbox, and the thread's side: where the messages come out, and the eventfd that says so.
    pub fn new() -> rustix::io::Result<(Self, mpsc::Receiver<Message>, Arc<OwnedFd>)> {
        let bell = Arc::new(rustix::event::eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?);
        let (sender, receiver) = mpsc::channel();
        let mailbox = Self {
            sender,
            bell: Arc::clone(&bell),
        };
        Ok((mailbox, receiver, bell))
    }

    /// Sends a message; false when the thread is gone, which it is after a shutdown only.
    pub fn send(&self, message: Message) -> bool {
        let sent = self.sender.send(message).is_ok();
        // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        sent
    }
}
