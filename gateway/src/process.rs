//! The gateway as a process: from root to one that may administer networks and do nothing else, read top to bottom. The numbers
//! are those of the list in `server/docs/privileges.md`.

mod lock_down;

use std::io;
use std::os::fd::OwnedFd;

use hearth_host::GATEWAY_USER;
use hearth_host::process::filter::Failure;
use hearth_host::process::{privileges, socket_of_stdin, sys};
use hearth_host::protocol::papers::read_sealed;
use hearth_host::protocol::{Message as _, PapersError, ToGateway};
use hearth_init::fields::Fields as _;
use hearth_init::wire;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::CapabilitySet;

use crate::gateway::{Gateway, Opened};
use crate::serve;
use crate::settings::Settings;
use crate::sys::ignore_signals;

/// The kernel's types.
const TYPES: &str = "/sys/kernel/btf";
/// A directory that every host has, to be covered.
const ROOT: &str = "/run";

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// It was started by hand.
    #[error("`hearth gateway` is started by `hearth`, not by hand")]
    ByHand,
    /// A privilege could not be dropped.
    #[error("the gateway cannot drop privileges at {0}: {1}")]
    Step(&'static str, io::Error),
    /// The same of Landlock and the system call filter.
    #[error("the gateway cannot drop privileges: {0}")]
    LockDown(Failure),
    /// What the host process said is not what it says.
    #[error("the host process sent an unexpected message")]
    Unexpected,
    /// The settings are none.
    #[error("the settings of the gateway: {0}")]
    Settings(#[from] PapersError),
    /// It cannot go on.
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
}

/// The gateway with one privilege.
pub struct Process {
    /// The socket to the host process.
    host: OwnedFd,
    /// The socket to the server.
    server: OwnedFd,
    /// What it works in, or what this host lacks.
    opened: Result<Opened, String>,
    /// What to log, in `tracing` syntax.
    pub log: String,
}

fn step<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> GatewayError {
    move |error| GatewayError::Step(what, error.into())
}

impl Process {
    /// Takes what the host process passes on, opens what only root may, and drops what the gateway does not need. The process
    /// must have one thread only. What is left to be dropped: [`Self::lock_down`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn begin() -> Result<Self, GatewayError> {
        // 1. The socket is standard input, and is taken off it; no other descriptor was passed on. Signals are the host
        //    process's: the gateway ends with its socket.
        sys::close_from(3).map_err(step("descriptors"))?;
        let host = socket_of_stdin().map_err(step("stdin"))?;
        let host = host.ok_or(GatewayError::ByHand)?;
        ignore_signals().map_err(step("signals"))?;
        let mut bytes = [0; ToGateway::BYTES];
        let (length, fds) = wire::receive(&host, &mut bytes).map_err(step("the socket"))?;
        let mut fds = fds.into_iter();
        let (Ok(ToGateway::Start), Some(settings), Some(server)) =
            (ToGateway::decode(&bytes[..length]), fds.next(), fds.next())
        else {
            return Err(GatewayError::Unexpected);
        };
        let settings = read_sealed(settings)?;
        let settings = Settings::from_bytes(&settings).map_err(PapersError::from)?;

        // Mounts of its own, without the kernel's types.
        unshare_mounts()?;
        hide_types()?;

        // A network namespace of its own, and sockets in that and in the host's.
        let opened = Gateway::open(&settings);

        // 2. It sees no file.
        hide_files()?;

        // 3. As the server, but for one capability. Where there is no network to administer, no capability is kept.
        let keep = match &opened {
            Ok(_) => CapabilitySet::NET_ADMIN,
            Err(_) => CapabilitySet::empty(),
        };
        privileges::drop_to(GATEWAY_USER, keep)
            .map_err(|(step, error)| GatewayError::Step(step, error))?;
        Ok(Self {
            host,
            server,
            opened,
            log: settings.log,
        })
    }

    /// Drops the rest: files but one directory of settings of the host's network, and system calls but those it makes.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn lock_down(&self) -> Result<(), GatewayError> {
        let opened = self.opened.as_ref().ok();
        let directory = opened.and_then(|opened| opened.gateway.directory());
        // 4. Files, ports and signals, by Landlock.
        lock_down::restrict_files(directory).map_err(GatewayError::LockDown)?;
        // 5. System calls, last.
        lock_down::restrict_calls().map_err(GatewayError::LockDown)
    }

    /// Does what it is for until the host process is gone.
    ///
    /// # Errors
    /// [`GatewayError::Serve`].
    pub fn serve(self) -> Result<(), GatewayError> {
        Ok(serve::serve(self.host, self.server, self.opened)?)
    }
}

fn unshare_mounts() -> Result<(), GatewayError> {
    sys::unshare_mounts().map_err(step("a mount namespace"))?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", private).map_err(step("making all mounts private"))
}

/// Puts an empty directory in place of the kernel's types. What loads the programs would read them all, 40 MB in memory, to use
/// none.
fn hide_types() -> Result<(), GatewayError> {
    match cover(TYPES) {
        // This kernel has none.
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        covered => covered.map_err(step("the kernel's types")),
    }
}

fn cover(directory: &str) -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    rustix::mount::mount("tmpfs", directory, "tmpfs", flags, c"mode=0555,size=4k")
}

/// Puts an empty directory in place of everything, among mounts of its own.
fn hide_files() -> Result<(), GatewayError> {
    cover(ROOT).map_err(step("an empty directory"))?;
    std::env::set_current_dir(ROOT).map_err(step("entering it"))?;
    // The former root is put on top of the new one, and taken off (pivot_root(2)).
    rustix::process::pivot_root(".", ".").map_err(step("changing the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(step("leaving the former root"))?;
    std::env::set_current_dir("/").map_err(step("the working directory"))
}
