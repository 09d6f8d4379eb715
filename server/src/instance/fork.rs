//! Starts an instance: sends its descriptors with FORK or BECOME, waits for READY, then watches the process.
//!
//! Whatever can be prepared before a start is (see [`InstanceDescriptors`](super::descriptors::InstanceDescriptors)), and
//! whatever can wait is done after READY: the cgroup, the watch and the logs are set up while the first request is already
//! being sent.

use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::io::Interest;
use tokio::sync::oneshot;

use super::descriptors::{Forking, InstanceDescriptors, Worker};
use super::freeze::Frozen;
use super::template::{EXIT_NEWS_DEADLINE, ExitStatus, Template};
use super::{Death, FunctionKey, Instance, Logs, Vitals, Way};
use crate::channel::ChannelError;
use crate::host_error::HostError;
use crate::sandbox::{InstanceCgroup, SandboxError};
use crate::watched::Watched;

/// Longest time from FORK to READY. A fork takes about a millisecond; a hook of the function's own may take longer, and
/// a machine under pressure much longer.
pub(super) const READY_DEADLINE: Duration = Duration::from_secs(10);

/// When a start is over, how long before the next one is prepared: the first request goes first.
const AFTER_A_START: Duration = Duration::from_millis(3);

/// Why an instance did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The template said that it could not fork.
    #[error("the template could not fork: {0}")]
    Fork(String),
    /// The fork ended before it was ready.
    #[error("the new instance ended before it was ready")]
    Ended,
    /// No READY in time.
    #[error("the new instance was not ready within {} s", READY_DEADLINE.as_secs())]
    Timeout,
    /// READY made no sense.
    #[error("the new instance sent an invalid READY")]
    BadReady,
    /// It wrote to its channel before it was asked anything.
    #[error("the new instance wrote to its channel before its first request")]
    Talks,
    /// The host could not give what it takes. Nothing is wrong with the template.
    #[error(transparent)]
    Host(HostError),
}

impl From<std::io::Error> for StartError {
    /// A peer that is gone is the template's end; everything else is the host's.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                Self::Ended
            }
            _ => Self::Host(HostError::new(error)),
        }
    }
}

impl From<rustix::io::Errno> for StartError {
    fn from(errno: rustix::io::Errno) -> Self {
        std::io::Error::from(errno).into()
    }
}

impl From<SandboxError> for StartError {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Gone => Self::Ended,
            other => Self::Host(HostError::new(other)),
        }
    }
}

impl From<ChannelError> for StartError {
    fn from(error: ChannelError) -> Self {
        Self::Host(HostError::new(error))
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Instance {
    /// Forks an instance off a template, or has the template become it, and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing of a failed start is left behind.
    pub async fn start(
        template: &Arc<Template>,
        way: Way,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<Self, StartError> {
        let under_way = template.preforked.begin();
        let descriptors = template.take_descriptors(function, sink)?;
        let was_preforked = matches!(descriptors.worker, Worker::Preforked(_));
        let (started, was_preforked) = match Started::from(template, descriptors, way).await {
            // What was forked ahead may have ended meanwhile, which says nothing of the template.
            Err(_) if was_preforked => {
                let descriptors = template.new_descriptors(function, sink)?;
                (Started::from(template, descriptors, way).await, false)
            }
            other => (other, was_preforked),
        };
        let Started {
            descriptors,
            instance_cgroup,
            ready: Ready {
                pid: host_pid,
                inner_pid,
            },
            forked_in,
        } = started?;
        let InstanceDescriptors {
            channel,
            ready,
            logs,
            ..
        } = descriptors;
        drop(under_way);
        if way == Way::Fork {
            template.prepare(function, sink, AFTER_A_START);
        }

        let pid = Pid::from_raw(host_pid.cast_signed()).ok_or(StartError::BadReady)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| match errno {
            Errno::SRCH => StartError::Ended,
            other => other.into(),
        })?;
        logs.signs().add_process(&pidfd)?;
        // A pidfd becomes readable when its process ends.
        let end = Watched::new(pidfd, Interest::READABLE)?;
        // A hostile template may have let the sender end and be reaped, and its number pass to a process of the host,
        // which must not be taken for an instance and killed.
        if !template.sandbox.owns(host_pid) {
            return Err(StartError::BadReady);
        }
        let refused = instance_cgroup.attach(host_pid);
        let vitals = Arc::new(Vitals {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            pid: host_pid,
            death: OnceLock::new(),
            died: tokio::sync::Notify::new(),
            hangup: channel.hangup(),
        });
        let instance_cgroup = Arc::new(instance_cgroup);
        let watch = Watch {
            socket: ready,
            end,
            refused,
            vitals: vitals.clone(),
            template: template.clone(),
            inner_pid,
            way,
        };
        tokio::spawn(watch.run(instance_cgroup.clone()));
        let mut instance = Self {
            vitals,
            channel,
            logs,
            forked_in,
            was_preforked,
            instance_cgroup,
            becomes: (way == Way::Become).then(|| template.clone()),
            frozen: Frozen::default(),
        };
        if !instance.channel.is_quiet() {
            return Err(StartError::Talks);
        }
        Ok(instance)
    }
}

/// A worker that is ready.
struct Started {
    descriptors: InstanceDescriptors,
    instance_cgroup: InstanceCgroup,
    ready: Ready,
    /// From the command, FORK or GO, to READY.
    forked_in: Duration,
}

impl Started {
    /// Forks, or sends GO to the pre-forked instance, and waits for READY.
    async fn from(
        template: &Template,
        mut descriptors: InstanceDescriptors,
        way: Way,
    ) -> Result<Self, StartError> {
        let instance_cgroup = template.sandbox.instance_cgroup().await?;
        let sent = Instant::now();
        descriptors.go()?;
        tokio::time::timeout(READY_DEADLINE, template.start_for(&mut descriptors, way))
            .await
            .map_err(|_| StartError::Timeout)??;
        let Worker::Preforked(Forking { sequence, refused }) = &mut descriptors.worker else {
            return Err(StartError::Ended);
        };
        let answer = tokio::select! {
            ready = receive_ready(&descriptors.ready) => ready,
            Ok(error) = refused => Err(error),
            () = tokio::time::sleep(READY_DEADLINE) => Err(StartError::Timeout),
        };
        template.forget_fork(*sequence);
        if answer.is_ok() {
            template.has_forked();
        }
        Ok(Self {
            ready: answer?,
            instance_cgroup,
            forked_in: sent.elapsed(),
            descriptors,
        })
    }
}

/// Contents of READY.
struct Ready {
    /// On the host, by the kernel's word.
    pid: u32,
    /// Inside the sandbox, by the worker's word; used only to look up what the template says of it.
    inner_pid: u32,
}

async fn receive_ready(socket: &Watched) -> Result<Ready, StartError> {
    let mut bytes = [0_u8; 8];
    let (length, pid) = socket
        .io(Interest::READABLE, |socket| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let message = rustix::net::recvmsg(
                socket,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                flags,
            )?;
            let pid = ancillary.drain().find_map(|item| match item {
                RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
                _ => None,
            });
            Ok((message.bytes, pid))
        })
        .await?;
    match (length, pid) {
        (0, _) => Err(StartError::Ended),
        (5, Some(pid)) if bytes[0] == b'R' => Ok(Ready {
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
            inner_pid: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
        }),
        _ => Err(StartError::BadReady),
    }
}

/// The watch over one instance's process.
struct Watch {
    /// Kept open: the worker would see its closing as the server's end.
    socket: Watched,
    /// The process.
    end: Watched,
    /// Receives the error if it cannot be moved into its cgroup.
    refused: oneshot::Receiver<HostError>,
    vitals: Arc<Vitals>,
    template: Arc<Template>,
    inner_pid: u32,
    way: Way,
}

impl Watch {
    async fn run(self, instance_cgroup: Arc<InstanceCgroup>) {
        // Of a fork the template says how it ended; of itself, PID 1.
        let reported = (self.way == Way::Fork).then(|| self.template.exit_of(self.inner_pid));
        let status = async {
            match reported {
                Some(reported) => reported.await.ok(),
                None => self.template.end_of_itself().await,
            }
        };
        let unlimited = tokio::select! {
            // An error is the runtime's end, and everybody's.
            _ = self.end.readable() => None,
            Ok(error) = self.refused => Some(error),
        };
        if let Some(error) = unlimited {
            tracing::error!(pid = self.vitals.pid, %error, "an instance was ended");
            self.vitals.record(Death::Unlimited(error));
            instance_cgroup.kill();
            return;
        }
        let status = tokio::time::timeout(EXIT_NEWS_DEADLINE, status).await;
        let was_killed = matches!(status, Ok(Some(ExitStatus::Signal(signal))) if signal == Signal::KILL.as_raw());
        let ran_out = match self.way {
            Way::Become => self.template.ran_out_of_memory(),
            Way::Fork => was_killed && self.template.has_oom_killed(),
        };
        let death = if ran_out || instance_cgroup.oom_killed() {
            Death::OutOfMemory
        } else {
            Death::Crashed(match status {
                Ok(Some(status)) => status.to_string(),
                _ => "it exited without a status report".into(),
            })
        };
        self.vitals.record(death);
        // What it left behind in its cgroup goes with it.
        instance_cgroup.kill();
        drop(self.socket);
    }
}
