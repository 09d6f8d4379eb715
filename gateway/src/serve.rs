//! Takes what the host process and the server have to say. Neither waits for the other: of each, some messages are taken at a
//! time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use hearth_host::peer::{Peer, PeerError, Received};
use hearth_host::protocol::{FromGateway, Key, Sequence, ToGateway};
use hearth_host::{Capability, SandboxError};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};

use crate::fast::Fast;
use crate::gateway::{Gateway, Inside, Opened};
use crate::interfaces::Done;
use crate::protocol::{KernelPolicy, Reply, Request};

/// Messages of one process taken at a time.
const AT_ONCE: usize = 16;
/// Events.
const HOST: u64 = 0;
const SERVER: u64 = 1;
const BELL: u64 = 2;
const FAST: u64 = 3;

/// Why the gateway has stopped without having been asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The host process has said something that it never says, or does not read.
    #[error("the host process {0}")]
    Host(PeerError),
    /// The same of the server.
    #[error("the server {0}")]
    Server(PeerError),
    /// The kernel refused something that the process cannot do without.
    #[error("the gateway cannot continue: {0}")]
    Kernel(#[from] io::Error),
}

struct Serving {
    host: Peer<FromGateway, ToGateway>,
    server: Peer<Reply, Request>,
    gateway: Option<Gateway>,
    done: mpsc::Receiver<Done>,
}

/// Serves both until the host process is gone. A host that lacks something is told so, and refused.
pub(crate) fn serve(
    host: OwnedFd,
    server: OwnedFd,
    opened: Result<Opened, String>,
) -> Result<(), ServeError> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let bell = Arc::new(rustix::event::eventfd(0, flags).map_err(io::Error::from)?);
    epoll::add(&epoll, &*bell, EventData::new_u64(BELL), EventFlags::IN)
        .map_err(io::Error::from)?;
    let host = Peer::new(host, &epoll, HOST)?;
    let mut server = Peer::new(server, &epoll, SERVER)?;
    let (_, mut done) = mpsc::channel();
    let (capability, fast_missing, gateway, reports) = match opened {
        Ok(opened) => {
            done = opened.worker.start(bell.clone())?;
            for socket in opened.gateway.watched() {
                epoll::add(&epoll, socket, EventData::new_u64(FAST), EventFlags::IN)
                    .map_err(io::Error::from)?;
            }
            let capability = Capability::available("network_outbound", None);
            let missing = opened.gateway.fast_missing();
            (
                capability,
                missing,
                Some(opened.gateway),
                opened.reports.into(),
            )
        }
        Err(reason) => {
            let missing = Fast::missing(&reason);
            let capability = Capability::unavailable("network_outbound", reason);
            (capability, Some(missing), None, Vec::new())
        }
    };
    server.send(Reply::Up(capability), reports);
    if let Some(missing) = fast_missing {
        server.send(Reply::Fast(missing), Vec::new());
    }
    let serving = Serving {
        host,
        server,
        gateway,
        done,
    };
    serving.run(&epoll, &bell)
}

impl Serving {
    fn run(mut self, epoll: &OwnedFd, bell: &OwnedFd) -> Result<(), ServeError> {
        let mut events = Vec::with_capacity(4);
        loop {
            if let Some(fast) = self.gateway.as_mut().and_then(Gateway::work) {
                self.server.send(Reply::Fast(fast), Vec::new());
            }
            self.host.rewatch(epoll)?;
            self.server.rewatch(epoll)?;
            events.clear();
            let due = self.gateway.as_ref().and_then(Gateway::due);
            let due = due.and_then(|due| Timespec::try_from(due).ok());
            match epoll::wait(
                epoll,
                rustix::buffer::spare_capacity(&mut events),
                due.as_ref(),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            for event in &events {
                match event.data.u64() {
                    HOST => {
                        if !self.hear_host().map_err(ServeError::Host)? {
                            return Ok(());
                        }
                    }
                    SERVER => self.hear_server(epoll).map_err(ServeError::Server)?,
                    FAST => {
                        if let Some(gateway) = &mut self.gateway {
                            gateway.wake();
                        }
                    }
                    _ => {
                        let mut count = [0; 8];
                        // Nothing to read means that it was read already.
                        let _ = rustix::io::read(bell, &mut count);
                        self.hear_worker();
                    }
                }
            }
            if let Some(error) = self.host.take_failure() {
                return Err(ServeError::Host(error));
            }
            if let Some(error) = self.server.take_failure() {
                return Err(ServeError::Server(error));
            }
        }
    }

    /// False when the host process is gone.
    fn hear_host(&mut self) -> Result<bool, PeerError> {
        self.host.flush();
        for _ in 0..AT_ONCE {
            match self.host.receive()? {
                Received::Message(ToGateway::Attach(key), fds) => {
                    let said = match self.attach(key, fds) {
                        Ok(interface) => FromGateway::Attached(key, interface),
                        Err(error) => FromGateway::Failed(key, error),
                    };
                    self.host.send(said, Vec::new());
                }
                Received::Message(ToGateway::Detach(key), _) => self.detach(key),
                // It was said before.
                Received::Message(ToGateway::Start, _) => {}
                Received::Nothing => break,
                Received::End => return Ok(false),
            }
        }
        Ok(true)
    }

    fn attach(&mut self, key: Key, fds: Vec<OwnedFd>) -> Result<u32, SandboxError> {
        let missing = || SandboxError::step("network", rustix::io::Errno::MFILE);
        let mut fds = fds.into_iter();
        let policy = fds.next().ok_or_else(missing)?;
        let policy = KernelPolicy::open(policy).map_err(SandboxError::specification)?;
        let inside = Inside::of(fds).ok_or_else(missing)?;
        let gateway = self.gateway.as_mut();
        gateway
            .ok_or_else(unavailable)?
            .attach(key, inside, &policy)
    }

    /// Takes a sandbox's network away. Says so when nothing is left of it.
    fn detach(&mut self, key: Key) {
        let gateway = self.gateway.as_mut();
        if !gateway.is_some_and(|gateway| gateway.detach(key)) {
            self.host.send(FromGateway::Detached(key), Vec::new());
        }
    }

    fn hear_worker(&mut self) {
        while let Ok(done) = self.done.try_recv() {
            if let Some(key) = self.gateway.as_mut().and_then(|gateway| gateway.done(done)) {
                self.host.send(FromGateway::Detached(key), Vec::new());
            }
        }
    }

    fn hear_server(&mut self, epoll: &OwnedFd) -> Result<(), PeerError> {
        self.server.flush();
        for _ in 0..AT_ONCE {
            match self.server.receive()? {
                Received::Message(request, fds) => {
                    let sequence = match request {
                        Request::SetPolicy(sequence, _)
                        | Request::Allow(sequence, ..)
                        | Request::Counters(sequence, _) => sequence,
                    };
                    let reply = self.answer(sequence, request, fds);
                    let reply = reply.unwrap_or_else(|error| Reply::Refused(sequence, error));
                    self.server.send(reply, Vec::new());
                }
                Received::Nothing => break,
                // The host process ends everything.
                Received::End => {
                    self.server.hang_up(epoll);
                    break;
                }
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        sequence: Sequence,
        request: Request,
        fds: Vec<OwnedFd>,
    ) -> Result<Reply, SandboxError> {
        let gateway = self.gateway.as_mut().ok_or_else(unavailable)?;
        match request {
            Request::SetPolicy(_, key) => {
                let policy = fds.into_iter().next();
                let policy =
                    policy.ok_or_else(|| SandboxError::step("policy", rustix::io::Errno::MFILE))?;
                let policy = KernelPolicy::open(policy).map_err(SandboxError::specification)?;
                gateway.set_policy(key, &policy)?;
            }
            Request::Allow(_, key, resolved) => gateway.allow(key, &resolved)?,
            Request::Counters(_, key) => {
                return Ok(Reply::Counters(sequence, gateway.count(key)?));
            }
        }
        Ok(Reply::Done(sequence))
    }
}

fn unavailable() -> SandboxError {
    SandboxError::step("network", "no sandbox can have a network on this host")
}
