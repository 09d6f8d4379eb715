//! How short memory is: what the budget allows, what the host has left, and how long its processes wait for it.

use crate::system::HostMemory;

/// Parts of the host's memory that must stay available to everything else: below, the kernel begins to reclaim what runs.
const FLOOR_PART: u64 = 20;
/// The floor is no higher than this: on a large host a twentieth is plenty.
const FLOOR_MOST: u64 = 1 << 30;
/// Share of the last ten seconds, in percent, that every task waited for memory (PSI, `full avg10`), from which on the
/// host counts as thrashing, whatever is said to be available.
const THRASHING_PERCENT: f64 = 5.0;
/// Part of what is kept that is let go at a time while the host thrashes.
const THRASHING_PART: u64 = 10;

/// Bytes to let go of, `used` being kept under a budget of `budget`.
pub fn excess(used: u64, budget: u64, host: HostMemory) -> u64 {
    let over_budget = used.saturating_sub(budget);
    let floor = (host.total / FLOOR_PART).min(FLOOR_MOST);
    let below_floor = floor.saturating_sub(host.available);
    let thrashing = if host.stalled_percent >= THRASHING_PERCENT {
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
        }
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
        assert_eq!(
            excess(GIB, 8 * GIB, host(16 * GIB, 10 * GIB, 50.0)),
            GIB / 10
        );
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
