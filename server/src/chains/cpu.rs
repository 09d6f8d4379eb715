//! Processor time in proportion to a chain's requests, as SPRIGHT schedules chains (Qi et al.): what a
//! member may take is the smoothed rate of requests times what it takes for one, by constants that `hearth lab fit` measures.
//!
//! A member has its share in each of its instances' cgroups, and each instance at least [`LEAST_US`]: a chain that was idle answers
//! its first requests, if more slowly than later ones.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use hearth_host::CPU_PERIOD_US;
use tokio_util::sync::CancellationToken;

use super::members::Members;
use super::path::Path;
use crate::model::chain::Spec;

/// Between two looks at the rate.
const INTERVAL: Duration = Duration::from_secs(1);
/// How much of the former rate stays in the smoothed one (SPRIGHT's coefficient).
const KEPT: f64 = 0.8;
/// What a member may take beyond its constant: requests come unevenly, and a chain that takes all that it may would never be seen to
/// need more.
const ROOM: f64 = 1.5;
/// What each instance may take at least, in µs of each period: a twentieth of a processor.
const LEAST_US: f64 = CPU_PERIOD_US as f64 / 20.0;

/// A smoothed rate of requests.
#[derive(Debug)]
struct Rate {
    per_second: f64,
    counted: u64,
    at: Instant,
}

impl Rate {
    fn new(at: Instant) -> Self {
        Self {
            per_second: 0.0,
            counted: 0,
            at,
        }
    }

    /// With the requests that there have been by now, in all.
    fn update(&mut self, counted: u64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        if passed > 0.0 {
            let newest = counted.saturating_sub(self.counted) as f64 / passed;
            self.per_second = KEPT * self.per_second + (1.0 - KEPT) * newest;
            (self.counted, self.at) = (counted, now);
        }
        self.per_second
    }
}

/// What each of a member's instances may take, in µs of each period.
fn quota_us(per_second: f64, us_per_request: u32, instances: u32) -> u32 {
    let processors = per_second * f64::from(us_per_request) / 1e6;
    let each = processors * ROOM * CPU_PERIOD_US as f64 / f64::from(instances.max(1));
    // Far below what does not fit.
    each.clamp(LEAST_US, f64::from(u32::MAX)).round() as u32
}

/// Keeps the limits of a chain's members until `ending`, or until they are gone.
pub(super) fn limit(
    spec: Arc<Spec>,
    path: Arc<Path>,
    members: Weak<Members>,
    ending: CancellationToken,
) {
    tokio::spawn(async move {
        let mut rate = Rate::new(Instant::now());
        loop {
            let Some(members) = members.upgrade() else {
                return;
            };
            let per_second = rate.update(path.arrived(), Instant::now());
            members
                .limit_cpu(|name, instances| {
                    let us = spec.cpu_us.get(name).copied().unwrap_or_default();
                    quota_us(per_second, us, instances)
                })
                .await;
            drop(members);
            let pause = tokio::time::sleep(INTERVAL);
            if ending.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_approached_and_forgotten() {
        let begun = Instant::now();
        let mut rate = Rate::new(begun);
        assert_eq!(rate.update(9, begun), 0.0, "no time has passed");
        let mut counted = 0;
        for second in 1..=30 {
            counted += 100;
            rate.update(counted, begun + Duration::from_secs(second));
        }
        assert!((rate.per_second - 100.0).abs() < 1.0, "{rate:?}");
        let once = rate.update(counted, begun + Duration::from_secs(31));
        assert!((once - 80.0).abs() < 1.0, "{once}");
        for second in 32..=60 {
            rate.update(counted, begun + Duration::from_secs(second));
        }
        assert!(rate.per_second < 1.0, "{rate:?}");
    }

    #[test]
    fn a_quota_is_the_rate_times_the_constant_for_all_instances_together() {
        // 2,000 requests of 100 µs: a fifth of a processor, and half as much again.
        let processor = CPU_PERIOD_US as u32;
        assert_eq!(quota_us(2_000.0, 100, 1), processor * 3 / 10);
        assert_eq!(quota_us(2_000.0, 100, 2), processor * 3 / 20);
        assert_eq!(quota_us(0.0, 100, 1), processor / 20);
        assert_eq!(quota_us(1.0, 1, 64), processor / 20);
        assert!(quota_us(1e6, 1_000_000, 1) > processor * 1_000);
        assert_eq!(quota_us(f64::MAX, 1_000_000, 1), u32::MAX);
    }
}
