//! Decides what is due for removal: pure functions, with the clock as a parameter.

use jiff::{SignedDuration, Timestamp};

/// Hours of a day, as a duration in days has no daylight saving.
const HOURS: i64 = 24;

/// The present amount of one kind, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Rows.
    pub rows: u64,
    /// Bytes they take on disk, estimated.
    pub bytes: u64,
    /// When the oldest happened.
    pub oldest: Option<Timestamp>,
}

/// Its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Age at which a row goes, days.
    pub days: u32,
    /// Bytes all rows together may take.
    pub bytes: u64,
}

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Everything that happened before.
    Before(Timestamp),
    /// This many of the oldest, because of the size limit.
    Oldest(u64),
}

/// The point in time before which everything is too old.
pub fn cutoff(days: u32, now: Timestamp) -> Timestamp {
    now.saturating_sub(SignedDuration::from_hours(HOURS * i64::from(days)))
        .unwrap_or(Timestamp::MIN)
}

/// What has to go of a kind now; none when it is within its budget. Age comes first: what goes by it may be enough.
pub fn due(kept: &Kept, budget: &Budget, now: Timestamp) -> Option<Due> {
    let before = cutoff(budget.days, now);
    if kept.oldest? < before {
        return Some(Due::Before(before));
    }
    match excess(kept, budget) {
        0 => None,
        rows => Some(Due::Oldest(rows)),
    }
}

/// How many rows are too many, as their size goes.
fn excess(kept: &Kept, budget: &Budget) -> u64 {
    let over = kept.bytes.saturating_sub(budget.bytes);
    if over == 0 || kept.rows == 0 {
        return 0;
    }
    // Rounded up: what is left must fit. In 128 bits, because rows times bytes may be more than 64 hold.
    let rows = (u128::from(over) * u128::from(kept.rows)).div_ceil(u128::from(kept.bytes));
    u64::try_from(rows).unwrap_or(u64::MAX).min(kept.rows)
}

/// About how many rows would go under a budget, for who thinks about changing it: as if they had happened evenly since
/// the oldest.
pub fn estimate(kept: &Kept, budget: &Budget, now: Timestamp) -> u64 {
    let Some(oldest) = kept.oldest else {
        return 0;
    };
    let seconds = |from: Timestamp, to: Timestamp| {
        u64::try_from(to.as_second().saturating_sub(from.as_second())).unwrap_or(0)
    };
    let all = seconds(oldest, now).max(1);
    let aged = seconds(oldest, cutoff(budget.days, now)).min(all);
    let by_age = (u128::from(kept.rows) * u128::from(aged) / u128::from(all)) as u64;
    by_age.max(excess(kept, budget)).min(kept.rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Rows of one size at these times, oldest first.
    fn kept(times: &[i64], size: u64) -> Kept {
        Kept {
            rows: times.len() as u64,
            bytes: times.len() as u64 * size,
            oldest: times.first().map(|time| at(*time)),
        }
    }

    /// Applies what is due until nothing is, as the pass does: in pieces.
    fn applied(mut times: Vec<i64>, size: u64, budget: &Budget, now: Timestamp) -> Vec<i64> {
        const PIECE: u64 = 3;
        let mut steps = 0;
        while let Some(due) = due(&kept(&times, size), budget, now) {
            let old = match due {
                Due::Before(before) => times.iter().take_while(|time| at(**time) < before).count(),
                Due::Oldest(rows) => rows as usize,
            };
            let gone = old.min(PIECE as usize);
            assert!(gone > 0, "what is due is there");
            times.drain(..gone);
            steps += 1;
            assert!(steps < 10_000, "it comes to an end");
        }
        times
    }

    proptest! {
        #[test]
        fn what_is_left_is_young_enough_small_enough_and_as_much_as_may_be(
            mut times in proptest::collection::vec(0..200 * DAY, 0..80),
            size in 1..5_000_u64,
            days in 1..250_u32,
            bytes in 0..200_000_u64,
        ) {
            times.sort_unstable();
            let now = at(200 * DAY);
            let budget = Budget { days, bytes };
            let left = applied(times.clone(), size, &budget, now);
            let before = cutoff(days, now);
            // The newest stay.
            prop_assert_eq!(&times[times.len() - left.len()..], left.as_slice());
            prop_assert!(left.iter().all(|time| at(*time) >= before));
            prop_assert!(left.len() as u64 * size <= bytes);
            // One more would be too old or too much.
            if left.len() < times.len() {
                let next = at(times[times.len() - left.len() - 1]);
                prop_assert!(next < before || (left.len() as u64 + 1) * size > bytes);
            }
        }

        #[test]
        fn an_estimate_is_never_more_than_there_is_and_nothing_when_nothing_is_due(
            rows in 0..u64::MAX / 2,
            bytes in any::<u64>(),
            oldest in proptest::option::of(-10_000 * DAY..300 * DAY),
            days in 1..4_000_u32,
            budget in any::<u64>(),
        ) {
            let kept = Kept { rows, bytes, oldest: oldest.map(at) };
            let (budget, now) = (Budget { days, bytes: budget }, at(200 * DAY));
            let estimate = estimate(&kept, &budget, now);
            prop_assert!(estimate <= rows);
            if due(&kept, &budget, now).is_none() {
                prop_assert_eq!(estimate, 0);
            }
        }
    }

    #[test]
    fn age_comes_before_size() {
        let now = at(100 * DAY);
        let budget = Budget {
            days: 10,
            bytes: 50,
        };
        let old = Kept {
            rows: 10,
            bytes: 100,
            oldest: Some(at(DAY)),
        };
        assert_eq!(due(&old, &budget, now), Some(Due::Before(at(90 * DAY))));
        let young = Kept {
            oldest: Some(at(95 * DAY)),
            ..old
        };
        assert_eq!(due(&young, &budget, now), Some(Due::Oldest(5)));
        let none = Kept::default();
        assert_eq!(due(&none, &budget, now), None);
        assert_eq!(estimate(&old, &budget, now), 8);
    }
}
