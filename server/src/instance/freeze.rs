//! Freezes instances between requests: threads and child processes left behind by a handler are stopped until the next
//! request, as on AWS Lambda, so that they use no unaccounted CPU time.
//!
//! This uses SIGSTOP and SIGCONT instead of the cgroup freezer: version 1 needs one more move per start into its own
//! hierarchy, and both versions take five times as long to thaw, which delays requests. A function can defeat this only
//! for itself: its instances share a uid and can wake each other. Who may signal them is the host process; only an
//! instance with something to stop is ever stopped, and only one that was stopped waits for being resumed.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use hearth_host::SandboxError;
use procfs_core::FromRead as _;
use procfs_core::process::Stat;

use super::{Instance, Template};

/// How long after its last request an instance is stopped: what finishes a little later than its answer is let finish, and
/// one that is called all the time is left alone.
pub const FREEZE_AFTER: Duration = Duration::from_secs(1);

/// What of an instance is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Frozen {
    /// Not checked since its last request.
    #[default]
    No,
    /// Nothing: it is one thread, which waits for a request.
    Nothing,
    /// Its process, and others if there are any.
    All,
}

impl Instance {
    /// Stops what runs in it, once after each request. False when that was done already. Reads the kernel's files.
    pub fn freeze(&mut self) -> bool {
        if self.frozen != Frozen::No {
            return false;
        }
        let of_import = self.becomes.as_ref().map(|template| &template.sandbox);
        // What an import has started is in the template's cgroup.
        let started = of_import.map_or(0, |sandbox| sandbox.processes());
        let all = self.instance_cgroup.processes() + started;
        self.frozen = if all <= 1 && threads(self.vitals.pid) == Some(1) {
            Frozen::Nothing
        } else {
            // One that has ended is found dead by its next request.
            self.instance_cgroup.freeze(self.becomes.is_some());
            Frozen::All
        };
        self.instance_cgroup.end_use();
        true
    }

    /// Lets it have no more than so many µs of processor time in each period of the scheduler's.
    pub fn limit_cpu(&self, quota_us: u32) {
        self.instance_cgroup.limit_cpu(quota_us);
    }

    /// Gives it cores that no other sandbox's processes may use.
    ///
    /// # Errors
    /// The host process or the kernel refuses, or the sandbox is gone.
    pub async fn dedicate(&self, cores: &BTreeSet<u32>) -> Result<(), SandboxError> {
        self.instance_cgroup.dedicate(cores).await
    }

    /// Processor time that the running threads of its first process have taken; none when it has ended. Reads the kernel's files.
    pub fn cpu_time(&self) -> Option<Duration> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.vitals.pid)).ok()?;
        // Time on a processor, in ns, comes first (Documentation/scheduler/sched-stats.rst).
        let time = threads.flatten().filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Some(Duration::from_nanos(time.sum()))
    }

    /// Resumes it if it was stopped. The host process does that while the request is on its way.
    pub fn thaw(&mut self) {
        let frozen = std::mem::take(&mut self.frozen);
        if frozen == Frozen::All {
            self.instance_cgroup.thaw(self.becomes.is_some());
        }
        if frozen != Frozen::No {
            self.instance_cgroup.begin_use();
        }
    }
}

/// Whether a template that waits to become an instance is stopped.
#[derive(Debug)]
pub(super) enum Waiting {
    /// It runs, since then.
    Runs(Instant),
    Stopped,
    /// It is on its way to become one, or to its end, and not to be stopped any more.
    Over,
}

impl Template {
    /// Stops one that has waited to become an instance for [`FREEZE_AFTER`], with all threads and processes of its import.
    pub fn freeze(&self, now: Instant) {
        let mut waiting = self.frozen.lock();
        if let Waiting::Runs(since) = *waiting
            && now.saturating_duration_since(since) >= FREEZE_AFTER
        {
            self.sandbox.freeze_template();
            *waiting = Waiting::Stopped;
        }
    }

    /// Resumes it permanently.
    pub(super) fn thaw(&self) {
        let mut waiting = self.frozen.lock();
        if matches!(*waiting, Waiting::Stopped) {
            self.sandbox.thaw_template();
        }
        *waiting = Waiting::Over;
    }
}

/// How many threads a process has. `None` when it has ended.
fn threads(pid: u32) -> Option<u32> {
    threads_of(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn threads_of(stat: &[u8]) -> Option<u32> {
    u32::try_from(Stat::from_read(stat).ok()?.num_threads).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_whatever_the_name() {
        // state, then ppid … as the manual numbers them: 3 to 20, and the others.
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37";
        for name in ["python3", "a) S 9 9 9", ") "] {
            assert_eq!(
                threads_of(format!("1 ({name}) {rest}\n").as_bytes()),
                Some(17)
            );
        }
        assert_eq!(threads_of(b"1 (python3) S 1"), None);
        assert_eq!(threads_of(b""), None);
        let own = std::thread::spawn(|| threads(std::process::id()));
        assert!(
            own.join()
                .expect("no panic")
                .is_some_and(|count| count >= 2)
        );
    }
}
