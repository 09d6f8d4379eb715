//! The server's end of the socket to the gateway: what concerns a sandbox's network takes no way through the host process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hearth_gateway::protocol::{Reply, Request};
use hearth_host::SandboxError;
use hearth_host::protocol::Sequence;

use super::link::{Link, Listener, receive};

/// See the module.
pub(super) struct Gateway(Arc<Link<Request, Reply>>);

/// The gateway as it describes itself.
pub(super) struct Introduction {
    /// Whether sandboxes can have a network.
    pub(super) outbound: hearth_host::Capability,
    /// Where the kernel tells of packets and connections, if so.
    pub(super) reports: Option<OwnedFd>,
}

/// Reads the gateway's first message. Blocks briefly at most.
pub(super) fn introduction(socket: &OwnedFd) -> io::Result<Introduction> {
    match receive(socket)? {
        Some((Reply::Up(outbound), mut fds)) => Ok(Introduction {
            outbound,
            reports: fds.pop(),
        }),
        Some(_) => Err(io::Error::other("the gateway says something else")),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Gateway {
    /// Takes the socket over, which has introduced itself. Needs a runtime.
    pub(super) fn start(socket: OwnedFd) -> io::Result<Arc<Self>> {
        let gateway = Arc::new(Self(Link::start(socket)?));
        gateway.0.listen(Arc::downgrade(&gateway));
        Ok(gateway)
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(Sequence) -> Request,
        fd: Option<OwnedFd>,
    ) -> Result<Reply, SandboxError> {
        self.0.ask(request, fd.into_iter().collect()).await
    }
}

impl Listener for Gateway {
    type Said = Reply;

    fn take(self: &Arc<Self>, said: Reply, _: Vec<OwnedFd>) {
        match said {
            Reply::Refused(sequence, error) => self.0.answer(sequence, Err(error)),
            Reply::Done(sequence) | Reply::Counters(sequence, _) => {
                self.0.answer(sequence, Ok(said));
            }
            // Said at the beginning only.
            Reply::Up(_) => {}
        }
    }

    fn lose(&self) {
        self.0.lose();
    }
}
