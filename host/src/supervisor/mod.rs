//! The supervisor: owns the state of all sandboxes and waits for requests, init's reports and process exits.
//!
//! ```text
//! Create ─▶ Starting ──Ready──▶ Running ──template ends──▶ Ended
//!              │ a step fails       │ Destroy                 │ Destroy
//!              ▼                    ▼                         ▼
//!           (removed) ◀───────── Destroying ◀─────────────────┘
//! ```
//!
//! All on the thread that calls [`Host::serve`], because a sandbox dies with the thread that spawned it
//! (`PR_SET_PDEATHSIG`). Nothing here blocks on a sandbox or on the server; retries are put into a list with a time.
//! Helpers have threads of their own, because what they do takes long: [`attach`], [`images`](crate::images) and
//! [`network`](crate::network). The [gateway](crate::gateway) is another process.
//!
//! - [`requests`]: what the server asks for; [`instances`]: of it, what concerns one instance. [`outbound`]: a network.
//!   [`cores`]: who has cores for itself.
//! - [`jobs`]: what it does later. [`priority`]: that of the server's threads; [`boost`]: that of
//!   instances that start.
//! - [`lifecycle`] and [`ending`]: the transitions of a sandbox; [`live`]: one sandbox; [`site`]: its cgroups and directory;
//!   [`launch`]: starts `hearth-init`, which builds it and is its PID 1; [`prewarmed`]: pre-warmed sandboxes for restores.

mod attach;
mod boost;
mod closing;
mod cores;
mod ending;
mod instances;
mod jobs;
mod launch;
mod lifecycle;
mod live;
mod outbound;
mod prewarmed;
mod priority;
mod requests;
mod site;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::event::epoll::{self, EventData, EventFlags};

use self::boost::Boosts;
use self::cores::Cores;
use self::jobs::Scheduled;
use self::live::LiveSandbox;
use self::prewarmed::PrewarmedSandboxes;
use crate::cgroup::Version;
use crate::chains::Chains;
use crate::gateway::{Gateway, ToIt};
use crate::helpers::{Helper, News, Reporter};
use crate::images::{self, Images};
use crate::peer::{Peer, PeerError, Received};
use crate::protocol::{Key, Reply, Request, Sequence};
use crate::{Host, HostProcessError};

/// Instance cgroups kept ready in each sandbox, so that a start need not wait for one. Each costs the kernel some ten
/// KiB.
const INSTANCE_CGROUP_POOL: u32 = 4;
/// A sandbox that is not ready after this long is given up. Building one takes milliseconds; protects callers from a
/// file system that hangs.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay between ordering a sandbox and creating its first instance cgroup. Doing it immediately would delay the
/// sandbox, which the kernel wakes on this thread's CPU.
const FIRST_INSTANCE_CGROUP: Duration = Duration::from_millis(3);
/// Delay between a sandbox becoming ready and creating its other instance cgroups: the template's first fork goes
/// first.
const OTHER_INSTANCE_CGROUPS: Duration = Duration::from_millis(5);
/// Events taken at once, and requests: so that neither keeps the other waiting.
const EVENTS: usize = 64;
/// Events of the sockets and of the helpers' bell; sandboxes' are twice their key, plus one for PID 1's end.
const SERVER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const GATEWAY: u64 = u64::MAX - 2;

impl Host {
    /// Does what the server at the other end of `socket` asks for until it is gone, or has shut everything down. Nothing of
    /// any sandbox is left then. Without a gateway no sandbox can have a network.
    ///
    /// # Errors
    /// [`HostProcessError`]; every sandbox has been ended then, too.
    pub fn serve(self, socket: OwnedFd, gateway: Option<Gateway>) -> Result<(), HostProcessError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let server = Peer::new(socket, &epoll, SERVER)?;
        let to_gateway = gateway
            .as_ref()
            .map(|gateway| gateway.peer(&epoll, GATEWAY))
            .transpose()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(rustix::event::eventfd(0, flags).map_err(io::Error::from)?);
        epoll::add(&epoll, &*bell, EventData::new_u64(BELL), EventFlags::IN)
            .map_err(io::Error::from)?;
        let (sender, news) = mpsc::channel();
        let reporter = Reporter::new(sender, bell.clone());
        let criu = self.criu.clone();
        let mut supervisor = Supervisor {
            attach: attach::start(reporter.clone()).map_err(io::Error::other)?,
            network: outbound::start(reporter.clone()).map_err(io::Error::other)?,
            chains: Helper::start("hearth-chains", reporter.clone(), || Ok(Chains::default()))
                .map_err(io::Error::other)?,
            images: images::start(&self.settings, criu, reporter).map_err(io::Error::other)?,
            cores: Cores::default(),
            boosts: Boosts::default(),
            gateway: to_gateway,
            gateway_heard: Instant::now(),
            host: self,
            epoll,
            server,
            live: HashMap::new(),
            next: 0,
            prewarmed: PrewarmedSandboxes::default(),
            jobs: Vec::new(),
            closing: false,
            failed: None,
            closed: Vec::new(),
        };
        // Not before the helpers are there, which would come along.
        supervisor.find_cores();
        supervisor.introduce();
        let served = supervisor.run(&news, &bell);
        supervisor.finish(gateway);
        served
    }
}

/// The state of all sandboxes.
struct Supervisor {
    host: Host,
    attach: Helper<()>,
    images: Helper<Images>,
    network: Helper<()>,
    chains: Helper<Chains>,
    cores: Cores,
    boosts: Boosts,
    /// By which sandboxes have a network.
    gateway: Option<ToIt>,
    /// When it has last done something that was waited for.
    gateway_heard: Instant,
    epoll: OwnedFd,
    server: Peer<Reply, Request>,
    live: HashMap<Key, LiveSandbox>,
    next: Key,
    prewarmed: PrewarmedSandboxes,
    jobs: Vec<Scheduled>,
    /// No sandbox will be asked for any more: the supervisor ends with the last one.
    closing: bool,
    /// Why, if nobody asked for it.
    failed: Option<HostProcessError>,
    /// Who waits for that.
    closed: Vec<Sequence>,
}

impl Supervisor {
    /// Says what there is.
    fn introduce(&mut self) {
        for capability in std::mem::take(&mut self.host.capabilities) {
            self.say(Reply::Capability(capability));
        }
        let up = Reply::Up {
            v2: self.host.top.version == Version::V2,
            cgroups: self.host.top.memory.display().to_string(),
            cpu_cgroups: self.host.top.cpu.display().to_string(),
            init: std::mem::take(&mut self.host.init),
        };
        self.say(up);
    }

    fn say(&mut self, reply: Reply) {
        self.server.send(reply, Vec::new());
    }

    fn run(&mut self, news: &mpsc::Receiver<News>, bell: &OwnedFd) -> Result<(), HostProcessError> {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.done() {
            self.server.rewatch(&self.epoll)?;
            if let Some(gateway) = &mut self.gateway {
                gateway.rewatch(&self.epoll)?;
            }
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                self.timeout().as_ref(),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Cannot happen with a valid descriptor; ending kills every sandbox, which is the safe side.
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            for event in &events {
                match event.data.u64() {
                    SERVER => {
                        if let Err(error) = self.listen() {
                            self.give_up(error.into());
                        }
                    }
                    GATEWAY => {
                        if let Err(error) = self.listen_to_gateway() {
                            self.lose_gateway(error);
                        }
                    }
                    BELL => {
                        let mut count = [0; 8];
                        // Nothing to read means that it was read already.
                        let _ = rustix::io::read(bell, &mut count);
                        self.on_news(news);
                    }
                    data if data % 2 == 0 => self.on_report(data / 2),
                    data => self.on_exit(data / 2),
                }
            }
            self.run_due_jobs();
            if let Some(error) = self.server.take_failure() {
                self.give_up(error.into());
            }
            if let Some(error) = self.gateway.as_mut().and_then(Peer::take_failure) {
                self.lose_gateway(HostProcessError::Gateway(error));
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Takes requests, and sends what waits for room.
    fn listen(&mut self) -> Result<(), PeerError> {
        self.server.flush();
        for _ in 0..EVENTS {
            match self.server.receive()? {
                Received::Message(request, fds) => self.handle(request, fds),
                Received::Nothing => break,
                Received::End => {
                    self.hang_up();
                    break;
                }
            }
        }
        Ok(())
    }

    fn on_news(&mut self, news: &mpsc::Receiver<News>) {
        while let Ok(news) = news.try_recv() {
            match news {
                News::Say(reply) => self.say(reply),
                News::Entered(key, inside) => self.entered(key, inside),
                News::Socket(sequence, socket) => {
                    self.server.send(Reply::Socket(sequence), vec![socket]);
                }
                News::Connection(sequence, ends) => {
                    self.server.send(Reply::Connection(sequence), ends.into());
                }
            }
        }
    }
}
