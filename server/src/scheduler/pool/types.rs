//! What goes into a pool and what comes out of it: its limits, its counts, what a request gets, what it has learned.

use std::time::Duration;

use crate::scheduler::policy::burst::Load;
use crate::scheduler::policy::controllers::Controllers;
use crate::scheduler::policy::periodic::Rhythm;

/// The numbers a pool obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most instances at one time, those being started included.
    pub max: u32,
    /// Idle instances are not expired below this number.
    pub min: u32,
    /// Most waiting requests.
    pub queue: u32,
    /// How long an instance may be idle.
    pub idle_timeout: Duration,
    /// What decides on starts and queues.
    pub controllers: Controllers,
}

/// What a request gets at once.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired<I> {
    /// An idle instance, now busy.
    Leased(I),
    /// Nothing: call [`Pool::enqueue`].
    Wait,
}

/// What is learned of a function, for the pool of its next version.
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
    /// Instances that live.
    pub fn live(&self) -> u32 {
        self.idle + self.busy
    }
}
