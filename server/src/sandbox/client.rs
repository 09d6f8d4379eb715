//! The server's end of the socket to the host process. Sending never blocks and never waits: what the kernel does not
//! take at once is queued and sent in order. One task reads, and hands replies and news to whom they are for.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hearth_host::SandboxError;
use hearth_host::cgroup::Version;
use hearth_host::protocol::{Key, LeafNumber, REPLY_BYTES, Reply, Request, Sequence};
use hearth_init::wire;
use parking_lot::Mutex;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::prewarmed::PrewarmedBoard;
use super::sandbox::{Ended, Sandbox, Shared};
use crate::host_error::HostError;
use crate::watched::Watched;

/// How long to wait for room before looking whether something else was missing.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// Descriptors of a sandbox: control socket, standard output and error.
const DESCRIPTORS: usize = 3;

/// What a request was answered.
pub(super) enum Answer {
    Sandbox(Sandbox),
    InstanceCgroup(LeafNumber),
    Done,
}

/// What the host process says of itself at first.
pub(super) struct Introduction {
    pub(super) capabilities: Vec<super::Capability>,
    version: Version,
    /// Directory of all sandboxes' cgroups in the memory hierarchy.
    cgroups: PathBuf,
    pub(super) init: String,
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

/// Reads what the host process says of itself. Blocking; it is there already, or in a moment.
pub(super) fn introduction(socket: &OwnedFd) -> io::Result<Introduction> {
    let mut capabilities = Vec::new();
    loop {
        match receive(socket)? {
            Some((
                Reply::Capability {
                    name,
                    available,
                    text,
                },
                _,
            )) => {
                let (version, reason) = if available {
                    (text, None)
                } else {
                    (None, text)
                };
                capabilities.push(super::Capability {
                    name,
                    available,
                    reason,
                    version,
                });
            }
            Some((Reply::Up { v2, cgroups, init }, _)) => {
                return Ok(Introduction {
                    capabilities,
                    version: if v2 { Version::V2 } else { Version::V1 },
                    cgroups: cgroups.into(),
                    init,
                });
            }
            Some(_) => return Err(io::Error::other("the host process says something else")),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// One reply with its descriptors; none when the host process is gone.
fn receive(socket: impl AsFd) -> io::Result<Option<(Reply, Vec<OwnedFd>)>> {
    let mut bytes = [0; REPLY_BYTES];
    let (length, fds) = match wire::receive(socket, &mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => (0, Vec::new()),
        received => received?,
    };
    if length == 0 {
        return Ok(None);
    }
    let reply = Reply::decode(&bytes[..length]).map_err(io::Error::other)?;
    Ok(Some((reply, fds)))
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

    /// Waits for what the host process says of the end of a sandbox.
    pub(super) fn on_destroyed(&self, key: Key) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if let Some(shared) = self.sandboxes.lock().get(&key) {
            *shared.destroyed.lock() = Some(sender);
        }
        receiver
    }

    fn shared(&self, key: Key) -> Option<Arc<Shared>> {
        self.sandboxes.lock().get(&key).cloned()
    }

    fn answer(&self, sequence: Sequence, answer: Result<Answer, SandboxError>) {
        let waiting = self.waiting.lock().remove(&sequence);
        // Nothing may wait any more. A sandbox is dropped then, which destroys it.
        if let Some(waiting) = waiting {
            drop(waiting.send(answer));
        }
    }

    fn take(self: &Arc<Self>, reply: Reply, fds: Vec<OwnedFd>) {
        match reply {
            Reply::Created {
                sequence,
                key,
                name,
                uid,
                was_prewarmed,
            } => {
                if fds.len() != DESCRIPTORS {
                    // None was free to receive them.
                    let error = SandboxError::step("control", rustix::io::Errno::MFILE);
                    self.answer(sequence, Err(error));
                    return self.send(Request::Destroy(key));
                }
                let shared = Arc::<Shared>::default();
                self.sandboxes.lock().insert(key, shared.clone());
                if was_prewarmed {
                    self.prewarmed.count_use();
                }
                let sandbox = Sandbox::new(self.clone(), key, &name, uid, shared, fds);
                self.answer(sequence, Ok(Answer::Sandbox(sandbox)));
            }
            Reply::Refused(sequence, refusal) => self.answer(sequence, Err(refusal.into())),
            Reply::Done(sequence) => self.answer(sequence, Ok(Answer::Done)),
            Reply::InstanceCgroup(sequence, _, leaf) => {
                self.answer(sequence, Ok(Answer::InstanceCgroup(leaf)));
            }
            Reply::Prepared(key, leaf) => {
                if let Some(shared) = self.shared(key) {
                    shared.pool.lock().put(leaf);
                }
            }
            Reply::AttachFailed(key, leaf, detail) => {
                let refused = self
                    .shared(key)
                    .and_then(|shared| shared.refused.lock().remove(&leaf));
                if let Some(refused) = refused {
                    // The receiver may have ended it.
                    let _ = refused.send(HostError::new(detail));
                }
            }
            Reply::Ended {
                key,
                how,
                out_of_memory,
                code,
                signal,
            } => {
                let has_reported = code.is_some() || signal.is_some();
                if let Some(shared) = self.shared(key) {
                    shared.ended.send_replace(Some(Ended {
                        how,
                        out_of_memory,
                        template: has_reported.then_some((code, signal)),
                    }));
                }
            }
            Reply::Destroyed(key) => {
                let shared = self.sandboxes.lock().remove(&key);
                if let Some(waiting) = shared.and_then(|shared| shared.destroyed.lock().take()) {
                    // It may not be waited for any more.
                    let _ = waiting.send(());
                }
            }
            Reply::Prewarmed {
                runtime,
                kept,
                ready,
            } => self.prewarmed.show(&runtime, kept.then_some(ready)),
            // Said at the beginning only.
            Reply::Start { .. } | Reply::Capability { .. } | Reply::Up { .. } => {}
        }
    }

    /// The host process is gone, and with it every sandbox.
    fn lose(&self) {
        self.waiting.lock().clear();
        let sandboxes = std::mem::take(&mut *self.sandboxes.lock());
        for shared in sandboxes.into_values() {
            shared.ended.send_if_modified(|ended| {
                let is_news = ended.is_none();
                ended.get_or_insert_with(|| Ended {
                    how: "the sandbox was destroyed".to_owned(),
                    out_of_memory: false,
                    template: None,
                });
                is_news
            });
            drop(shared.destroyed.lock().take());
        }
    }
}

/// Sends what is queued, in order; false when some has to wait.
fn flush(socket: impl AsFd + Copy, outbox: &mut VecDeque<(Request, Option<OwnedFd>)>) -> bool {
    while let Some((request, fd)) = outbox.front() {
        let fds: Vec<_> = fd.iter().map(|fd| fd.as_fd()).collect();
        match wire::send(socket, &request.encode(), &fds) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Memory is short, or descriptors in flight are too many: it is tried again when there is room.
            Err(error) if crate::host_error::is_shortage(&error) => return false,
            // Sent; or the host process is gone, which reading says.
            _ => drop(outbox.pop_front()),
        }
    }
    true
}

async fn read(socket: Arc<Watched>, client: Weak<Client>, gone: CancellationToken) {
    loop {
        let read = |socket: BorrowedFd<'_>| receive(socket);
        let received = socket.io(Interest::READABLE, read).await;
        let Some(client) = client.upgrade() else {
            break;
        };
        match received {
            Ok(Some((reply, fds))) => client.take(reply, fds),
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "cannot hear the host process");
                break;
            }
        }
    }
    gone.cancel();
    if let Some(client) = client.upgrade() {
        client.lose();
    }
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
            // When it was not room that lacked, nothing tells that there is enough of it again.
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
