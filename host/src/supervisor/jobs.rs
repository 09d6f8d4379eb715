//! What the supervisor does at a later time: retries, deadlines, and what it makes ahead.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::time::Timespec;

use super::Supervisor;
use crate::protocol::Key;

/// First and longest pause before something is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));
/// Times a removal is tried, about ten seconds in all. What is left then is cleared at the next start.
pub(super) const RETRIES: u32 = 48;

/// Something to be done at a later time.
pub(super) struct Scheduled {
    at: Instant,
    /// The sandbox without which it is of no use. None for a process to be reaped.
    pub(super) of: Option<Key>,
    job: Box<dyn FnOnce(&mut Supervisor)>,
}

/// How long to wait after so many tries.
pub(super) fn pause(tries: u32) -> Duration {
    RETRY.0.saturating_mul(1 << tries.min(16)).min(RETRY.1)
}

impl Supervisor {
    /// Does something about a sandbox at a later time.
    pub(super) fn later(
        &mut self,
        of: Key,
        after: Duration,
        job: impl FnOnce(&mut Self) + 'static,
    ) {
        self.schedule(Some(of), after, job);
    }

    fn schedule(
        &mut self,
        of: Option<Key>,
        after: Duration,
        job: impl FnOnce(&mut Self) + 'static,
    ) {
        self.jobs.push(Scheduled {
            at: Instant::now() + after,
            of,
            job: Box::new(job),
        });
    }

    /// Reaps the process that has built a sandbox, once it has ended, if nobody has.
    pub(super) fn reap_builder(&mut self, key: Key) {
        if let Some(builder) = self.live.get_mut(&key).and_then(|live| live.builder.take()) {
            self.reap(builder, 0);
        }
    }

    fn reap(&mut self, mut builder: Child, tries: u32) {
        self.schedule(None, pause(tries), move |supervisor| {
            if let Ok(None) = builder.try_wait() {
                supervisor.reap(builder, tries + 1);
            }
        });
    }

    /// Reaps a PID 1 whose pidfd could not be received.
    pub(super) fn reap_unheld(&mut self, pid: Pid, tries: u32) {
        self.schedule(None, pause(tries), move |supervisor| {
            if let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
                supervisor.reap_unheld(pid, tries + 1);
            }
        });
    }

    /// Forgets what was to be done about a sandbox: some of it would have waited for an hour, and a server can make and
    /// destroy very many in that time.
    pub(super) fn forget_jobs(&mut self, of: Key) {
        self.jobs.retain(|scheduled| scheduled.of != Some(of));
    }

    pub(super) fn timeout(&self) -> Option<Timespec> {
        let at = self.jobs.iter().map(|job| job.at).min()?;
        let left = at.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }

    pub(super) fn run_due_jobs(&mut self) {
        let now = Instant::now();
        let (due, left) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition::<Vec<_>, _>(|job| job.at <= now);
        self.jobs = left;
        for Scheduled { job, .. } in due {
            job(self);
        }
    }
}
