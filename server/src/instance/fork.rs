//! Starts an instance: takes the one that its template has prepared, or sends descriptors with FORK or BECOME and waits for
//! READY.
//!
//! Whatever can be prepared before a start is (see [`preforked`](super::preforked)), and whatever can wait is done after READY:
//! the move into the cgroup begins while the first request is already being sent, the rest is left to the [`FollowUp`].

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::descriptors::{Forking, InstanceDescriptors, Worker};
use super::follow_up::FollowUp;
use super::fresh::Fresh;
use super::preforked::Prepared;
use super::ready::receive_ready;
use super::template::Template;
use super::{FunctionKey, Instance, Logs, Way};
use crate::channel::ChannelError;
use crate::host_error::HostError;
use crate::sandbox::SandboxError;

/// Longest time from FORK to READY. A fork takes about a millisecond; a hook of the function's own may take longer, and
/// a machine under pressure much longer.
pub(super) const READY_DEADLINE: Duration = Duration::from_secs(10);

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

impl Instance {
    /// Takes a template's prepared instance, forks one, or has the template become one, and waits until it is ready. It is to be
    /// followed up as soon as its first request is on its way.
    ///
    /// # Errors
    /// [`StartError`]; nothing of a failed start is left behind.
    pub async fn start(
        template: &Arc<Template>,
        way: Way,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<(Self, FollowUp), StartError> {
        let under_way = template.preforked.begin();
        let prepared = match template.take_prepared() {
            Some(Prepared::Instance(preforked)) => Some(preforked),
            Some(Prepared::Descriptors(descriptors)) => {
                let was_preforked = matches!(descriptors.worker, Worker::Preforked(_));
                match start_with(template, descriptors, way).await {
                    // What was forked ahead may have ended meanwhile, which says nothing of the template.
                    Err(_) if was_preforked => None,
                    started => Some(started?),
                }
            }
            None => None,
        };
        let fresh = match prepared {
            Some(fresh) => fresh,
            None => {
                let descriptors = template.new_descriptors(function, sink)?;
                start_with(template, descriptors, way).await?
            }
        };
        drop(under_way);
        let (mut instance, watch, refused) = fresh.begin(template, way);
        if !instance.channel.is_quiet() {
            return Err(StartError::Talks);
        }
        let follow_up = FollowUp {
            template: template.clone(),
            way,
            watch,
            instance_cgroup: instance.instance_cgroup.clone(),
            refused,
            function: function.clone(),
            sink: sink.clone(),
        };
        Ok((instance, follow_up))
    }
}

/// Forks, or sends GO to the pre-forked instance, and waits for READY.
async fn start_with(
    template: &Template,
    mut descriptors: InstanceDescriptors,
    way: Way,
) -> Result<Fresh, StartError> {
    let was_preforked = matches!(descriptors.worker, Worker::Preforked(_));
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
    let ready = answer?;
    template.has_forked();
    let mut fresh = Fresh::new(template, descriptors, ready, instance_cgroup)?;
    fresh.started(sent.elapsed(), was_preforked);
    Ok(fresh)
}
