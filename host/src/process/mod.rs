//! The host process as a process: it takes what only root can take, starts the server, serves it, and ends with it.
//!
//! ```text
//! hearth          root: data directory, listeners, probes ──▶ serves the socket ──▶ everything removed, the same status
//! └─ hearth serve root for a moment ──drop──▶ a uid of its own, no capability ──▶ parses what comes from outside
//! ```
//! - [`data`]: whose the data directory is.
//! - [`server`]: the server's side: from root to a process that can do nothing, read top to bottom.

mod data;
mod internet_sockets;
mod lock_down;
pub mod server;
mod signals;
mod sys;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hearth_init::wire;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub use self::data::{DataDir, DataDirError};
use crate::protocol::Reply;
pub use crate::user::ServerUser;
use crate::{Host, HostProcessError};

/// The subcommand by which the server is started.
pub const SERVE: &str = "serve";
/// How long the server may take to end once everything else has.
const LAST_STEPS: Duration = Duration::from_secs(10);
/// How much longer than it may drain the server may take to end after a signal. It needs some two seconds; one that takes
/// this long ignores the signal.
const AFTER_DRAIN: Duration = Duration::from_secs(20);
/// What the server gets of the environment: its settings, and what programs and libraries go by. Not what else whoever
/// started the host process had in it, such as keys.
const VARIABLES: [&str; 9] = [
    "HEARTH_",
    "MIMALLOC_",
    "LC_",
    "LANG",
    "NO_COLOR",
    "PATH",
    "RUST_BACKTRACE",
    "TERM",
    "TZ",
];

/// What the server gets.
pub struct ServerStart {
    /// Its arguments, after the subcommand.
    pub arguments: Vec<OsString>,
    /// Who it is.
    pub user: ServerUser,
    /// The listener of console and API, and that of the functions.
    pub listeners: (OwnedFd, Option<OwnedFd>),
    /// The data directory's lock.
    pub data_dir: DataDir,
    /// Directory of the runtimes.
    pub runtimes: std::path::PathBuf,
    /// How long requests that run may take to finish after a signal.
    pub drain: Duration,
}

/// Starts the server and serves it until it ends. Returns its exit status, or nothing when a signal came before it was
/// there.
///
/// # Errors
/// [`HostProcessError`]; the server has been killed then.
pub fn run(host: Host, start: ServerStart) -> Result<Option<ExitStatus>, HostProcessError> {
    signals::install(start.drain + AFTER_DRAIN)?;
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(io::Error::from)?;
    let mut server = Command::new("/proc/self/exe")
        .arg0_hearth()
        .arg(SERVE)
        .args(&start.arguments)
        .env_clear()
        .envs(environment())
        .env(server::DATA_DIR, &start.data_dir.path)
        .env(server::RUNTIMES, &start.runtimes)
        // What does not fit its memory SQLite puts there, and nowhere else may it write.
        .env("SQLITE_TMPDIR", Path::new(server::DATA_PLACE))
        .stdin(Stdio::from(theirs))
        .spawn()?;
    let ServerStart {
        user,
        listeners: (listener, separate),
        data_dir,
        ..
    } = start;
    let first = Reply::Start {
        uid: user.uid,
        gid: user.gid,
        separate: separate.is_some(),
    };
    let mut fds = vec![data_dir.lock.as_fd(), listener.as_fd()];
    fds.extend(separate.as_ref().map(|listener| listener.as_fd()));
    let served = wire::send(&ours, &first.encode(), &fds)
        .and_then(|()| pidfd(&server))
        .map_err(HostProcessError::from)
        .and_then(|pidfd| {
            signals::pass_on_to(pidfd);
            // They are the server's now: when it closes them, nobody listens.
            drop((listener, separate));
            if signals::stopped() {
                return Ok(false);
            }
            host.serve(ours).map(|()| true)
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

fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    let is_known = |name: &OsString| {
        let name = name.as_encoded_bytes();
        let mut known = VARIABLES.iter();
        known.any(|known| match known.ends_with('_') {
            true => name.starts_with(known.as_bytes()),
            false => name == known.as_bytes(),
        })
    };
    std::env::vars_os().filter(move |(name, _)| is_known(name))
}

/// `hearth`, as whoever started it wrote it.
trait Arg0 {
    fn arg0_hearth(&mut self) -> &mut Self;
}

impl Arg0 for Command {
    fn arg0_hearth(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::arg0(self, "hearth")
    }
}

fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits for the server, which has nothing left to do; not for ever.
fn wait(server: &mut Child) -> io::Result<ExitStatus> {
    let pidfd = pidfd(server)?;
    let most = Timespec::try_from(LAST_STEPS).map_err(io::Error::other)?;
    let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| rustix::event::poll(&mut ended, Some(&most)))?;
    if ready == 0 {
        tracing::warn!("the server does not end; killing it");
        // It may have ended just now.
        let _ = server.kill();
    }
    server.wait()
}
