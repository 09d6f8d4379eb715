//! How short memory is: what the budget allows, what the host has left, and how long its processes wait for it.

use std::time::{Duration, Instant};

use crate::system::HostMemory;

/// Parts of the host's memory that must stay available to everything else: below, the kernel begins to reclaim what runs.
const FLOOR_PART: u64 = 20;
/// The floor is no higher than this: on a large host a twentieth is plenty.
const FLOOR_MOST: u64 = 1 << 30;
/// Share of the last ten seconds, in percent, that every task waited for memory (PSI, `full avg10`), from which on the
/// host counts as thrashing although more than the floor is said to be available: what is available are mostly pages of
/// files, and whoever runs may need them.
const THRASHING_PERCENT: f64 = 5.0;
/// Unless this part of the host's memory is available: then what little is kept here is not what is missing.
const PLENTY_PART: u64 = 4;
/// Part of what is kept that is let go at a time while the host thrashes.
const THRASHING_PART: u64 = 10;
/// How long a wait for memory counts: what PSI averages over.
const STALL_WINDOW: Duration = Duration::from_secs(10);

/// Tells the waits for the host's memory from those at the limits of cgroups, which PSI counts alike: a function that
/// keeps reading more than its own limit holds would have everybody else's instances evicted.
#[derive(Debug, Default)]
pub struct HostStalls {
    reclaims: Option<u64>,
    reclaimed: Option<Instant>,
}

impl HostStalls {
    /// `host`, read at `now`, without stalls unless the kernel reclaimed memory for the host while they happened.
    pub fn only(&mut self, host: HostMemory, now: Instant) -> HostMemory {
        let before = self.reclaims.replace(host.reclaims);
        if before.is_some_and(|before| before != host.reclaims) {
            self.reclaimed = Some(now);
        }
        let is_reclaiming = self
            .reclaimed
            .is_some_and(|at| now.saturating_duration_since(at) < STALL_WINDOW);
        HostMemory {
            stalled_percent: if is_reclaiming {
                host.stalled_percent
            } else {
                0.0
            },
            ..host
        }
    }
}

/// Bytes to let go of, `used` being kept under a budget of `budget`.
pub fn excess(used: u64, budget: u64, host: HostMemory) -> u64 {
    let over_budget = used.saturating_sub(budget);
    let floor = (host.total / FLOOR_PART).min(FLOOR_MOST);
    let below_floor = floor.saturating_sub(host.available);
    let plenty = host.available >= host.total / PLENTY_PART;
    let thrashing = if host.stalled_percent >= THRASHING_PERCENT && !plenty {
        used / THRASHING_PART
    } else {
        0
    };
    // What is not kept cannot be let go.
    over_budget.max(below_floor).max(thrashing).min(used)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn host(total: u64, available: u64, stalled_percent: f64) -> HostMemory {
        HostMemory {
            total,
            available,
            stalled_percent,
            reclaims: 0,
        }
    }

    #[test]
    fn who_waits_at_the_limit_of_a_cgroup_does_not_wait_for_the_host() {
        let (mut stalls, start) = (HostStalls::default(), Instant::now());
        let mut stalled = |after_s: u64, reclaims| {
            let read = HostMemory {
                reclaims,
                ..host(16 * GIB, 10 * GIB, 50.0)
            };
            let counted = stalls.only(read, start + Duration::from_secs(after_s));
            assert_eq!(counted.available, read.available);
            counted.stalled_percent > 0.0
        };
        assert!(!stalled(0, 700), "when that was is not known");
        assert!(!stalled(1, 700));
        assert!(stalled(2, 701));
        assert!(stalled(11, 701), "the average still holds it");
        assert!(!stalled(12, 701));
        assert!(stalled(13, 900));
    }

    #[test]
    fn the_tightest_bound_counts() {
        let plenty = host(16 * GIB, 10 * GIB, 0.0);
        assert_eq!(excess(GIB, 2 * GIB, plenty), 0);
        assert_eq!(excess(3 * GIB, 2 * GIB, plenty), GIB);
        assert_eq!(
            excess(3 * GIB, 8 * GIB, host(16 * GIB, 0, 0.0)),
            16 * GIB / 20
        );
        let stalled = |available| excess(GIB, 8 * GIB, host(16 * GIB, available, 50.0));
        assert_eq!(stalled(3 * GIB), GIB / 10);
        assert_eq!(stalled(4 * GIB), 0, "plenty");
        assert_eq!(excess(GIB, 8 * GIB, HostMemory::default()), 0, "unknown");
    }

    proptest! {
        /// Letting go of the excess meets the budget, and it is never more than what is kept.
        #[test]
        fn the_budget_is_met(
            used in 0_u64..1 << 40, budget in 0_u64..1 << 40, total in 0_u64..1 << 40, available in 0_u64..1 << 40,
            stalled in 0.0_f64..100.0,
        ) {
            let go = excess(used, budget, host(total, available, stalled));
            prop_assert!(go <= used);
            prop_assert!(used - go <= budget);
        }
    }
}
