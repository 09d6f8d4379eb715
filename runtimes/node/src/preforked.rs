//! Instances for a Node that cannot be forked: processes that have booted and imported the function ahead of time. Each
//! speaks the template's own protocol on its descriptor 3: it gets the configuration, says whether the import worked, and
//! becomes the instance of the one FORK that it is then given.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use hearth_worker::control::{Control, ControlError};
use hearth_worker::forkserver::{ForkServer, StartRequest};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use crate::sys;

/// Pre-booted processes could not be served.
#[derive(Debug, thiserror::Error)]
pub enum PreforkError {
    /// The control socket, or a pre-booted process's.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A pre-booted process could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The interpreter.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The first one ended without a word on its import.
    #[error("the first process ended while it imported the function")]
    Ended,
}

/// A process that waits to become an instance, or is still booting.
struct Preforked {
    pid: Pid,
    control: Control,
}

/// Boots the first pre-forked instance, passes on what it says of the import, and then answers FORK with pre-forked
/// instances until the server is gone. After an import that failed it returns as well: the pre-forked instance's report has
/// been passed on.
pub(crate) fn serve(
    control: Control,
    config: &str,
    program: &str,
    arguments: &[String],
) -> Result<(), PreforkError> {
    let first = start(config, program, arguments, FIRST_PREFORKED)?;
    let start = || start(config, program, arguments, PREFORKED);
    let report = first
        .control
        .receive_message()?
        .ok_or(PreforkError::Ended)?;
    if !report.starts_with(BOOTED) {
        return Ok(control.send(&report)?);
    }
    let booted = String::from_utf8_lossy(&report);
    let mut server = ForkServer::start(control, Some(&booted))?;
    server.forked(first.pid);
    let mut preforked = Some(first);
    while let Some(request) = server.wait()? {
        let next = preforked
            .take()
            .filter(|preforked| assign(preforked, &request));
        if next.is_none() {
            match start() {
                Ok(fresh) => {
                    server.forked(fresh.pid);
                    if !assign(&fresh, &request) {
                        server.refuse(request.sequence, "a new process ended at once", None)?;
                    }
                }
                Err(error) => server.refuse(request.sequence, &error.to_string(), None)?,
            }
        }
        drop(request);
        // The next one boots while this one works. Should it not start, the next request says why.
        if let Ok(fresh) = start() {
            server.forked(fresh.pid);
            preforked = Some(fresh);
        }
    }
    Ok(())
}

/// Words after the arguments: the first pre-forked instance reports on its import. The others say nothing, because a socket
/// that is closed with something unread in it takes what was sent the other way along.
const FIRST_PREFORKED: &str = "--first-preforked";
const PREFORKED: &str = "--preforked";

/// How the report of an import that worked begins (`worker/template.js` writes it).
const BOOTED: &[u8] = br#"{"type":"booted""#;

/// Gives the request to a pre-forked instance; false when it is gone.
fn assign(preforked: &Preforked, request: &StartRequest) -> bool {
    preforked
        .control
        .send_become(request.sequence, &request.parts)
        .is_ok()
}

fn start(
    config: &str,
    program: &str,
    arguments: &[String],
    word: &str,
) -> Result<Preforked, PreforkError> {
    let failed = |source: io::Error| PreforkError::Start {
        program: program.to_owned(),
        source,
    };
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| failed(errno.into()))?;
    let pid = spawn(program, arguments, word, theirs).map_err(failed)?;
    let control = Control::from(ours);
    control.send(config.as_bytes())?;
    Ok(Preforked { pid, control })
}

/// The child is reaped by the fork server, not through its handle.
#[allow(clippy::zombie_processes, reason = "the fork server reaps it")]
fn spawn(program: &str, arguments: &[String], word: &str, control: OwnedFd) -> io::Result<Pid> {
    let mut command = Command::new(program);
    command.args(arguments).arg(word);
    sys::give_control(&mut command, &control);
    let child = command.spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("no process id"))
}
