//! A timer descriptor on the monotonic clock. Its precision is that of the kernel's high-resolution timers, which the time limit of
//! `epoll_wait`, in whole milliseconds, has not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::clock;

/// Becomes readable at a time.
pub(super) struct Alarm {
    timer: OwnedFd,
    /// What it is set to.
    at: Option<u64>,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer, at: None })
    }

    /// To be watched for edges: it is never read.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Sets it to a time of the monotonic clock. One that is set to an earlier time is left: it rings too early once, which costs less
    /// than to set it each time.
    pub(super) fn set(&mut self, at: u64) -> io::Result<()> {
        if self.at.is_some_and(|set| set <= at) {
            return Ok(());
        }
        self.at = Some(at);
        let new = Itimerspec {
            it_interval: clock::timespec(0),
            it_value: clock::timespec(at),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &new)?;
        Ok(())
    }

    /// It has rung.
    pub(super) fn rang(&mut self) {
        self.at = None;
    }
}
