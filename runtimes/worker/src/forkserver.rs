//! The template's loop: wait for START, let the language fork or become the instance, reap. The fork itself is the
//! language's own.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::children::Children;
use crate::compaction;
use crate::control::{Command, Control, ControlError};
use crate::message::{self, Way};
use crate::parts::{FORK_DESCRIPTORS, Parts};
use crate::sys;

/// A command to start an instance. The answer is [`ForkServer::forked`] or [`ForkServer::refuse`]; in the instance, neither.
#[derive(Debug)]
pub struct StartRequest {
    /// How the instance starts: by a fork, or by becoming it.
    pub way: Way,
    /// The server's number for it.
    pub sequence: u64,
    /// What the instance takes over. A template that forks drops it.
    pub parts: Parts,
}

/// The template's side of the control socket once it is up. An instance drops it before anything else: it closes the socket
/// and gives SIGCHLD back.
pub struct ForkServer {
    control: Control,
    children: Children,
    /// Whether its memory was moved into large folios, or that was tried.
    is_compact: bool,
}

impl ForkServer {
    /// Writes out what C code has printed, which would be each child's once more; starts watching for children, then sends `booted`, the
    /// report that the template is running, unless something else does. At most one of these may be alive.
    ///
    /// The report is a template's last step before it waits: from then on it may be dumped at any moment, and what it was
    /// in the middle of would go on in every restore.
    ///
    /// # Errors
    /// The kernel refused, or the server is gone.
    pub fn start(control: Control, booted: Option<&str>) -> Result<Self, ControlError> {
        sys::flush_c_streams();
        occupy_standard_descriptors().map_err(ControlError::Watch)?;
        let children = Children::watch().map_err(ControlError::Watch)?;
        if let Some(booted) = booted {
            control.send(booted.as_bytes())?;
        }
        Ok(Self {
            control,
            children,
            is_compact: false,
        })
    }

    /// Waits for the next command, and reports children that end meanwhile. Returns nothing if the server is gone.
    ///
    /// # Errors
    /// The socket failed, or what came is no command.
    pub fn wait(&mut self) -> Result<Option<StartRequest>, ControlError> {
        loop {
            let (way, sequence, descriptors) = match self.next_command() {
                Ok(Command::Start {
                    way,
                    sequence,
                    descriptors,
                }) => (way, sequence, descriptors),
                Ok(Command::Close) | Err(ControlError::Send(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            match Parts::try_from(descriptors) {
                Ok(parts) => {
                    if way == Way::Fork {
                        self.compact_before_prefork(&parts);
                    }
                    return Ok(Some(StartRequest {
                        way,
                        sequence,
                        parts,
                    }));
                }
                Err(count) => {
                    let reason =
                        format!("{count} descriptors arrived instead of {FORK_DESCRIPTORS}");
                    self.refuse(sequence, &reason, None)?;
                }
            }
        }
    }

    /// Compacts the memory once, before a fork that no request waits for. An earlier fork would keep the old memory
    /// alive.
    fn compact_before_prefork(&mut self, parts: &Parts) {
        if !self.is_compact && self.children.are_none() && !parts.are_wanted() {
            self.is_compact = true;
            // Where the kernel does not let it, forks take longer and are none the worse.
            let _ = compaction::compact(|| parts.are_wanted() || self.is_commanded());
        }
    }

    /// Whether the server has said something else.
    fn is_commanded(&self) -> bool {
        let mut ready = [PollFd::new(&self.control, PollFlags::IN)];
        poll(&mut ready, Some(&Timespec::default())) != Ok(0)
    }

    /// Counts a new child in.
    pub fn forked(&mut self, pid: Pid) {
        self.children.add(pid);
    }

    /// Reports that a command created no child, with the errno if there is one.
    ///
    /// # Errors
    /// The server is gone.
    pub fn refuse(
        &self,
        sequence: u64,
        reason: &str,
        errno: Option<i32>,
    ) -> Result<(), ControlError> {
        self.control
            .send(message::fork_failed(sequence, reason, errno).as_bytes())
    }

    fn next_command(&mut self) -> Result<Command, ControlError> {
        loop {
            let (command_came, child_ended) = {
                let mut ready = [
                    PollFd::new(&self.control, PollFlags::IN),
                    PollFd::from_borrowed_fd(self.children.bell(), PollFlags::IN),
                ];
                match poll(&mut ready, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(ControlError::Receive(errno.into())),
                }
                (
                    !ready[0].revents().is_empty(),
                    !ready[1].revents().is_empty(),
                )
            };
            if child_ended {
                let control = &self.control;
                let mut sent = Ok(());
                self.children.reap(|pid, end| {
                    let report = message::exited(pid.as_raw_nonzero().get().unsigned_abs(), end);
                    if sent.is_ok() {
                        sent = control.send(report.as_bytes());
                    }
                });
                sent?;
            }
            if command_came && let Some(command) = self.control.try_receive()? {
                return Ok(command);
            }
        }
    }
}

/// Opens what the function's module has closed of stdin, stdout and stderr: a descriptor received later would take its
/// number and be overwritten when a child takes its streams.
fn occupy_standard_descriptors() -> io::Result<()> {
    loop {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        if null.as_raw_fd() > libc::STDERR_FILENO {
            return Ok(());
        }
        let _ = null.into_raw_fd();
    }
}
