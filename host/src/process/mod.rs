//! The host process as a process: it starts the server, serves it, and ends with it.
//!
//! ```text
//! hearth          root: data directory, listeners, probes ──exec──▶ hearth host
//! hearth host     root: serves the socket ──▶ everything removed, the same status
//! ├─ hearth serve   root for a moment ──drop──▶ a uid of its own, no capability ──▶ parses what comes from outside
//! └─ hearth gateway root for a moment ──drop──▶ a uid of its own, CAP_NET_ADMIN ──▶ the network of sandboxes
//! ```
//! - [`handover`]: how one program becomes the other.
//! - [`server`]: the server's side: from root to a process that can do nothing, read top to bottom. [`lock_down`]: what it may
//!   do then. [`internet_sockets`]: of it, sockets.
//! - [`privileges`], [`filter`]: what the gateway (`gateway/`) does likewise.

pub mod filter;
mod handover;
mod internet_sockets;
mod lock_down;
pub mod privileges;
pub mod server;
mod signals;
pub mod sys;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hearth_init::{fields_of, wire};

pub use self::handover::{HOST, HandoverError, Orders, hand_over, socket_of_stdin, take_over};
use crate::children::{ends_within, pidfd};
pub use crate::gateway::{GATEWAY, Gateway};
use crate::memfd::socket_pair;
pub use crate::prepare::{DataDir, DataDirError};
use crate::protocol::{Message as _, Reply};
pub use crate::settings::ServerUser;
use crate::{Host, HostProcessError};

/// The subcommand by which the server is started.
pub const SERVE: &str = "serve";
/// How long the server may take to end once everything else has.
const LAST_STEPS: Duration = Duration::from_secs(10);
/// How much longer than it may drain the server may take to end after a signal. It needs some two seconds; one that takes
/// this long ignores the signal.
const AFTER_DRAIN: Duration = Duration::from_secs(20);

/// How the server is started.
pub struct ServerStart {
    /// Its arguments, after the subcommand.
    pub arguments: Vec<OsString>,
    /// Its environment, to which is added what the host process has to say.
    pub environment: Vec<(OsString, OsString)>,
    /// Who it is.
    pub user: ServerUser,
    /// How long requests that run may take to finish after a signal.
    pub drain: Duration,
    /// Whether functions have a listener of their own.
    pub separate: bool,
    /// Whether there is an ingress.
    pub ingress: bool,
    /// Whether there are MQTT brokers.
    pub brokers: bool,
}

fields_of!(ServerStart {
    arguments,
    environment,
    user,
    drain,
    separate,
    ingress,
    brokers,
});

/// Starts the server and serves it until it ends. It gets these descriptors: the data directory's lock, the listener of console
/// and API, that of the functions if it is separate, a socket with what it needs of the ingress if there is one, and sealed memory
/// with the MQTT brokers if there are any. What comes after those stays here until the end: it holds the ingress's programs where they are attached. Returns its exit
/// status, or nothing when a signal came before it was there.
///
/// # Errors
/// [`HostProcessError`]; the server has been killed then.
pub fn run(
    host: Host,
    start: ServerStart,
    mut fds: Vec<OwnedFd>,
) -> Result<Option<ExitStatus>, HostProcessError> {
    signals::install(start.drain + AFTER_DRAIN)?;
    let program = Path::new("/proc/self/exe");
    let (gateway, to_gateway) = Gateway::start(program, &host.settings.gateway)?;
    fds.insert(1, to_gateway);
    let (ours, theirs) = socket_pair()?;
    let mut server = Command::new(program)
        .arg0("hearth")
        .arg(SERVE)
        .args(&start.arguments)
        .env_clear()
        .envs(start.environment)
        .env(server::DATA_DIR, &host.settings.data_dir)
        .env(server::RUNTIMES, &host.settings.runtimes)
        // What does not fit its memory SQLite puts there, and nowhere else may it write.
        .env("SQLITE_TMPDIR", Path::new(server::DATA_PLACE))
        .stdin(Stdio::from(theirs))
        .spawn()?;
    let first = Reply::Start {
        uid: start.user.uid,
        gid: start.user.gid,
        separate: start.separate,
        ingress: start.ingress,
        brokers: start.brokers,
    };
    let _attached = fds.split_off(fds.len().min(first.descriptors()));
    let passed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let served = wire::send(&ours, &first.encode(), &passed)
        .and_then(|()| pidfd(&server))
        .map_err(HostProcessError::from)
        .and_then(|pidfd| {
            signals::pass_on_to(pidfd);
            // The listeners are the server's now: when it closes them, nobody listens.
            fds.truncate(1);
            if signals::stopped() {
                return Ok(false);
            }
            host.serve(ours, Some(gateway)).map(|()| true)
        });
    match served {
        Ok(true) => Ok(Some(wait(&mut server)?)),
        other => {
            // It may have ended by itself.
            let _ = server.kill();
            server.wait()?;
            other.map(|_| None)
        }
    }
}

/// Waits for the server, which has nothing left to do; not for ever.
fn wait(server: &mut Child) -> io::Result<ExitStatus> {
    if !ends_within(server, LAST_STEPS)? {
        tracing::warn!("the server does not end; killing it");
        // It may have ended just now.
        let _ = server.kill();
    }
    server.wait()
}
