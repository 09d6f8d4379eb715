//! Numbers for the instances of a version.

use std::sync::atomic::{AtomicU16, Ordering};

use hearth_chain::Instance;

use super::{NUMBERS, SeatError};

/// The next number of a version.
#[derive(Debug)]
pub(in crate::chains) struct Numbers(AtomicU16);

impl Default for Numbers {
    fn default() -> Self {
        Self(AtomicU16::new(1))
    }
}

impl Numbers {
    pub(super) fn take(&self) -> Result<Instance, SeatError> {
        let next = |number| (number < NUMBERS).then_some(number + 1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .map(Instance)
            .map_err(|_| SeatError::NoNumber)
    }
}
