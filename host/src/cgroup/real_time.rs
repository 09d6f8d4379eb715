//! Budgets of real-time threads. With `CONFIG_RT_GROUP_SCHED`, and cgroup v1, a group has none unless it is given one
//! (Documentation/scheduler/sched-rt-group.rst); elsewhere groups are not asked.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::tree::put;
use super::{Directories, Group, Version};

/// How often a sandbox's budget is renewed. Long, since the kernel admits groups up to the sum of their shares.
pub const PERIOD: Duration = Duration::from_secs(10);
/// A sandbox's budget, so that 1,000 can have one; who has used it up waits for the next period, or until it is not real-time any more.
const BUDGET: Duration = Duration::from_millis(6);
/// All sandboxes' together, of each second: for sixteen to begin with. What the kernel has is for all programs of the host.
pub const FIRST: Duration = Duration::from_millis(10);

impl Directories {
    /// Lets those below have budgets, where the kernel has such: so much of each second together.
    pub(crate) fn allow_real_time(&self, together: Duration) -> io::Result<()> {
        allow(self.version, &self.cpu, together, Duration::from_secs(1))
    }
}

impl Group {
    /// Gives the sandbox a budget. Takes the kernel a time that grows with the number of groups.
    ///
    /// # Errors
    /// The kernel refuses; or the hierarchy of memory is that of the CPU, so that instances are moved into groups without a
    /// budget, which no real-time process can be.
    pub(crate) fn allow_real_time(&self) -> io::Result<()> {
        let Directories {
            version,
            memory,
            cpu,
            ..
        } = &self.directories;
        if *version == Version::V1 && memory == cpu {
            return Err(io::ErrorKind::Unsupported.into());
        }
        allow(*version, cpu, BUDGET, PERIOD)
    }
}

fn allow(version: Version, cpu: &Path, budget: Duration, period: Duration) -> io::Result<()> {
    const FILE: &str = "cpu.rt_runtime_us";
    if version == Version::V2 || !cpu.join(FILE).exists() {
        return Ok(());
    }
    put(cpu, "cpu.rt_period_us", period.as_micros())?;
    put(cpu, FILE, budget.as_micros())
}
