//! What the members' instances take of the processors, and may take.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Members;
use crate::chains::CpuTime;

/// A change of a limit by less than one part of so many is not made at once.
const STEP: u64 = 20;
/// After this long a limit is set in any case: small changes add up, and on a busy host an instance that has just been forked may not be
/// in its cgroup when it is limited first.
const RENEWED: Duration = Duration::from_secs(10);

impl Members {
    /// Limits what instances take of the processors: `quota_us` says how much each of a member's may in each period of the
    /// scheduler's, by the member's name and how many it has.
    pub(in crate::chains) async fn limit_cpu(&self, quota_us: impl Fn(&str, u32) -> u32) {
        let mut joined = self.joined.lock().await;
        for one in &self.all {
            let quota = quota_us(&one.name, one.concurrency);
            let of_member = joined
                .iter_mut()
                .filter(|joined| joined.seat.member == one.number);
            for joined in of_member {
                // Small changes are not worth the kernel's files.
                let change = u64::from(joined.cpu_quota_us.abs_diff(quota));
                let is_old = joined
                    .cpu_limited_at
                    .is_none_or(|at| at.elapsed() >= RENEWED);
                if is_old || change * STEP > u64::from(quota) {
                    joined.instance.limit_cpu(quota);
                    joined.cpu_quota_us = quota;
                    joined.cpu_limited_at = Some(Instant::now());
                }
            }
        }
    }

    /// What the instances of each member that run now have taken of the processors, by the member's number.
    pub(super) fn cpu_times(&self) -> BTreeMap<u8, CpuTime> {
        let mut times: BTreeMap<u8, CpuTime> = BTreeMap::new();
        // While one joins there are no figures.
        if let Ok(joined) = self.joined.try_lock() {
            for joined in joined.iter() {
                let time = times.entry(joined.seat.member.0).or_default();
                time.used += joined.instance.cpu_time().unwrap_or_default();
                time.quota_us += joined.cpu_quota_us;
            }
        }
        times
    }
}
