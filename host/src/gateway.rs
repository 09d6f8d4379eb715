//! The gateway, `hearth gateway`, as the host process sees it: a program that it starts, tells of sandboxes, and ends.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hearth_init::wire;

use crate::children::{NO_HUGE_PAGES, ends_within};
use crate::memfd::{sealed, socket_pair};
use crate::peer::Peer;
use crate::protocol::{FromGateway, Message as _, ToGateway};

/// The subcommand by which the gateway is started.
pub const GATEWAY: &str = "gateway";
/// Memory that is freed goes back at once: the gateway idles for most of its life.
const GIVE_BACK: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");
/// Whether it may colour what it logs.
const NO_COLOR: &str = "NO_COLOR";
/// How long it may take to end once its socket has: it removes an interface.
const LAST_STEPS: Duration = Duration::from_secs(10);

/// A gateway that was started. It ends with the thread that has started it (`PR_SET_PDEATHSIG`).
pub struct Gateway {
    process: Child,
    socket: OwnedFd,
}

/// The socket to it, while it is talked to.
pub(crate) type ToIt = Peer<ToGateway, FromGateway>;

impl Gateway {
    /// Starts it, by the program `hearth`, with its encoded settings. Returns also the server's socket to it. It takes the
    /// calling thread's network namespace for the host's own.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(hearth: &Path, settings: &[u8]) -> io::Result<(Self, OwnedFd)> {
        let (socket, its) = socket_pair()?;
        let (servers, its_to_server) = socket_pair()?;
        let settings = sealed(settings)?;
        let process = Command::new(hearth)
            .arg0("hearth")
            .arg(GATEWAY)
            .env_clear()
            .env(NO_HUGE_PAGES.0, NO_HUGE_PAGES.1)
            .env(GIVE_BACK.0, GIVE_BACK.1)
            .envs(std::env::var_os(NO_COLOR).map(|value| (NO_COLOR, value)))
            .stdin(Stdio::from(its))
            .stdout(Stdio::null())
            .spawn()?;
        let gateway = Self { process, socket };
        wire::send(
            &gateway.socket,
            &ToGateway::Start.encode(),
            &[settings.as_fd(), its_to_server.as_fd()],
        )?;
        Ok((gateway, servers))
    }

    pub(crate) fn peer(&self, epoll: &OwnedFd, token: u64) -> io::Result<ToIt> {
        Peer::new(self.socket.try_clone()?, epoll, token)
    }
}

impl Drop for Gateway {
    /// Ends it, with its interface on the host, and waits for that. Its other socket must be closed.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        if !ends_within(&self.process, LAST_STEPS).unwrap_or(false) {
            tracing::warn!("the gateway does not end; killing it");
            // It may have ended just now.
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
