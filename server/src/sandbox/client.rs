//! The server's end of the socket to the host process. Sending never blocks and never waits: what the kernel does not
//! take at once is queued and sent in order. One task reads, and hands replies and news to whom they are for.
//!
//! - [`introduction`]: what the host process says at first; [`replies`]: what it says then.

mod introduction;
mod replies;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hearth_host::SandboxError;
use hearth_host::cgroup::Version;
use hearth_host::protocol::{Counters, Key, LeafNumber, Request, Sequence};
use hearth_init::wire;
use parking_lot::Mutex;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

pub(super) use self::introduction::{Introduction, introduction};
use self::replies::read;
use super::prewarmed::PrewarmedBoard;
use super::sandbox::{Sandbox, Shared};
use crate::watched::Watched;

/// How long to wait for room before looking whether something else was missing.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// The answer to a request.
pub(super) enum Answer {
    Sandbox(Sandbox),
    InstanceCgroup(LeafNumber),
    Counters(Counters),
    Socket(OwnedFd),
    Done,
}

/// See the module.
pub(super) struct Client {
    socket: Arc<Watched>,
    version: Version,
    cgroups: PathBuf,
    outbox: Mutex<VecDeque<(Request, Option<OwnedFd>)>>,
    /// Something was queued.
    queued: Arc<Notify>,
    sequence: AtomicU64,
    waiting: Mutex<HashMap<Sequence, oneshot::Sender<Result<Answer, SandboxError>>>>,
    sandboxes: Mutex<HashMap<Key, Arc<Shared>>>,
    pub(super) prewarmed: PrewarmedBoard,
    /// The host process is gone.
    gone: CancellationToken,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.gone.cancel();
        // Its reader has the socket, too; and to the host process this is the end of everything.
        let _ = rustix::net::shutdown(self.socket.as_fd(), Shutdown::Both);
    }
}

impl Client {
    /// Takes the socket over, which has introduced itself. Needs a runtime.
    pub(super) fn start(socket: OwnedFd, introduction: &Introduction) -> io::Result<Arc<Self>> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let client = Arc::new(Self {
            socket: Arc::new(Watched::new(
                socket,
                Interest::READABLE | Interest::WRITABLE,
            )?),
            version: introduction.version,
            cgroups: introduction.cgroups.clone(),
            outbox: Mutex::default(),
            queued: Arc::default(),
            sequence: AtomicU64::new(1),
            waiting: Mutex::default(),
            sandboxes: Mutex::default(),
            prewarmed: PrewarmedBoard::default(),
            gone: CancellationToken::new(),
        });
        let (socket, gone) = (client.socket.clone(), client.gone.clone());
        let writer = Writer {
            socket: socket.clone(),
            client: Arc::downgrade(&client),
            queued: client.queued.clone(),
            gone: gone.clone(),
        };
        tokio::spawn(writer.run());
        tokio::spawn(read(socket, Arc::downgrade(&client), gone));
        Ok(client)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The directory of a sandbox in the memory hierarchy.
    pub(super) fn cgroup(&self, name: &str) -> PathBuf {
        self.cgroups.join(name)
    }

    /// Sends a request that is not answered.
    pub(super) fn send(&self, request: Request) {
        self.send_with(request, None);
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(Sequence) -> Request,
        fd: Option<OwnedFd>,
    ) -> Result<Answer, SandboxError> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(sequence, sender);
        self.send_with(request(sequence), fd);
        if self.gone.is_cancelled() {
            return Err(SandboxError::shut_down());
        }
        answer
            .await
            .unwrap_or_else(|_| Err(SandboxError::shut_down()))
    }

    fn send_with(&self, request: Request, fd: Option<OwnedFd>) {
        let mut outbox = self.outbox.lock();
        outbox.push_back((request, fd));
        if outbox.len() == 1 && !flush(self.socket.as_fd(), &mut outbox) {
            self.queued.notify_one();
        }
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

/// Sends the queue in order; false if some of it must wait.
fn flush(socket: impl AsFd + Copy, outbox: &mut VecDeque<(Request, Option<OwnedFd>)>) -> bool {
    while let Some((request, fd)) = outbox.front() {
        let fds: Vec<_> = fd.iter().map(|fd| fd.as_fd()).collect();
        match wire::send(socket, &request.encode(), &fds) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Memory is short, or too many descriptors are in flight: retried when there is room.
            Err(error) if crate::host_error::is_shortage(&error) => return false,
            // Sent, or the host process is gone, which the reader notices.
            _ => drop(outbox.pop_front()),
        }
    }
    true
}

/// Sends what could not be sent at once.
struct Writer {
    socket: Arc<Watched>,
    client: Weak<Client>,
    queued: Arc<Notify>,
    gone: CancellationToken,
}

impl Writer {
    async fn run(self) {
        loop {
            tokio::select! {
                () = self.queued.notified() => {}
                () = self.gone.cancelled() => return,
            }
            // If it was not room that was lacking, nothing signals that it is available again.
            while tokio::time::timeout(TRY_AGAIN, self.send_queued())
                .await
                .is_err()
            {
                if self.gone.is_cancelled() {
                    return;
                }
            }
        }
    }

    async fn send_queued(&self) {
        let sent = self.socket.io(Interest::WRITABLE, |socket| {
            let Some(client) = self.client.upgrade() else {
                return Ok(());
            };
            let mut outbox = client.outbox.lock();
            match flush(socket, &mut outbox) {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        // An error is the runtime's end.
        let _ = sent.await;
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
