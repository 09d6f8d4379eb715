//! The server's end of the socket to the gateway: what concerns a sandbox's network takes no way through the host process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hearth_gateway::protocol::{Reply, Request};
use hearth_host::protocol::Sequence;
use hearth_host::{Capability, SandboxError};
use parking_lot::Mutex;

use super::link::{Link, Listener, receive};

/// See the module.
pub(super) struct Gateway {
    link: Arc<Link<Request, Reply>>,
    /// Whether connections go past the rules, as it has said last.
    fast: Mutex<Capability>,
}

/// The gateway as it describes itself.
pub(super) struct Introduction {
    /// Whether sandboxes can have a network.
    pub(super) outbound: Capability,
    /// Where the kernel tells of packets and connections, if so, and where the gateway does of those that the kernel does not.
    pub(super) reports: Option<[OwnedFd; 2]>,
}

/// Reads the gateway's first message. Blocks briefly at most.
pub(super) fn introduction(socket: &OwnedFd) -> io::Result<Introduction> {
    match receive(socket)? {
        Some((Reply::Up(outbound), fds)) => Ok(Introduction {
            outbound,
            reports: fds.try_into().ok(),
        }),
        Some(_) => Err(io::Error::other("the gateway says something else")),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Gateway {
    /// Takes the socket over, which has introduced itself. Needs a runtime.
    pub(super) fn start(socket: OwnedFd) -> io::Result<Arc<Self>> {
        let gateway = Arc::new(Self {
            link: Link::start(socket)?,
            fast: Mutex::new(Capability::unavailable(
                "network_fast",
                "the gateway has just started".to_owned(),
            )),
        });
        gateway.link.listen(Arc::downgrade(&gateway));
        Ok(gateway)
    }

    /// Whether connections go past the rules.
    pub(super) fn fast(&self) -> Capability {
        self.fast.lock().clone()
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(Sequence) -> Request,
        fd: Option<OwnedFd>,
    ) -> Result<Reply, SandboxError> {
        self.link.ask(request, fd.into_iter().collect()).await
    }
}

impl Listener for Gateway {
    type Said = Reply;

    fn take(self: &Arc<Self>, said: Reply, _: Vec<OwnedFd>) {
        match said {
            Reply::Refused(sequence, error) => self.link.answer(sequence, Err(error)),
            Reply::Done(sequence) | Reply::Counters(sequence, _) => {
                self.link.answer(sequence, Ok(said));
            }
            Reply::Fast(fast) => *self.fast.lock() = fast,
            // Said at the beginning only.
            Reply::Up(_) => {}
        }
    }

    fn lose(&self) {
        self.link.lose();
    }
}
