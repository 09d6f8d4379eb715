//! From the program that prepares to the host process: the same process executes itself once more. What preparing has left in
//! memory, such as the parser of settings, is gone then, and the host process has what it needs and nothing else.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use hearth_init::fields::Fields as _;
use hearth_init::{fields_of, wire};
use rustix::fs::FileType;

use super::ServerStart;
use crate::Host;
use crate::children::NO_HUGE_PAGES;
use crate::memfd::{sealed, socket_pair};
use crate::protocol::PapersError;
use crate::protocol::papers::read_sealed;

/// The subcommand by which the host process is started.
pub const HOST: &str = "host";
/// The only message. Comes with the orders and the descriptors that are the server's.
const ORDERS: &[u8] = b"H";

/// What the host process is told.
pub struct Orders {
    /// What it works on.
    pub host: Host,
    /// How to start the server.
    pub start: ServerStart,
    /// What to log, in `tracing` syntax.
    pub log: String,
}

fields_of!(Orders { host, start, log });

/// Why there is no host process.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// It was started by hand.
    #[error("`hearth host` is started by `hearth`, not by hand")]
    ByHand,
    /// Something could not be passed on.
    #[error("cannot start the host process: {0}")]
    Kernel(#[from] io::Error),
    /// The orders are none.
    #[error("cannot start the host process: {0}")]
    Orders(#[from] PapersError),
}

/// Becomes the host process, with these descriptors as [`super::run`] has them. Returns only what went wrong.
pub fn hand_over(orders: &Orders, fds: &[BorrowedFd<'_>]) -> HandoverError {
    let passed_on = || -> io::Result<()> {
        let (ours, theirs) = socket_pair()?;
        let orders = sealed(&orders.to_bytes())?;
        wire::send(&ours, ORDERS, &[&[orders.as_fd()], fds].concat())?;
        Ok(rustix::stdio::dup2_stdin(&theirs)?)
    };
    if let Err(error) = passed_on() {
        return error.into();
    }
    let mut host = Command::new("/proc/self/exe");
    host.arg0("hearth").arg(HOST);
    host.env(NO_HUGE_PAGES.0, NO_HUGE_PAGES.1).exec().into()
}

/// Takes what [`hand_over`] has passed on.
///
/// # Errors
/// [`HandoverError`].
pub fn take_over() -> Result<(Orders, Vec<OwnedFd>), HandoverError> {
    let socket = socket_of_stdin()?.ok_or(HandoverError::ByHand)?;
    let mut message = [0; ORDERS.len()];
    let (length, mut fds) = wire::receive(&socket, &mut message)?;
    if length != ORDERS.len() || message != ORDERS || fds.len() < 3 {
        return Err(HandoverError::ByHand);
    }
    let orders = read_sealed(fds.remove(0))?;
    let orders = Orders::from_bytes(&orders).map_err(PapersError::from)?;
    Ok((orders, fds))
}

/// The socket that is standard input, and is taken off it. None if it is something else.
///
/// # Errors
/// What the kernel says.
pub fn socket_of_stdin() -> io::Result<Option<OwnedFd>> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let mode = rustix::fs::fstat(&stdin)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::Socket {
        return Ok(None);
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(Some(stdin))
}
