//! An instance that has said READY and was not given to anybody yet: its process is known. Until it is, it stays in its
//! template's cgroup.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::sync::oneshot;

use super::descriptors::InstanceDescriptors;
use super::fork::StartError;
use super::freeze::Frozen;
use super::ready::Ready;
use super::template::Template;
use super::watch::Watch;
use super::{Instance, Vitals, Way};
use crate::host_error::HostError;
use crate::sandbox::InstanceCgroup;
use crate::watched::Watched;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// See the module. Dropping it kills the process.
pub(super) struct Fresh {
    instance: Instance,
    /// Not begun: it holds the template, which may hold this.
    watch: Watch,
}

impl Fresh {
    /// Of the process that has said READY.
    ///
    /// # Errors
    /// [`StartError::Died`] if it has ended since; [`StartError::BadReady`] if it is none of the sandbox's.
    pub(super) fn new(
        template: &Template,
        descriptors: InstanceDescriptors,
        Ready { pid, inner_pid }: Ready,
        instance_cgroup: InstanceCgroup,
    ) -> Result<Self, StartError> {
        let InstanceDescriptors {
            channel,
            ready,
            logs,
            ..
        } = descriptors;
        let process = Pid::from_raw(pid.cast_signed()).ok_or(StartError::BadReady)?;
        let pidfd = pidfd_open(process, PidfdFlags::empty()).map_err(|errno| match errno {
            Errno::SRCH => StartError::Died,
            other => other.into(),
        })?;
        logs.signs().add_process(&pidfd)?;
        // A pidfd becomes readable when its process ends.
        let end = Watched::new(pidfd, Interest::READABLE)?;
        // A hostile template may have let the sender end and be reaped, and its number pass to a process of the host,
        // which must not be taken for an instance and killed.
        match template.sandbox.owns(pid) {
            Some(true) => {}
            Some(false) => return Err(StartError::BadReady),
            None => return Err(StartError::Died),
        }
        instance_cgroup.expect(pid);
        let vitals = Arc::new(Vitals {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            pid,
            death: OnceLock::new(),
            died: tokio::sync::Notify::new(),
            hangup: channel.hangup(),
        });
        Ok(Self {
            watch: Watch {
                socket: ready.clone(),
                end,
                vitals: vitals.clone(),
                inner_pid,
            },
            instance: Instance {
                vitals,
                channel,
                logs,
                forked_in: Duration::ZERO,
                was_preforked: true,
                control: ready,
                instance_cgroup: Arc::new(instance_cgroup),
                becomes: None,
                frozen: Frozen::default(),
            },
        })
    }

    /// Notes that a start has waited for it, from the command, FORK or GO, to READY.
    pub(super) fn started(&mut self, took: Duration, was_preforked: bool) {
        self.instance.forked_in = took;
        self.instance.was_preforked = was_preforked;
    }

    /// Whether it still runs.
    pub(super) fn is_usable(&self) -> bool {
        self.instance.is_running()
    }

    /// Begins its use and its move into its cgroup, of which the receiver gets the error. The watch over it is not begun.
    pub(super) fn begin(
        self,
        template: &Arc<Template>,
        way: Way,
    ) -> (Instance, Watch, oneshot::Receiver<HostError>) {
        let Self {
            mut instance,
            watch,
        } = self;
        instance.becomes = (way == Way::Become).then(|| template.clone());
        instance.instance_cgroup.begin_use();
        let refused = instance.instance_cgroup.attach();
        (instance, watch, refused)
    }
}
