//! A lease: the right to use one instance for one invocation, and its return.

mod joining;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use joining::{Joined, Place};

use super::boot_failure::BootFailure;
use super::deployment::Deployment;
use super::policy::burst::Held;
use crate::instance::Instance;
use crate::model::StartKind;

/// Longest wait for an instance. A client that has waited a minute should rather retry later.
const QUEUE_DEADLINE: Duration = Duration::from_secs(60);

/// Where an instance came from, if it was started for the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) start_kind: StartKind,
    pub(super) begun: Instant,
    pub(super) ready: Instant,
}

/// What a waiting request receives.
pub(super) struct Handed {
    pub(super) instance: Box<Instance>,
    pub(super) origin: Option<Origin>,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Everything is busy and the queue is full, or the wait timed out.
    #[error("all {max} instances are busy and {queued} requests are waiting")]
    Full {
        /// Maximum number of instances.
        max: u32,
        /// Waiting requests.
        queued: u32,
    },
    /// No instance can be started.
    #[error("{}", .0.reason)]
    Boot(Arc<BootFailure>),
    /// The deployment was taken out of service before this request joined it: ask its successor.
    #[error("the version was retired")]
    Retired,
}

/// An instance that is busy with the holder's invocation. Dropping it without [`Lease::release`] kills the instance.
pub struct Lease {
    deployment: Arc<Deployment>,
    instance: Option<Box<Instance>>,
    /// When the lease began.
    since: Instant,
    /// The start kind the instance came from, for this invocation.
    pub start_kind: StartKind,
    /// Time spent waiting.
    pub queue: Duration,
    /// Time spent starting.
    pub start: Duration,
}

impl Deployment {
    /// Leases an instance for a request that was received at `received`.
    ///
    /// # Errors
    /// [`LeaseError`]; nothing is leased then. Dropping the future releases everything.
    pub async fn lease(self: &Arc<Self>, received: Instant) -> Result<Lease, LeaseError> {
        if self.is_retired() {
            return Err(LeaseError::Retired);
        }
        let joined = Instant::now();
        let (found, awaited) = {
            let mut pool = self.pool.lock();
            let awaited = pool.arrive(joined);
            (self.join(pool, joined, Place::Last)?, awaited)
        };
        if awaited {
            self.decisions.note(|counts| counts.ahead_hit += 1);
        }
        let receiver = match found {
            Joined::Leased(instance) => return Ok(self.leased_warm(instance, received, joined)),
            Joined::Queued(receiver) => receiver,
        };
        let deadline = joined + QUEUE_DEADLINE;
        let mut handed = self.wait(receiver, deadline).await?;
        if !handed.instance.is_running() {
            // It has died since its start or its last answer. Once only: what dies again does so by the function's doing.
            drop(handed);
            let now = Instant::now();
            let found = {
                let mut pool = self.pool.lock();
                pool.was_dead();
                self.join(pool, now, Place::First)?
            };
            handed = match found {
                Joined::Leased(instance) => return Ok(self.leased_warm(instance, received, now)),
                Joined::Queued(receiver) => self.wait(receiver, deadline).await?,
            };
        }
        let Handed {
            mut instance,
            origin,
        } = handed;
        instance.thaw();
        let (start_kind, start) = match origin {
            // The start may have begun before this request arrived.
            Some(origin) => (
                origin.start_kind,
                origin
                    .ready
                    .saturating_duration_since(origin.begun.max(joined)),
            ),
            None => (StartKind::Warm, Duration::ZERO),
        };
        let since = Instant::now();
        let queue = since
            .saturating_duration_since(received)
            .saturating_sub(start);
        Ok(Lease {
            deployment: self.clone(),
            instance: Some(instance),
            since,
            start_kind,
            queue,
            start,
        })
    }
}

impl Lease {
    /// Returns the instance, which is healthy and can serve the next request. Its handler took `run` for this one.
    pub fn release(mut self, run: Duration) {
        if let Some(instance) = self.instance.take() {
            let now = Instant::now();
            let lease = now.saturating_duration_since(self.since);
            let (given, may_start) = {
                let mut pool = self.deployment.pool.lock();
                let given = match self.start_kind {
                    StartKind::Warm => pool.release(instance, now, Held { lease, run }),
                    _ => pool.release_first(instance, now, lease),
                };
                (given, pool.may_start())
            };
            self.deployment.hand(given, None);
            if may_start {
                // The run time may change how many starts pay off.
                self.deployment.start_due();
            }
        }
    }

    /// The deployment it belongs to.
    pub fn deployment(&self) -> &Arc<Deployment> {
        &self.deployment
    }
}

impl Deref for Lease {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        self.instance
            .as_ref()
            .expect("a lease holds its instance until it is released or dropped")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Instance {
        self.instance
            .as_mut()
            .expect("a lease holds its instance until it is released or dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.take() {
            drop(instance);
            let now = Instant::now();
            let took = now.saturating_duration_since(self.since);
            self.deployment.pool.lock().discard(now, took);
            self.deployment.start_due();
            self.deployment.end_if_retired();
        }
    }
}
