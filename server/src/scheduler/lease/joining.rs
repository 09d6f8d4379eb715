//! How a request comes to an instance: it takes an idle one, or waits for one in the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use super::super::boot_failure::{BootFailure, Cause};
use super::super::deployment::{Deployment, InstancePool};
use super::super::pool::{Acquired, Full};
use super::{Handed, Lease, LeaseError};
use crate::instance::Instance;
use crate::model::StartKind;

/// Where a request joins the queue.
pub(super) enum Place {
    /// Behind all others, if there is room.
    Last,
    /// Before all others: it had come to its turn, and got an instance that was dead.
    First,
}

/// What a request gets at once.
pub(super) enum Joined {
    /// An idle instance.
    Leased(Box<Instance>),
    /// Its place in the queue.
    Queued(oneshot::Receiver<Result<Handed, Arc<BootFailure>>>),
}

impl Deployment {
    /// Leases an idle instance that can serve, or queues.
    pub(super) fn join(
        &self,
        mut pool: MutexGuard<'_, InstancePool>,
        now: Instant,
        place: Place,
    ) -> Result<Joined, LeaseError> {
        // Dropped outside the lock.
        let mut unfit = Vec::new();
        let joined = loop {
            let Acquired::Leased(mut instance) = pool.acquire(now) else {
                let (sender, receiver) = oneshot::channel();
                let queued = match place {
                    Place::Last => pool.enqueue(sender),
                    Place::First => {
                        pool.enqueue_first(sender);
                        Ok(())
                    }
                };
                break match queued {
                    Ok(()) => Ok(Joined::Queued(receiver)),
                    Err(Full(_)) => Err(self.full(pool.counts().queued)),
                };
            };
            if self.is_fit(&mut instance) {
                break Ok(Joined::Leased(instance));
            }
            pool.was_dead();
            unfit.push(instance);
        };
        drop(pool);
        drop(unfit);
        joined
    }

    fn full(&self, queued: u32) -> LeaseError {
        LeaseError::Full {
            max: self.spec.max_concurrency,
            queued,
        }
    }

    pub(super) fn leased_warm(
        self: &Arc<Self>,
        mut instance: Box<Instance>,
        received: Instant,
        since: Instant,
    ) -> Lease {
        instance.thaw();
        Lease {
            deployment: self.clone(),
            instance: Some(instance),
            since,
            start_kind: StartKind::Warm,
            queue: since.saturating_duration_since(received),
            start: Duration::ZERO,
        }
    }

    /// Waits in the queue, for which instances are started.
    pub(super) async fn wait(
        self: &Arc<Self>,
        receiver: oneshot::Receiver<Result<Handed, Arc<BootFailure>>>,
        deadline: Instant,
    ) -> Result<Handed, LeaseError> {
        self.start_for_request();
        let mut wait = Wait {
            deployment: self,
            receiver: Some(receiver),
        };
        match tokio::time::timeout_at(deadline.into(), wait.answer()).await {
            Ok(answer) => answer.map_err(LeaseError::Boot),
            Err(_) => Err(self.full(self.counts().queued)),
        }
    }

    /// Whether an idle instance can serve: it is alive, and has written nothing unasked.
    fn is_fit(&self, instance: &mut Instance) -> bool {
        if !instance.is_running() {
            return false;
        }
        let quiet = instance.channel.is_quiet();
        if !quiet {
            tracing::warn!(function = %self.name, version = self.version(), "an idle instance was ended: it wrote to its channel without being asked");
        }
        quiet
    }
}

/// A place in the queue. Dropping it early frees the place and passes on what it received.
struct Wait<'a> {
    deployment: &'a Arc<Deployment>,
    receiver: Option<oneshot::Receiver<Result<Handed, Arc<BootFailure>>>>,
}

impl Wait<'_> {
    async fn answer(&mut self) -> Result<Handed, Arc<BootFailure>> {
        let gone = || {
            Arc::new(BootFailure {
                reason: "the version was taken down".into(),
                cause: Cause::Function,
            })
        };
        let Some(receiver) = self.receiver.as_mut() else {
            return Err(gone());
        };
        let answer = receiver.await;
        self.receiver = None;
        answer.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else {
            return;
        };
        receiver.close();
        if let Ok(Ok(Handed { instance, origin })) = receiver.try_recv() {
            let given = self
                .deployment
                .pool
                .lock()
                .declined(instance, Instant::now());
            self.deployment.hand(given, origin);
        } else {
            self.deployment
                .pool
                .lock()
                .retain_waiting(|waiter| !waiter.is_closed());
        }
    }
}
