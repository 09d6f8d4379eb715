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
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;

use super::descriptors::{Forking, InstanceDescriptors, WAITING, Worker};
use super::freeze::Frozen;
use super::template::Template;
use super::watch::Watch;
use super::{FunctionKey, Instance, Logs, Vitals, Way};
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
    /// It was ready and ended at once, as one does that is killed for its memory. Says nothing of the template.
    #[error("the new instance ended as soon as it was ready")]
    Died,
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
            Errno::SRCH => StartError::Died,
            other => other.into(),
        })?;
        logs.signs().add_process(&pidfd)?;
        // A pidfd becomes readable when its process ends.
        let end = Watched::new(pidfd, Interest::READABLE)?;
        // A hostile template may have let the sender end and be reaped, and its number pass to a process of the host,
        // which must not be taken for an instance and killed.
        match template.sandbox.owns(host_pid) {
            Some(true) => {}
            Some(false) => return Err(StartError::BadReady),
            None => return Err(StartError::Died),
        }
        let refused = instance_cgroup.attach(host_pid);
        let ready = Arc::new(ready);
        let vitals = Arc::new(Vitals {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            pid: host_pid,
            death: OnceLock::new(),
            died: tokio::sync::Notify::new(),
            hangup: channel.hangup(),
        });
        let instance_cgroup = Arc::new(instance_cgroup);
        let watch = Watch {
            socket: ready.clone(),
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
            control: ready,
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

/// Receives READY. A pre-forked instance has said WAITING before, once.
async fn receive_ready(socket: &Watched) -> Result<Ready, StartError> {
    match receive_message(socket).await? {
        Message::Ready(ready) => Ok(ready),
        Message::Waiting => match receive_message(socket).await? {
            Message::Ready(ready) => Ok(ready),
            Message::Waiting => Err(StartError::BadReady),
        },
    }
}

/// What an instance says on its READY socket.
enum Message {
    Waiting,
    Ready(Ready),
}

async fn receive_message(socket: &Watched) -> Result<Message, StartError> {
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
        (1, _) if bytes[0] == WAITING => Ok(Message::Waiting),
        (5, Some(pid)) if bytes[0] == b'R' => Ok(Message::Ready(Ready {
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
            inner_pid: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
        })),
        _ => Err(StartError::BadReady),
    }
}
