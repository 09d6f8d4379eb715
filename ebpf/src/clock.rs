//! The clock of the programs: `CLOCK_MONOTONIC`, in nanoseconds.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Now.
#[must_use]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// In `time` from now; never 0, which stands for never.
#[must_use]
pub fn after(time: Duration) -> u64 {
    now()
        .saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        .max(1)
}
