//! When the server's threads take precedence over the host's other work.
//!
//! Where others compute on every processor, a thread that uses more than its even share of one waits for the kernel's next
//! tick, 4 ms on many hosts, and a client in a closed loop makes the server's threads do so a hundred times a second. With
//! a higher priority they do not. It has a price, though: with many requests under way each message would preempt the
//! client that is about to send the next one. So the priority is raised only while others wait for a processor and few
//! requests are under way, and while it takes little: at least half of the processors' time stays with everybody else.

use std::time::{Duration, Instant};

/// How often it is decided anew.
pub const PERIOD: Duration = Duration::from_millis(250);
/// How long it stays raised after others were seen to wait: longer than the pauses of somebody who calls now and then,
/// during whom nobody waits.
const KEPT: Duration = Duration::from_secs(5);
/// How long it stays ordinary after it was lowered for its price: what made it so may come and go.
const HELD: Duration = Duration::from_secs(1);
/// Invocations at a time per processor, above which a raised priority is lowered. It is raised only up to half as many.
const MOST_PER_CORE: u64 = 2;
/// The part of all processors' time that the server may take with it.
const LARGEST_SHARE: f64 = 0.5;

/// What has happened in a period.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Its end.
    pub now: Instant,
    /// Whether others waited for a processor while there were invocations.
    pub busy: bool,
    /// Most invocations that were under way at a time.
    pub most: u64,
    /// The processors' time that the server has taken since it started.
    pub spent: Duration,
}

/// Whether the priority is raised. Pure: the clock comes from outside.
#[derive(Debug)]
pub struct Priority {
    cores: u32,
    raised: bool,
    /// The last period's end, and the time spent until then.
    last: Option<(Instant, Duration)>,
    /// How long it may stay raised.
    kept_until: Option<Instant>,
    /// When it may be raised again.
    held_until: Option<Instant>,
}

impl Priority {
    /// Of a server on this many processors: ordinary.
    #[must_use]
    pub fn new(cores: u32) -> Self {
        Self {
            cores: cores.max(1),
            raised: false,
            last: None,
            kept_until: None,
            held_until: None,
        }
    }

    /// Whether it is to be raised from here on.
    pub fn decide(&mut self, seen: Seen) -> bool {
        let is_costly = self.takes_much(seen) || seen.most > self.most();
        if self.raised && is_costly {
            self.held_until = Some(seen.now + HELD);
        }
        if seen.busy {
            self.kept_until = Some(seen.now + KEPT);
        }
        let lies_ahead = |time: Option<Instant>| time.is_some_and(|time| seen.now < time);
        let is_wanted = seen.busy || self.raised && lies_ahead(self.kept_until);
        self.raised = is_wanted && !is_costly && !lies_ahead(self.held_until);
        self.raised
    }

    /// Most invocations at a time with which it is, or stays, raised.
    fn most(&self) -> u64 {
        let cores = u64::from(self.cores);
        if self.raised {
            cores * MOST_PER_CORE
        } else {
            cores
        }
    }

    /// Whether more than its share was spent since the last period.
    fn takes_much(&mut self, seen: Seen) -> bool {
        let Some((then, spent)) = self.last.replace((seen.now, seen.spent)) else {
            return false;
        };
        let passed = seen.now.saturating_duration_since(then) * self.cores;
        seen.spent.saturating_sub(spent) > passed.mul_f64(LARGEST_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CORES: u32 = 2;
    /// Periods of which some lie between others waiting and the priority's end.
    const KEPT_PERIODS: usize = (KEPT.as_millis() / PERIOD.as_millis()) as usize;

    /// A period: whether others wait, most invocations at a time, processors taken.
    type Period = (bool, u64, f64);

    const FEW: Period = (true, 1, 0.5);
    const QUIET: Period = (false, 1, 0.5);
    const NOBODY: Period = (false, 0, 0.0);

    /// What is decided after each period.
    fn decided(periods: impl IntoIterator<Item = Period>) -> Vec<bool> {
        let mut priority = Priority::new(CORES);
        let (mut now, mut spent) = (Instant::now(), Duration::ZERO);
        let decide = |(busy, most, processors)| {
            now += PERIOD;
            spent += PERIOD.mul_f64(processors);
            let seen = Seen {
                now,
                busy,
                most,
                spent,
            };
            priority.decide(seen)
        };
        periods.into_iter().map(decide).collect()
    }

    #[test]
    fn it_is_raised_for_few_on_a_busy_host() {
        assert_eq!(decided([FEW, FEW, (true, 2, 0.5)]), [true; 3]);
        assert_eq!(decided([QUIET; 3]), [false; 3]);
        assert_eq!(decided([NOBODY; 3]), [false; 3]);
    }

    #[test]
    fn many_never_raise_it_and_lower_it_for_a_while() {
        assert_eq!(decided([(true, 64, 0.8), (true, 3, 0.5)]), [false; 2]);
        let periods = [FEW, (true, 64, 0.5)].into_iter().chain([FEW; 5]);
        let expected = [true, false, false, false, false, true, true];
        assert_eq!(decided(periods), expected);
        // Between the two bounds it stays what it was.
        assert_eq!(decided([FEW, (true, 4, 0.5)]), [true; 2]);
    }

    #[test]
    fn it_outlasts_pauses_and_ends_with_the_others_work() {
        for pause in [QUIET, NOBODY] {
            let kept = decided([FEW].into_iter().chain([pause; KEPT_PERIODS + 3]));
            assert_eq!(kept.iter().filter(|raised| **raised).count(), KEPT_PERIODS);
            assert!(kept.is_sorted_by(|one, next| one >= next), "{kept:?}");
        }
        let periods = [FEW]
            .into_iter()
            .chain([NOBODY; KEPT_PERIODS - 1])
            .chain([FEW]);
        assert!(decided(periods).into_iter().all(|raised| raised));
    }

    #[test]
    fn what_takes_much_is_not_raised() {
        let periods = [FEW, (true, 1, 1.2), FEW];
        assert_eq!(decided(periods), [true, false, false]);
        assert_eq!(decided([FEW, (true, 1, 0.99)]), [true; 2]);
    }

    proptest! {
        /// However it goes, it stays raised only after a period in which half of the processors' time was others'.
        #[test]
        fn others_keep_half(
            periods in prop::collection::vec((any::<bool>(), 0_u64..8, 0.0_f64..2.0), 1..100),
        ) {
            let raised = decided(periods.clone());
            for (&(_, most, processors), raised) in periods.iter().zip(raised).skip(1) {
                prop_assert!(!raised || most <= 4 && processors <= 1.001);
            }
        }
    }
}
