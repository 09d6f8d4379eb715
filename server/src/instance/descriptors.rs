//! Instance descriptors: channel, READY socket and log pipes. A template keeps one set ready, so that a start does not
//! wait for the dozen system calls that create it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::sync::oneshot;

use super::fork::StartError;
use super::{FunctionKey, LogTap, Logs};
use crate::channel::{HostChannel, PeerEnds};
use crate::watched::Watched;

/// What the server says on the READY socket when the instance is wanted.
const GO: u8 = b'G';

/// See the module.
pub(super) struct InstanceDescriptors {
    pub(super) channel: HostChannel,
    pub(super) worker: Worker,
    /// Where READY comes.
    pub(super) ready: Arc<Watched>,
    pub(super) logs: LogTap,
}

/// What is at the other end.
pub(super) enum Worker {
    /// Nothing yet: FORK takes these along.
    Ends(WorkerEnds),
    /// A pre-forked instance: it waits for GO, or has not said yet what it waits for.
    Preforked(Forking),
}

/// A FORK that was sent.
pub(super) struct Forking {
    pub(super) sequence: u64,
    /// The template's word that it could not fork.
    pub(super) refused: oneshot::Receiver<StartError>,
}

/// The descriptors that go to the worker with FORK.
pub(super) struct WorkerEnds {
    channel: PeerEnds,
    ready: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl WorkerEnds {
    /// In the order of the command.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 6] {
        [
            self.channel.memfd.as_fd(),
            self.channel.worker_bell.as_fd(),
            self.channel.host_bell.as_fd(),
            self.ready.as_fd(),
            self.stdout.as_fd(),
            self.stderr.as_fd(),
        ]
    }
}

impl InstanceDescriptors {
    /// For a worker to come.
    pub(super) fn new(
        busy_poll: Duration,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<Self, StartError> {
        let (channel, channel_ends) = HostChannel::new(busy_poll)?;
        let (server, worker) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::io::ioctl_fionbio(&server, true)?;
        // The kernel then tells the sender's real pid with each message.
        sockopt::set_socket_passcred(&server, true)?;
        let (stdout, stdout_end) = log_pipe()?;
        let (stderr, stderr_end) = log_pipe()?;
        Ok(Self {
            channel,
            worker: Worker::Ends(WorkerEnds {
                channel: channel_ends,
                ready: worker,
                stdout: stdout_end,
                stderr: stderr_end,
            }),
            ready: Arc::new(Watched::new(server, Interest::READABLE)?),
            logs: LogTap::start(function.clone(), sink.clone(), stdout, stderr)?,
        })
    }
}

impl InstanceDescriptors {
    /// Starts the worker: sends GO to a pre-forked instance, or requests a fork.
    pub(super) fn go(&self) -> rustix::io::Result<()> {
        rustix::net::send(
            &self.ready,
            &[GO],
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        )?;
        Ok(())
    }
}

/// A pipe whose read end does not block (ours) and whose write end does (the function's). The worker, which is another
/// user, can open it again by the name `/dev/stdout`, for writing; nobody else has a way to it.
fn log_pipe() -> Result<(OwnedFd, OwnedFd), StartError> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fchmod(&write, Mode::RUSR | Mode::WUSR | Mode::WGRP | Mode::WOTH)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}
