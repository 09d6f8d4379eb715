//! Clocks in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Time since some point in the past; never goes back.
pub(super) fn monotonic() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Time since 1970 in UTC.
pub(super) fn wall() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Processor time of this process, user and system together.
pub(super) fn processor() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// As the kernel takes it.
pub(super) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}
