//! Restoring a template with CRIU, from inside the sandbox that was made for it.
//!
//! The sandbox itself is created as for a boot; CRIU restores only processes. It runs as the sandbox's root, not the
//! host's, and under the template's Landlock rules, which restored processes inherit. An image crafted by a hostile
//! template to exploit CRIU gains nothing beyond the sandbox.

mod restored;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use hearth_init::criu::{CriuProgram, IN_IMAGE, RESTORE_LOG, SERVE, WORK};
use hearth_init::{JailSpec, TEMPLATE_PID, wire};
use rustix::fs::{Gid, Uid};
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use crate::error::JailError;
use crate::fill::Fillings;
use crate::gate::{self, RestoreGate};
use crate::remark::Marks;
use crate::run_criu::{Criu, pipes, socket as socket_name};
use crate::sys::{self, Fork};
use crate::{confine, inject, inspect, rpc};

use restored::processes_but;

pub use restored::{Restored, SpentCriu};

/// What CRIU found out about the kernel, in its work directory.
const NOTES: &str = "criu.kdat";
/// What a restore took, in its work directory.
const STATISTICS: &str = "stats-restore";

/// A strategy from CRIU's `fault-injection.h`: it finds the end of its own code in a restored process by that one's system
/// calls instead of by a hardware breakpoint. The first breakpoint on a host that had none for a second waits for a grace
/// period of RCU (`account_event` in the kernel's `events/core.c`), 10 to 25 ms.
const NO_BREAKPOINTS: &str = "130";

/// Longest answer of CRIU's that is looked at, bytes: a success is a dozen.
const MAX_ANSWER: usize = 256;

/// What takes the place of the descriptors that led outside.
pub struct Ends<'a> {
    /// The template's end of the new control socket.
    pub control: &'a OwnedFd,
    /// Write end of the new standard output.
    pub stdout: &'a OwnedFd,
    /// Write end of the new standard error.
    pub stderr: &'a OwnedFd,
}

/// A CRIU within reach of the sandbox, for one restore.
pub struct Restorer {
    criu: Criu,
}

/// A CRIU that has started.
pub struct Started {
    pid: Pid,
    pidfd: OwnedFd,
    /// Where it says how it went; readable when it has ended, too.
    pub socket: OwnedFd,
    /// What it waits at, if it does.
    gate: Option<RestoreGate>,
}

impl Restorer {
    /// Opens everything while the host's files are visible, and gives the log to the sandbox's root user, which writes
    /// it.
    pub fn of_image(spec: &JailSpec, images: &Path) -> Result<Self, JailError> {
        let (program, dir) = criu_of(spec)?;
        let work = dir.join(WORK);
        let criu = Criu::open(program, images, &work).map_err(JailError::restore)?;
        Self::with_notes(criu, program, &work, spec.uid_base)
    }

    /// The same for an image that will come later. Opens what the calling process's own mounts show: only those lead to
    /// what is mounted on them later.
    pub fn ahead(spec: &JailSpec) -> Result<Self, JailError> {
        let (program, dir) = criu_of(spec)?;
        // The directories on the way here are the server's alone.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).map_err(JailError::restore)?;
        gate::build(dir, spec.uid_base)?;
        let criu = Criu::open_ahead(program, dir).map_err(JailError::restore)?;
        Self::with_notes(criu, program, &dir.join(WORK), spec.uid_base)
    }

    fn with_notes(
        criu: Criu,
        program: &CriuProgram,
        work: &Path,
        owner: u32,
    ) -> Result<Self, JailError> {
        let give = || -> io::Result<()> {
            fs::copy(&program.kdat, work.join(NOTES))?;
            // CRIU would make these in the middle of a restore.
            for name in [RESTORE_LOG, STATISTICS] {
                fs::File::create(work.join(name))?;
            }
            for name in [NOTES, RESTORE_LOG, STATISTICS] {
                std::os::unix::fs::chown(work.join(name), Some(owner), Some(owner))?;
            }
            let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
            Ok(rustix::fs::fchown(&criu.work, user, group)?)
        };
        give().map_err(JailError::restore)?;
        Ok(Self { criu })
    }

    /// Starts CRIU's restore. Before it reads the image it stops at the gate, if there is one.
    pub fn start(&self, ends: &Ends<'_>) -> Result<Started, JailError> {
        let (socket, ears) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| JailError::restore(errno.into()))?;
        let [stdout, stderr] = pipes(&IN_IMAGE);
        let inherit = [
            (ends.control.as_raw_fd(), socket_name(IN_IMAGE.control)),
            (ends.stdout.as_raw_fd(), stdout),
            (ends.stderr.as_raw_fd(), stderr),
        ];
        let request = rpc::restore_request(&self.criu.images_path(), RESTORE_LOG, &inherit);
        rustix::net::send(&socket, &request, SendFlags::NOSIGNAL)
            .map_err(|errno| JailError::restore(errno.into()))?;
        let pid = match sys::fork().map_err(JailError::Namespaces)? {
            Fork::Parent(pid, _) => pid,
            Fork::Child => {
                // Only returns when it fails; the log, which PID 1 looks at, may not even exist then.
                let status = if self.become_criu(ends, &ears).is_err() {
                    126
                } else {
                    127
                };
                std::process::exit(status);
            }
        };
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())
            .map_err(|errno| JailError::restore(errno.into()))?;
        Ok(Started {
            pid,
            pidfd,
            socket,
            gate: None,
        })
    }

    /// Waits until CRIU is as far as it can get without an image.
    pub fn wait_at_gate(&self, started: &mut Started) -> Result<(), JailError> {
        if !self.criu.is_ahead() {
            return Ok(());
        }
        started.gate = RestoreGate::reached(&self.criu.dir_path(), &started.socket)
            .map_err(JailError::restore)?;
        if started.gate.is_none() {
            return Err(self.failure(wait_for(started.pid)?));
        }
        Ok(())
    }

    /// Restores. The template and what else is in the image is stopped then and has run nothing yet.
    pub fn restore(&self, started: Started) -> Result<Restored, JailError> {
        let Started {
            pid: criu,
            pidfd,
            socket,
            gate,
        } = started;
        // Keeps CRIU, which still has to finish, and this process from sharing a CPU until then.
        sys::ask_for_short_slices();
        if let Some(gate) = gate {
            gate.open(&self.criu.dir_path())
                .map_err(JailError::restore)?;
        }
        let mut answer = [0; MAX_ANSWER];
        let answer = wire::receive(&socket, &mut answer)
            .and_then(|(length, _)| rpc::succeeded(&answer[..length]));
        if !matches!(answer, Ok(true)) {
            return Err(self.failure(wait_for(criu)?));
        }
        let spent = SpentCriu::stop(pidfd)?;
        let fillings = Fillings::open(&self.criu.files_path()).map_err(JailError::restore)?;
        let marks = Marks::read(&self.criu.files_path()).map_err(JailError::restore)?;
        let restored = processes_but(criu);
        if !fillings.are_all_of(&restored) || !marks.are_all_of(&restored) {
            return Err(JailError::Restore("memory of no process".into()));
        }
        // The rest of their memory, what is special about some of it, and the system call filter, which is not part of the
        // image.
        for pid in restored {
            inject::with_stopped(pid, |process| {
                marks.put_back(pid, process)?;
                fillings.fill(pid, process, || process.install_filters())
            })
            .map_err(|error| {
                JailError::Restore(format!(
                    "marking and filling memory and installing the filter: {error}"
                ))
            })?;
        }
        // It has rights that nothing may have which is looked at from here on, and could have made more of its kind.
        spent.wait_until_still()?;
        let processes = processes_but(criu);
        inspect::rights(&processes)?;
        let template = Pid::from_raw(TEMPLATE_PID);
        let template = template.ok_or_else(|| JailError::Restore("no template".into()))?;
        Ok(Restored {
            template,
            processes,
            spent,
        })
    }

    /// Why a CRIU that ended with this status has not restored.
    fn failure(&self, status: Option<i32>) -> JailError {
        match status {
            Some(126 | 127) => JailError::Restore("CRIU could not be started".into()),
            _ => JailError::Restore(self.criu.errors(RESTORE_LOG)),
        }
    }

    fn become_criu(&self, ends: &Ends<'_>, ears: &OwnedFd) -> Result<io::Error, JailError> {
        confine::restrict_files(Some(&self.criu))?;
        for fd in [ends.control, ends.stdout, ends.stderr, ears] {
            rustix::io::fcntl_setfd(fd, FdFlags::empty())
                .map_err(|errno| JailError::restore(errno.into()))?;
        }
        let mut command = self.criu.command(true).map_err(JailError::restore)?;
        let notes = format!("/proc/self/fd/{}", self.criu.work.as_raw_fd());
        Ok(command
            .env("XDG_RUNTIME_DIR", notes)
            .env("CRIU_FAULT", NO_BREAKPOINTS)
            .args([
                // Root of the sandbox only: what the host's alone may do is done another way or left out. CRIU then looks
                // for its notes where the variable says.
                "--unprivileged",
                "--restore-detached",
                // The template becomes PID 1's child.
                "--restore-sibling",
                "--leave-stopped",
                "--ext-unix-sk",
                // The files that a template maps are the distribution's and the version's own; reading each one's build id
                // costs a millisecond.
                "--file-validation",
                "filesize",
            ])
            .args([SERVE, &ears.as_raw_fd().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .exec())
    }
}

/// Waits for a child's end, and returns its exit status if it exited.
fn wait_for(child: Pid) -> Result<Option<i32>, JailError> {
    let ended =
        rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()))
            .map_err(|errno| JailError::restore(errno.into()))?;
    Ok(ended.and_then(|(_, status)| status.exit_status()))
}

/// The CRIU that restores a sandbox, and its directory.
fn criu_of(spec: &JailSpec) -> Result<(&CriuProgram, &Path), JailError> {
    match (&spec.criu, &spec.criu_dir) {
        (Some(program), Some(dir)) => Ok((program, dir)),
        _ => Err(JailError::Spec("something to restore and no CRIU".into())),
    }
}
