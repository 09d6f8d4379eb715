//! What the keeper does at a later time: retries, deadlines, and what it makes ahead.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::time::Timespec;

use super::Keeper;
use crate::protocol::{Key, LeafNumber};

/// First and longest pause before something is tried again.
pub(super) const RETRY: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(250));
/// Times a removal is tried, about ten seconds in all. What is left then is cleared at the next start.
pub(super) const RETRIES: u32 = 48;

/// Something to be done at a later time.
pub(super) enum Job {
    Reap(Child),
    /// A PID 1 whose pidfd could not be received.
    ReapUnheld(Pid),
    Sweep(Key),
    RemoveInstanceCgroup(Key, LeafNumber),
    RemoveSandbox(Key),
    /// Make so many instance cgroups.
    FillPool(Key, u32),
    GiveUpStarting(Key),
    GiveUpPrewarmed(Key),
    ReplacePrewarmed(Key),
    /// A restore had this long.
    GiveUpRestoring(Key, Duration),
}

impl Job {
    /// The sandbox without which it is of no use.
    fn sandbox(&self) -> Option<Key> {
        match self {
            Self::Reap(_) | Self::ReapUnheld(_) => None,
            Self::Sweep(key)
            | Self::RemoveInstanceCgroup(key, _)
            | Self::RemoveSandbox(key)
            | Self::FillPool(key, _)
            | Self::GiveUpStarting(key)
            | Self::GiveUpPrewarmed(key)
            | Self::ReplacePrewarmed(key)
            | Self::GiveUpRestoring(key, _) => Some(*key),
        }
    }
}

pub(super) struct Scheduled {
    at: Instant,
    tries: u32,
    pub(super) job: Job,
}

impl Keeper {
    pub(super) fn later(&mut self, after: Duration, tries: u32, job: Job) {
        self.jobs.push(Scheduled {
            at: Instant::now() + after,
            tries,
            job,
        });
    }

    pub(super) fn again(&mut self, tries: u32, job: Job) {
        let pause = RETRY.0.saturating_mul(1 << tries.min(16)).min(RETRY.1);
        self.later(pause, tries + 1, job);
    }

    /// Forgets what was to be done about a sandbox: some of it would have waited for an hour, and a server can make and
    /// destroy very many in that time.
    pub(super) fn forget_jobs(&mut self, of: Key) {
        self.jobs
            .retain(|scheduled| scheduled.job.sandbox() != Some(of));
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
        for Scheduled { tries, job, .. } in due {
            match job {
                Job::Reap(mut builder) => {
                    if let Ok(None) = builder.try_wait() {
                        self.again(tries, Job::Reap(builder));
                    }
                }
                Job::ReapUnheld(pid) => {
                    if let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
                        self.again(tries, Job::ReapUnheld(pid));
                    }
                }
                Job::Sweep(key) => self.sweep_again(key),
                Job::RemoveInstanceCgroup(key, leaf) => {
                    self.remove_instance_cgroup(key, leaf, tries)
                }
                Job::FillPool(key, count) => self.fill_pool(key, count),
                Job::RemoveSandbox(key) => self.remove_sandbox(key, tries),
                Job::GiveUpRestoring(key, limit) => self.give_up_restoring(key, limit),
                Job::GiveUpPrewarmed(key) => self.give_up_prewarmed(key),
                Job::ReplacePrewarmed(key) => self.replace_prewarmed(key),
                Job::GiveUpStarting(key) => self.give_up_starting(key),
            }
        }
    }
}
