//! The server's end of the socket to the host process.
//!
//! - [`introduction`]: what the host process says at first; [`replies`]: what it says then.

mod introduction;
mod replies;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth_host::SandboxError;
use hearth_host::cgroup::Version;
use hearth_host::protocol::{Key, LeafNumber, Request, Sequence};
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(super) use self::introduction::{Introduction, introduction};
use super::gateway::Gateway;
use super::link::Link;
use super::prewarmed::PrewarmedBoard;
use super::sandbox::{Sandbox, Shared};
use super::throttling::Counted;

/// The answer to a request.
pub(super) enum Answer {
    Sandbox(Sandbox),
    InstanceCgroup(LeafNumber),
    Socket(OwnedFd),
    Connection([OwnedFd; 2]),
    Done,
}

/// See the module.
pub(super) struct Client {
    link: Arc<Link<Request, Answer>>,
    /// What changes networks.
    pub(super) gateway: Arc<Gateway>,
    version: Version,
    cgroups: PathBuf,
    cpu_cgroups: PathBuf,
    /// Where the kernel counts the processor time of sandboxes.
    pub(super) running: Mutex<HashMap<Key, Counted>>,
    sandboxes: Mutex<HashMap<Key, Arc<Shared>>>,
    pub(super) prewarmed: PrewarmedBoard,
}

impl Client {
    /// Takes the socket over, which has introduced itself. Needs a runtime.
    pub(super) fn start(
        socket: OwnedFd,
        introduction: &Introduction,
        gateway: Arc<Gateway>,
    ) -> io::Result<Arc<Self>> {
        let client = Arc::new(Self {
            link: Link::start(socket)?,
            gateway,
            version: introduction.version,
            cgroups: introduction.cgroups.clone(),
            cpu_cgroups: introduction.cpu_cgroups.clone(),
            running: Mutex::default(),
            sandboxes: Mutex::default(),
            prewarmed: PrewarmedBoard::default(),
        });
        client.link.listen(Arc::downgrade(&client));
        Ok(client)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The directory of a sandbox in the memory hierarchy.
    pub(super) fn cgroup(&self, name: &str) -> PathBuf {
        self.cgroups.join(name)
    }

    /// The directory of a sandbox in the processor's hierarchy.
    pub(super) fn cpu_cgroup(&self, name: &str) -> PathBuf {
        self.cpu_cgroups.join(name)
    }

    /// Sends a request that is not answered.
    pub(super) fn send(&self, request: Request) {
        self.link.send(request);
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(Sequence) -> Request,
        fds: Vec<OwnedFd>,
    ) -> Result<Answer, SandboxError> {
        self.link.ask(request, fds).await
    }

    /// Waits for the host process's report on the end of a sandbox.
    pub(super) fn on_destroyed(&self, key: Key) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if let Some(shared) = self.sandboxes.lock().get(&key) {
            *shared.destroyed.lock() = Some(sender);
        }
        receiver
    }
}

/// A path below another, as the host process takes it.
pub(super) fn relative(path: &Path, to: &Path) -> Result<PathBuf, SandboxError> {
    match path.strip_prefix(to) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => Err(SandboxError::step(
            "specification",
            format!("{} is not in the data directory", path.display()),
        )),
    }
}
