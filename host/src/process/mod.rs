//! The host process as a process: it takes what only root can take, starts the server, serves it, and ends with it.
//!
//! ```text
//! hearth          root: data directory, listeners, probes ──▶ serves the socket ──▶ everything removed, the same status
//! └─ hearth serve root for a moment ──drop──▶ a uid of its own, no capability ──▶ parses what comes from outside
//! ```
//! - [`data`]: whose the data directory is.
//! - [`server`]: the server's side: from root to a process that can do nothing, read top to bottom.

mod data;
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
}

/// Starts the server and serves it until it ends. Returns its exit status, or nothing when a signal came before it was
/// there.
///
/// # Errors
/// [`HostProcessError`]; the server has been killed then.
pub fn run(host: Host, start: ServerStart) -> Result<Option<ExitStatus>, HostProcessError> {
    signals::install()?;
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
