//! The clock of the programs: `CLOCK_MONOTONIC`, in nanoseconds.

use std::time::Duration;

use rustix::time::{ClockId, clock_getres, clock_gettime};

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

/// Nanoseconds between two ticks of the kernel's clock.
#[must_use]
pub(crate) fn tick() -> u32 {
    // What this clock shows is the time of the last tick.
    let tick = clock_getres(ClockId::MonotonicCoarse);
    u32::try_from(tick.tv_nsec).unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_as_long_as_a_kernel_can_be_built_with() {
        let rates = [100, 250, 300, 1_000];
        assert!(
            rates
                .iter()
                .any(|rate| tick().abs_diff(1_000_000_000 / rate) < 10_000),
            "{}",
            tick()
        );
    }
}
