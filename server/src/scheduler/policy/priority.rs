//! When the server's threads take precedence over the host's other work.
//!
//! A thread that has just run waits behind whoever else is on its processor, a thread of the kernel's for example, until the
//! kernel's next tick, 4 ms on many hosts, even with another processor idle: it is not moved so soon. With a higher priority it
//! does not. It has a price, though: with many requests under way each message would preempt the client that is about to send
//! the next one, and a look that precedes a wait keeps the processor from the peer it waits for. So the priority is raised
//!
//! - while requests come **seldom**: they take so little that nobody loses anything, and each may find its processor taken;
//! - while others wait for a processor (the host is **busy**) and few requests are under way, as long as it takes little: at
//!   least half of the processors' time stays with everybody else.

use std::time::{Duration, Instant};

/// How often it is decided anew.
pub const PERIOD: Duration = Duration::from_millis(250);
/// How long it stays raised after the last call, and after others were seen to wait, which nobody does during the pauses of somebody
/// who calls now and then.
const KEPT: Duration = Duration::from_secs(5);
/// How long it stays ordinary after it was lowered for its price: what made it so may come and go.
const HELD: Duration = Duration::from_secs(1);
/// Invocations at a time per processor, above which a raised priority is lowered. It is raised only up to half as many.
const MOST_PER_CORE: u64 = 2;
/// The part of all processors' time that the server may take with it.
const LARGEST_SHARE: f64 = 0.5;
/// The part of one processor's time up to which requests come seldom; and beyond which they do not any more.
const SELDOM_SHARE: f64 = 0.05;
const OFTEN_SHARE: f64 = 0.1;

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
    /// Whether requests come seldom.
    is_seldom: bool,
    /// The last period's end, and the time spent until then.
    last: Option<(Instant, Duration)>,
    /// How long it may stay raised on a host that was busy.
    kept_until: Option<Instant>,
    /// How long calls that come seldom keep it raised.
    called_until: Option<Instant>,
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
            is_seldom: false,
            last: None,
            kept_until: None,
            called_until: None,
            held_until: None,
        }
    }

    /// Whether it is to be raised from here on.
    pub fn decide(&mut self, seen: Seen) -> bool {
        let processors = self.processors_taken(seen);
        let takes_much = processors > f64::from(self.cores) * LARGEST_SHARE;
        let is_costly = takes_much || seen.most > self.most();
        if self.raised && is_costly {
            self.held_until = Some(seen.now + HELD);
        }
        let share = if self.is_seldom {
            OFTEN_SHARE
        } else {
            SELDOM_SHARE
        };
        self.is_seldom = processors <= share;
        if seen.busy {
            self.kept_until = Some(seen.now + KEPT);
        }
        if seen.most > 0 {
            self.called_until = Some(seen.now + KEPT);
        }
        let lies_ahead = |time: Option<Instant>| time.is_some_and(|time| seen.now < time);
        let is_wanted = seen.busy
            || self.raised && lies_ahead(self.kept_until)
            || self.is_seldom && lies_ahead(self.called_until);
        self.raised = is_wanted && !is_costly && !lies_ahead(self.held_until);
        self.raised
    }

    /// More invocations than [`Self::most_raised`] are under way: it is lowered without waiting for the period's end.
    pub fn lower(&mut self, now: Instant) {
        self.raised = false;
        self.held_until = Some(now + HELD);
    }

    /// Most invocations at a time with which it stays raised.
    #[must_use]
    pub const fn most_raised(cores: u32) -> u64 {
        cores as u64 * MOST_PER_CORE
    }

    /// Most invocations at a time with which it is, or stays, raised.
    fn most(&self) -> u64 {
        if self.raised {
            Self::most_raised(self.cores)
        } else {
            self.cores.into()
        }
    }

    /// How many processors' time was spent since the last period, by the server.
    fn processors_taken(&mut self, seen: Seen) -> f64 {
        let Some((then, spent)) = self.last.replace((seen.now, seen.spent)) else {
            return 0.0;
        };
        let passed = seen.now.saturating_duration_since(then);
        if passed.is_zero() {
            return 0.0;
        }
        seen.spent.saturating_sub(spent).as_secs_f64() / passed.as_secs_f64()
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
    const OFTEN: Period = (false, 1, 0.5);
    const SELDOM: Period = (false, 1, 0.04);
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
        // How much is taken is known from the second period on.
        assert_eq!(decided([OFTEN; 4]), [true, false, false, false]);
        assert_eq!(decided([NOBODY; 3]), [false; 3]);
    }

    #[test]
    fn calls_that_come_seldom_raise_it_until_some_time_after_the_last() {
        let kept = decided([SELDOM; 3].into_iter().chain([NOBODY; KEPT_PERIODS + 3]));
        assert_eq!(
            kept.iter().filter(|raised| **raised).count(),
            2 + KEPT_PERIODS
        );
        assert!(kept.is_sorted_by(|one, next| one >= next), "{kept:?}");
        // A little more often makes no difference either way.
        let between = (false, 1, 0.08);
        let periods = [SELDOM, between, OFTEN, between, SELDOM];
        assert_eq!(decided(periods), [true, true, false, false, true]);
        // As many at a time as there are processors.
        assert_eq!(decided([(false, 2, 0.04), (false, 5, 0.04)]), [true, false]);
    }

    #[test]
    fn it_is_lowered_at_once_and_for_a_while() {
        let mut priority = Priority::new(CORES);
        let began = Instant::now();
        let seen = |after| Seen {
            now: began + after,
            busy: false,
            most: 1,
            spent: Duration::ZERO,
        };
        assert!(priority.decide(seen(Duration::ZERO)));
        priority.lower(began);
        assert!(!priority.decide(seen(HELD / 2)));
        assert!(priority.decide(seen(HELD)));
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
        for pause in [OFTEN, NOBODY] {
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
