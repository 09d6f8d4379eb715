//! The server's end of a socket to another process. Sending never blocks and never waits: what the kernel does not take at
//! once is queued and sent in order. One task reads, and hands on what the other process says.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hearth_host::SandboxError;
use hearth_host::protocol::{Message, Sequence};
use hearth_init::wire;
use parking_lot::Mutex;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::watched::Watched;

/// How long to wait for room before looking whether something else was missing.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// What waits to be sent: up to two descriptors come with a request.
type Outbox<Q> = VecDeque<(Q, Vec<OwnedFd>)>;

/// A process that takes requests `Q`, some of which are answered with an `A`. See the module.
pub(super) struct Link<Q, A> {
    socket: Arc<Watched>,
    outbox: Mutex<Outbox<Q>>,
    /// Something was queued.
    queued: Arc<Notify>,
    sequence: AtomicU64,
    waiting: Mutex<HashMap<Sequence, oneshot::Sender<Result<A, SandboxError>>>>,
    /// The other process is gone.
    gone: CancellationToken,
}

impl<Q, A> Drop for Link<Q, A> {
    fn drop(&mut self) {
        self.gone.cancel();
        // Its reader has the socket, too; and to the other process this is the server's end.
        let _ = rustix::net::shutdown(self.socket.as_fd(), Shutdown::Both);
    }
}

impl<Q: Message + Send + 'static, A: Send + 'static> Link<Q, A> {
    /// Takes a socket over. Needs a runtime.
    pub(super) fn start(socket: OwnedFd) -> io::Result<Arc<Self>> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let link = Arc::new(Self {
            socket: Arc::new(Watched::new(
                socket,
                Interest::READABLE | Interest::WRITABLE,
            )?),
            outbox: Mutex::default(),
            queued: Arc::default(),
            sequence: AtomicU64::new(1),
            waiting: Mutex::default(),
            gone: CancellationToken::new(),
        });
        let writer = Writer {
            socket: link.socket.clone(),
            link: Arc::downgrade(&link),
            queued: link.queued.clone(),
            gone: link.gone.clone(),
        };
        tokio::spawn(writer.run());
        Ok(link)
    }

    /// Hands on what the other process says, until that or the listener is gone; the end, too.
    pub(super) fn listen<L: Listener + Send + Sync + 'static>(&self, listener: Weak<L>) {
        tokio::spawn(read(self.socket.clone(), listener, self.gone.clone()));
    }

    /// Sends a request that is not answered.
    pub(super) fn send(&self, request: Q) {
        self.send_with(request, Vec::new());
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(Sequence) -> Q,
        fds: Vec<OwnedFd>,
    ) -> Result<A, SandboxError> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(sequence, sender);
        self.send_with(request(sequence), fds);
        if self.gone.is_cancelled() {
            return Err(SandboxError::shut_down());
        }
        answer
            .await
            .unwrap_or_else(|_| Err(SandboxError::shut_down()))
    }

    fn send_with(&self, request: Q, fds: Vec<OwnedFd>) {
        let mut outbox = self.outbox.lock();
        outbox.push_back((request, fds));
        if outbox.len() == 1 && !flush(self.socket.as_fd(), &mut outbox) {
            self.queued.notify_one();
        }
    }

    /// A request was answered.
    pub(super) fn answer(&self, sequence: Sequence, answer: Result<A, SandboxError>) {
        let waiting = self.waiting.lock().remove(&sequence);
        // Nothing may wait any more. A sandbox is dropped then, which destroys it.
        if let Some(waiting) = waiting {
            drop(waiting.send(answer));
        }
    }

    /// Nothing will be answered any more.
    pub(super) fn lose(&self) {
        self.waiting.lock().clear();
    }
}

/// Sends the queue in order; false if some of it must wait.
fn flush<Q: Message>(socket: impl AsFd + Copy, outbox: &mut Outbox<Q>) -> bool {
    while let Some((request, fds)) = outbox.front() {
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        match wire::send(socket, &request.encode(), &fds) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Memory is short, or too many descriptors are in flight: retried when there is room.
            Err(error) if crate::host_error::is_shortage(&error) => return false,
            // Sent, or the other process is gone, which the reader notices.
            _ => drop(outbox.pop_front()),
        }
    }
    true
}

/// Sends what could not be sent at once.
struct Writer<Q, A> {
    socket: Arc<Watched>,
    link: Weak<Link<Q, A>>,
    queued: Arc<Notify>,
    gone: CancellationToken,
}

impl<Q: Message + Send + 'static, A: Send + 'static> Writer<Q, A> {
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
            let Some(link) = self.link.upgrade() else {
                return Ok(());
            };
            let mut outbox = link.outbox.lock();
            match flush(socket, &mut outbox) {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        // An error is the runtime's end.
        let _ = sent.await;
    }
}

/// Takes what another process says.
pub(super) trait Listener {
    /// What it says.
    type Said: Message + Send;

    /// It has said this.
    fn take(self: &Arc<Self>, said: Self::Said, fds: Vec<OwnedFd>);

    /// It is gone.
    fn lose(&self);
}

/// One message with its descriptors; none when the other process is gone.
pub(super) fn receive<M: Message>(socket: impl AsFd) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; M::BYTES];
    let (length, fds) = match wire::receive(socket, &mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => (0, Vec::new()),
        received => received?,
    };
    if length == 0 {
        return Ok(None);
    }
    let message = M::decode(&bytes[..length]).map_err(io::Error::other)?;
    Ok(Some((message, fds)))
}

/// Hears the other process until it is gone.
async fn read<L: Listener>(socket: Arc<Watched>, listener: Weak<L>, gone: CancellationToken) {
    loop {
        let read = |socket: BorrowedFd<'_>| receive(socket);
        let received = socket.io(Interest::READABLE, read).await;
        let Some(listener) = listener.upgrade() else {
            break;
        };
        match received {
            Ok(Some((said, fds))) => listener.take(said, fds),
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "cannot read from the host process or the gateway");
                break;
            }
        }
    }
    gone.cancel();
    if let Some(listener) = listener.upgrade() {
        listener.lose();
    }
}
