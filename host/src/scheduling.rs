//! How threads get processors.

#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

use rustix::thread::Pid;

/// How a thread gets processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// Before every thread that has not asked for it: `SCHED_RR` at the lowest real-time priority (sched(7)).
    RealTime,
    /// Among others by its niceness, in time slices of this length. Kernels before 6.12 choose the length themselves.
    Fair(i32, Duration),
    /// Behind others: preempts nobody (`SCHED_BATCH`), and is preempted by whoever asks for less time at once.
    Patient,
}

/// The longest time slice that the kernel gives.
const LONGEST_SLICE: Duration = Duration::from_millis(100);

/// Sets how a thread gets processors; what it starts does not inherit more than niceness 0.
///
/// # Errors
/// What the kernel says: without `CAP_SYS_NICE`, or in a cgroup that has no real-time budget, `EPERM`.
pub fn schedule(thread: Pid, scheduling: Scheduling) -> io::Result<()> {
    // SAFETY: a C struct of integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or_default();
    attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    match scheduling {
        Scheduling::RealTime => {
            attributes.sched_policy = libc::SCHED_RR as u32;
            attributes.sched_priority = 1;
        }
        Scheduling::Fair(niceness, slice) => {
            attributes.sched_policy = libc::SCHED_OTHER as u32;
            attributes.sched_nice = niceness;
            attributes.sched_runtime = nanoseconds(slice);
        }
        Scheduling::Patient => {
            attributes.sched_policy = libc::SCHED_BATCH as u32;
            attributes.sched_runtime = nanoseconds(LONGEST_SLICE);
        }
    }
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: the kernel reads `size` bytes of `attributes`, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn nanoseconds(slice: Duration) -> u64 {
    u64::try_from(slice.as_nanos()).unwrap_or_default()
}
