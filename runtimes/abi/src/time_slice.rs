//! Short time slices for the two sides of a busy channel.
//!
//! Where more wants to run than there are processors, the kernel deals them out in slices of some milliseconds by default:
//! a server thread that was woken by an answer may wait for that long behind another function's instance, and the other
//! way round. What a request needs of either side are tens of microseconds. A thread that asks for short slices
//! runs sooner, but not longer (EEVDF: a shorter request has the earlier deadline; Stoica and
//! Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995; `sched_runtime` in sched_setattr(2) from Linux 6.12 on,
//! without effect before).
//!
//! The policy stays `SCHED_OTHER`, as a rule. Under `SCHED_BATCH` a woken thread preempts nobody: the server can finish what it is
//! doing, but behind a busy process an instance, and every thread that its handler starts (they inherit the policy),
//! waits for the kernel's next tick, 4 ms on many hosts. That pays for members of a chain that has many requests under way
//! ([`wait_for_turns`]).

use std::io;
use std::time::Duration;

/// What a thread asks for at a time: the least that the kernel takes. More than most requests need of either side.
pub const SLICE: Duration = Duration::from_micros(100);
const SLICE_NS: u64 = SLICE.as_micros() as u64 * 1_000;

/// Gives this thread short time slices. Its share of CPU time, its policy and its niceness do not change.
///
/// # Errors
/// The kernel refused; the thread is unchanged.
pub fn take_short_time_slices() -> io::Result<()> {
    take_slices(0)
}

/// The same; threads that this one starts get neither these nor a higher priority that it may have then
/// (`SCHED_RESET_ON_FORK` in sched(7)).
///
/// # Errors
/// The kernel refused; the thread is unchanged.
pub fn take_short_time_slices_alone() -> io::Result<()> {
    take_slices(libc::SCHED_FLAG_RESET_ON_FORK as u64)
}

/// Whether this thread waits for its turn when it is woken (`SCHED_BATCH`), or preempts others (`SCHED_OTHER`). A policy that somebody
/// else gave to it is left alone, and so is all else.
///
/// # Errors
/// The kernel refused; the thread is unchanged.
pub fn wait_for_turns(waits: bool) -> io::Result<()> {
    let (from, to) = match waits {
        true => (libc::SCHED_OTHER, libc::SCHED_BATCH),
        false => (libc::SCHED_BATCH, libc::SCHED_OTHER),
    };
    let mut attributes = attributes()?;
    if attributes.sched_policy != from as u32 {
        return Ok(());
    }
    attributes.sched_policy = to as u32;
    set(&attributes)
}

fn take_slices(flags: u64) -> io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.sched_runtime = SLICE_NS;
    attributes.sched_flags |= flags;
    set(&attributes)
}

/// This thread's.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: a C struct of integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes there. 0 is this thread.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    match got {
        0 => Ok(attributes),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets this thread's.
fn set(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `size` in it says, which sched_getattr has set to what it wrote.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// This thread's policy, and its slice in ns.
    fn scheduled() -> (u32, u64) {
        let attributes = attributes().expect("allowed for oneself");
        (attributes.sched_policy, attributes.sched_runtime)
    }

    #[test]
    fn a_thread_asks_for_short_slices() {
        std::thread::spawn(|| {
            take_short_time_slices().expect("allowed for oneself");
            let (policy, slice) = scheduled();
            assert_eq!(policy, libc::SCHED_OTHER as u32);
            // Kernels before 6.12 do not tell, and do not take it.
            assert!(slice == 0 || slice == SLICE_NS, "{slice} ns");
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn what_a_thread_starts_gets_none_of_it() {
        std::thread::spawn(|| {
            let default = scheduled().1;
            take_short_time_slices_alone().expect("allowed for oneself");
            assert!([0, SLICE_NS].contains(&scheduled().1));
            let child = std::thread::spawn(scheduled).join().expect("no panic");
            assert_eq!(child, (libc::SCHED_OTHER as u32, default));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_thread_waits_for_its_turns_for_a_while() {
        std::thread::spawn(|| {
            take_short_time_slices().expect("allowed for oneself");
            let before = scheduled();
            wait_for_turns(true).expect("allowed for oneself");
            assert_eq!(scheduled(), (libc::SCHED_BATCH as u32, before.1));
            wait_for_turns(false).expect("allowed for oneself");
            assert_eq!(scheduled(), before);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_policy_of_somebody_elses_is_no_waiting_for_turns() {
        std::thread::spawn(|| {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: reads the parameters, which live until it returns. 0 is this thread.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
            assert_eq!(set, 0, "allowed for oneself");
            for waits in [true, false] {
                wait_for_turns(waits).expect("nothing to do");
                assert_eq!(scheduled().0, libc::SCHED_IDLE as u32);
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_policy_that_somebody_gave_to_it_is_left_alone() {
        std::thread::spawn(|| {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: reads the parameters, which live until it returns. 0 is this thread.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
            assert_eq!(set, 0, "allowed for oneself");
            take_short_time_slices().expect("nothing to do");
            assert_eq!(scheduled().0, libc::SCHED_BATCH as u32);
        })
        .join()
        .expect("no panic");
    }
}
