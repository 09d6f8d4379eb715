//! With what a function is scheduled.

use std::time::Duration;

use super::{Engine, EngineError};
use crate::sandbox::Throttling;
use crate::scheduler::pool::Limits;

/// With what a function is scheduled now.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled {
    /// Of its pool.
    pub limits: Limits,
    /// Expected duration of a start.
    pub start_cost: Duration,
    /// Bytes of one instance, as last measured.
    pub instance_bytes: u64,
}

impl Engine {
    /// How often the kernel has held sandboxes back for their quota of processor time. Reads files of the kernel's.
    pub fn throttling(&self) -> Vec<Throttling> {
        self.inner.resources.host.throttling()
    }

    /// With what a function is scheduled now.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn scheduled(&self, name: &str) -> Result<Scheduled, EngineError> {
        let function = self.function(name)?;
        let deployment = function.active();
        // Of the version that is active: what is in service may go on from an earlier one.
        let spec = &function.stored().active.spec;
        Ok(Scheduled {
            limits: Limits::of(spec, self.inner.resources.controllers),
            start_cost: deployment.start_cost(),
            instance_bytes: deployment.instance_bytes(),
        })
    }
}
