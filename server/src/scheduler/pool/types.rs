//! Inputs and outputs of a pool: its limits, its counts, what a request gets, its estimates.

use std::time::Duration;

use crate::model::FunctionSpec;
use crate::scheduler::policy::burst::Load;
use crate::scheduler::policy::controllers::Controllers;
use crate::scheduler::policy::periodic::Rhythm;
use crate::system::cores;

/// The limits of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of instances, including those being started.
    pub max: u32,
    /// Idle instances do not expire below this number.
    pub min: u32,
    /// Maximum number of waiting requests.
    pub queue: u32,
    /// How long an instance may be idle.
    pub idle_timeout: Duration,
    /// Processors of the host, which its instances share.
    pub processors: u32,
    /// The active controllers.
    pub controllers: Controllers,
}

/// Requests that may wait for each instance a function may have: enough to ride out a burst, few enough that one who
/// waits is served within about this many run times.
const QUEUE_PER_INSTANCE: u32 = 10;
/// The shortest queue: a function of one instance still rides out a burst.
const QUEUE_MIN: u32 = 100;

impl Limits {
    /// Those of a function with these settings.
    pub fn of(spec: &FunctionSpec, controllers: Controllers) -> Self {
        Self {
            max: spec.max_concurrency,
            min: spec.min_instances.max(u32::from(spec.keep_warm)),
            queue: spec
                .max_concurrency
                .saturating_mul(QUEUE_PER_INSTANCE)
                .max(QUEUE_MIN),
            idle_timeout: Duration::from_secs(spec.idle_timeout_s.into()),
            processors: cores(),
            controllers,
        }
    }

    /// With another number of instances.
    #[must_use]
    pub fn with_max(self, max: u32) -> Self {
        Self {
            max,
            queue: max.saturating_mul(QUEUE_PER_INSTANCE).max(QUEUE_MIN),
            ..self
        }
    }
}

/// What a request gets at once.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired<I> {
    /// An idle instance, now busy.
    Leased(I),
    /// Nothing: call [`Pool::enqueue`].
    Wait,
}

/// Estimates for a function, for the pool of its next version.
#[derive(Debug, Clone)]
pub struct Learned {
    pub(super) load: Load,
    pub(super) rhythm: Rhythm,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<W>(pub W);

/// Counts of one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting for a request.
    pub idle: u32,
    /// Serving one.
    pub busy: u32,
    /// Being started.
    pub starting: u32,
    /// Waiting requests.
    pub queued: u32,
}

impl Counts {
    /// Live instances.
    pub fn live(&self) -> u32 {
        self.idle + self.busy
    }
}
