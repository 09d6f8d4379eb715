//! Sleeping on several shared words at once, and waking who does.

use core::sync::atomic::AtomicU32;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::{ClockId, clock_gettime};

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A word has changed: look.
    Look,
    /// Somebody woke those who sleep on this of the words: look.
    By(usize),
    /// The deadline has passed.
    TimedOut,
}

/// Wakes who sleeps on a word of shared memory.
#[inline]
pub(crate) fn wake(word: &AtomicU32) -> io::Result<()> {
    // Shared: the sleeper is in another process.
    futex::wake(word, Flags::empty(), i32::MAX as u32)?;
    Ok(())
}

/// Wakes one of those who sleep on a word of shared memory.
#[inline]
pub(crate) fn wake_one(word: &AtomicU32) -> io::Result<()> {
    futex::wake(word, Flags::empty(), 1)?;
    Ok(())
}

/// One word and the value at which to sleep on it.
pub(crate) fn waiter(word: *const AtomicU32, value: u32) -> Wait {
    let mut wait = Wait::new();
    wait.val = value.into();
    wait.uaddr = WaitPtr::new(word.cast_mut().cast());
    wait.flags = WaitFlags::SIZE_U32;
    wait
}

/// Sleeps until one of the words differs from its value or is woken, or until the deadline.
pub(crate) fn wait(waiters: &[Wait], deadline: Instant) -> io::Result<Woken> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(Woken::TimedOut);
    }
    let until = after(left);
    let monotonic = ClockId::Monotonic;
    match futex::waitv(waiters, WaitvFlags::empty(), Some(&until), monotonic) {
        // A signal's handler may have something to tell: the caller looks, and sleeps again.
        Err(Errno::AGAIN | Errno::INTR) => Ok(Woken::Look),
        Ok(index) => Ok(Woken::By(index)),
        Err(Errno::TIMEDOUT) => Ok(Woken::TimedOut),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the kernel has `futex_waitv` (5.16) and lets this process use it.
pub(crate) fn is_supported() -> bool {
    let word = AtomicU32::new(0);
    // Another value than the word's: the kernel looks at it and returns.
    let waiters = [waiter(&raw const word, 1)];
    let deadline = Instant::now() + Duration::from_millis(10);
    wait(&waiters, deadline).is_ok()
}

/// The instant so long from now, as the kernel counts.
fn after(left: Duration) -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_nsec + i64::from(left.subsec_nanos());
    // Beyond some ages, the deadline is no different.
    let seconds = i64::try_from(left.as_secs())
        .unwrap_or(i64::MAX / 2)
        .min(i64::MAX / 4);
    Timespec {
        tv_sec: now.tv_sec.saturating_add(seconds + nanos / 1_000_000_000),
        tv_nsec: nanos % 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_differs_or_a_deadline_ends_a_sleep() {
        assert!(is_supported(), "the tests' kernels have it");
        let word = AtomicU32::new(0);
        let soon = || Instant::now() + Duration::from_millis(5);
        let asleep = [waiter(&raw const word, 0)];
        assert_eq!(wait(&asleep, soon()).expect("a sleep"), Woken::TimedOut);
        assert_eq!(
            wait(&asleep, Instant::now()).expect("none"),
            Woken::TimedOut
        );
        let differs = [waiter(&raw const word, 0), waiter(&raw const word, 7)];
        let far = Instant::now() + Duration::from_secs(60);
        assert_eq!(wait(&differs, far).expect("no sleep"), Woken::Look);
    }

    #[test]
    fn what_is_no_address_is_an_error() {
        let nowhere = [waiter(core::ptr::without_provenance(8), 0)];
        let far = Instant::now() + Duration::from_secs(60);
        assert!(wait(&nowhere, far).is_err());
    }
}
