//! Turns on the processors, for the two sides of a busy channel.
//!
//! Where more wants to run than there are processors, the kernel deals them out in slices of some milliseconds by default:
//! a server thread that was woken by an answer may wait for that long behind another function's instance, and the other
//! way round. What a request needs of either side are tens of microseconds. A thread that asks for short slices
//! is given its turns sooner and not more of them (EEVDF: a shorter request has the earlier deadline; Stoica and
//! Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995; `sched_runtime` in sched_setattr(2) from Linux 6.12 on,
//! without effect before).

use std::io;

/// What a thread asks for at a time: the least that the kernel takes, in ns. More than most requests need of either side.
const SLICE_NS: u64 = 100_000;

/// What a thread does when it is woken while all processors are at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// It takes a processor over when its turn is due: for the server, which answers many, and for an interpreter whose
    /// handlers wait for threads of its own, which inherit this from it. Behind whoever computes each of these would wait for
    /// the next tick of the kernel's, 4 ms on many, even while another processor is idle; the first file that a Node.js
    /// function reads had two such waits.
    Due,
    /// It waits until somebody leaves one (`SCHED_BATCH`): for an instance whose handlers run in one thread, so that the server
    /// goes on with what it has at hand instead of being interrupted for each request that it hands out.
    Patient,
}

/// Has this thread take short turns. Its share of the processors stays what it is, and so does a policy or niceness that
/// somebody has given to it.
///
/// # Errors
/// The kernel refused: the thread goes on as before.
pub fn take_short_turns(wake: Wake) -> io::Result<()> {
    // SAFETY: a C struct of integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes there. 0 is this thread.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.sched_runtime = SLICE_NS;
    if wake == Wake::Patient {
        attributes.sched_policy = libc::SCHED_BATCH as u32;
    }
    // SAFETY: the kernel reads as many bytes as `size` in it says, which sched_getattr has set to what it wrote.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: takes a number and touches no memory.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_takes_its_turns_as_it_was_told_and_another_policy_is_left_alone() {
        std::thread::spawn(|| {
            take_short_turns(Wake::Due).expect("allowed for oneself");
            assert_eq!(policy(), libc::SCHED_OTHER);
            take_short_turns(Wake::Patient).expect("allowed for oneself");
            assert_eq!(policy(), libc::SCHED_BATCH);
            take_short_turns(Wake::Due).expect("nothing to do");
            assert_eq!(policy(), libc::SCHED_BATCH);
        })
        .join()
        .expect("no panic");
    }
}
