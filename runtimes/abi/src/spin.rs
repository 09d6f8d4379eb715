//! Adaptive spinning: how long a side polls its ring before it sleeps.
//!
//! Sleeping and being woken costs two system calls and the latency of a wake-up: a few microseconds between busy
//! processors, tens where the processor had halted, more under virtualization. A side whose peer will respond sooner
//! than that should spin for a moment (Karlin et al., "Empirical Studies of Competitive Spinning for a Shared-Memory
//! Multiprocessor", SOSP 1991: to spin for about as long as a wake-up costs is never worse than twice the optimum).
//!
//! Spinning costs CPU time, so [`AdaptiveSpin`] keeps a budget. An avoided wake-up earns three quarters of the longest spin; every spin
//! costs its duration. A peer that responds soon keeps the budget positive; one that responds late or not at all
//! exhausts it, and then this side sleeps immediately. It tries again after a pause, counted in sleeps, which doubles
//! each time that spinning does not pay off. In any case, at most [`SHARE_PERCENT`] of a core is spent on spinning.
//! [`look`] spins, yielding the CPU between polls.

use core::hint::spin_loop;
use core::time::Duration;
use std::time::Instant;

use rustix::thread::sched_yield;

/// Most sleeps without looking in between: how rarely a side for which looking does not pay still tries.
const MAX_SKIPPED: u32 = 255;
/// Looks between two offers of the processor: about half a microsecond. Four times as many made a closed loop's answers a
/// tenth slower on two processors, where client, server and instance wait for each other.
const LOOKS: u32 = 16;
/// The longest that a round of looks takes with the offer after it. In a longer one others took the offer: that time was
/// theirs, and counts for nothing.
const LONGEST_ROUND: Duration = Duration::from_micros(5);
/// Most of a core that one side of one channel may spend on looking, in percent of the time. Protects the host from an
/// instance that would keep a core to itself; more than a closed loop over one connection takes.
pub const SHARE_PERCENT: u32 = 80;
/// How much of its share a side may save up: looks come in bursts.
const SHARE_SAVED: Duration = Duration::from_millis(20);
/// What a side may earn ahead, in longest looks: how many looks in vain a good history pays for.
const SAVED_LOOKS: i64 = 8;
/// Largest debt, in longest spins: this much must be earned before it spins every time again.
const OWED_LOOKS: i64 = 1;

/// How a look went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether there was something in the end.
    pub found: bool,
    /// The processor's time that it took, without what others got of it meanwhile.
    pub spun: Duration,
}

/// Whether it pays to look before sleeping, learnt from how it went. Pure: the clock comes from outside.
#[derive(Debug, Clone)]
pub struct AdaptiveSpin {
    limit: Duration,
    /// Whether there is a processor for it.
    allowed: bool,
    /// What spared wake-ups have earned, less what looks took, in ns.
    account: i64,
    /// What is left of the share, and when it was last added to.
    share: Duration,
    refilled: Option<Instant>,
    /// Sleeps without looking after the last look that did not pay.
    skipped_last: u32,
    /// How many of them are left.
    skip: u32,
}

impl AdaptiveSpin {
    /// Looks for `limit` at most; never, if that is zero. Not for the first time: an instance that has just started waits for
    /// a server that has to take it into service, and the server for a worker whose memory is cold. Each would offer its
    /// processor in vain, and whoever takes the offer keeps it for a time slice of its own.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self {
            limit,
            allowed: true,
            account: 0,
            share: SHARE_SAVED,
            refilled: None,
            skipped_last: 0,
            skip: 1,
        }
    }

    /// Whether spinning can pay off now: not while all CPUs are busy, since the peer then waits for one. The budget is
    /// kept.
    pub fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
    }

    /// How long to spin now. `None`: sleep at once. Reads the clock only if it matters.
    pub fn budget(&mut self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        if self.limit.is_zero() || !self.allowed {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.refill(now());
        (self.share >= self.limit).then_some(self.limit)
    }

    /// How the look went that [`Self::budget`] allowed.
    pub fn learn(&mut self, look: Look) {
        self.share = self.share.saturating_sub(look.spun);
        let limit = nanos(self.limit);
        // What an avoided wake-up earns. With half of it, a closed loop had two speeds: a peer that was late because it had
        // been woken itself was not worth looking for, so it was late the next time, too.
        let gain = if look.found { limit / 4 * 3 } else { 0 } - nanos(look.spun);
        self.account = (self.account + gain).clamp(-OWED_LOOKS * limit, SAVED_LOOKS * limit);
        if look.found && self.account > 0 {
            self.skipped_last = 0;
        } else if gain <= 0 {
            self.skipped_last = (self.skipped_last * 2 + 1).min(MAX_SKIPPED);
        }
        self.skip = self.skipped_last;
    }

    fn refill(&mut self, now: Instant) {
        let passed = self.refilled.replace(now).map_or(Duration::ZERO, |before| {
            // Longer pauses fill it up anyway.
            now.saturating_duration_since(before).min(SHARE_SAVED * 2)
        });
        self.share = (self.share + passed * SHARE_PERCENT / 100).min(SHARE_SAVED);
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX / 16)
}

/// Calls `found` until it answers `true`, for `budget` at most.
pub fn look(budget: Duration, mut found: impl FnMut() -> bool) -> Look {
    let mut spun = Duration::ZERO;
    // When it began, and the last round. The clock is read only once the first looks were in vain: a peer that spins
    // answers before.
    let mut clock: Option<(Instant, Instant)> = None;
    loop {
        for _ in 0..LOOKS {
            if found() {
                spun += clock.map_or(Duration::ZERO, |(_, last)| own(last.elapsed()));
                return Look { found: true, spun };
            }
            spin_loop();
        }
        let (begun, last) = clock.unwrap_or_else(|| {
            let now = Instant::now();
            (now, now)
        });
        sched_yield();
        let now = Instant::now();
        spun += own(now - last);
        if now - begun >= budget {
            let found = found();
            return Look { found, spun };
        }
        clock = Some((begun, now));
    }
}

/// What this side had of the processor in a round that took `elapsed`.
fn own(elapsed: Duration) -> Duration {
    elapsed.min(LONGEST_ROUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(200);

    fn found(micros: u64) -> Look {
        Look {
            found: true,
            spun: Duration::from_micros(micros),
        }
    }

    const IN_VAIN: Look = Look {
        found: false,
        spun: LIMIT,
    };

    /// So many waits, each of `cycle`, answered by `peer`; how many looks there were and how long they took.
    fn waits(
        spin: &mut AdaptiveSpin,
        count: u32,
        cycle: Duration,
        peer: impl Fn(u32) -> Look,
    ) -> (u32, Duration) {
        let begun = Instant::now();
        let (mut looks, mut spun) = (0, Duration::ZERO);
        for wait in 0..count {
            if let Some(budget) = spin.budget(|| begun + cycle * wait) {
                assert_eq!(budget, LIMIT);
                let look = peer(wait);
                looks += 1;
                spun += look.spun;
                spin.learn(look);
            }
        }
        (looks, spun)
    }

    #[test]
    fn looks_in_vain_make_it_look_less_often() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        let cycle = Duration::from_millis(1);
        let (looks, _) = waits(&mut spin, 10_000, cycle, |_| IN_VAIN);
        assert!((10_000 / 256..60).contains(&looks), "{looks} looks");
    }

    #[test]
    fn a_peer_that_is_back_soon_is_looked_for_every_time() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        // A closed loop over one connection: two thirds of its time the worker waits.
        let cycle = Duration::from_micros(36);
        let (looks, _) = waits(&mut spin, 100_000, cycle, |_| found(24));
        assert_eq!(looks, 100_000 - 1);
    }

    #[test]
    fn a_peer_that_is_back_late_is_not_worth_the_processor() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        // Every look finds something, and takes most of the longest.
        let cycle = Duration::from_micros(250);
        let (looks, _) = waits(&mut spin, 10_000, cycle, |_| found(150));
        assert!(looks < 60, "{looks} looks");
    }

    #[test]
    fn now_and_then_a_look_in_vain_is_paid_for_by_the_others() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        let cycle = Duration::from_micros(60);
        let often = |wait| if wait % 50 == 49 { IN_VAIN } else { found(20) };
        let (looks, _) = waits(&mut spin, 10_000, cycle, often);
        assert!(looks > 9_500, "{looks} looks");
        // Most of them in vain: the few that are not do not pay for them.
        let rarely = |wait| if wait % 4 == 0 { found(90) } else { IN_VAIN };
        let (looks, _) = waits(&mut spin, 10_000, cycle, rarely);
        assert!(looks < 100, "{looks} looks");
    }

    #[test]
    fn some_looks_that_pay_make_it_look_every_time_again() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        let cycle = Duration::from_millis(1);
        waits(&mut spin, 1_000, cycle, |_| IN_VAIN);
        waits(&mut spin, 4 * 256, cycle, |_| found(10));
        assert_eq!(waits(&mut spin, 100, cycle, |_| found(10)).0, 100);
    }

    #[test]
    fn no_more_than_its_share_of_a_core_goes_into_looking() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        // All of the time it would wait, and each look would pay.
        let cycle = Duration::from_micros(90);
        let (_, spun) = waits(&mut spin, 100_000, cycle, |_| found(90));
        let whole = cycle * 100_000;
        let most = whole * SHARE_PERCENT / 100 + SHARE_SAVED;
        assert!(spun <= most && spun >= whole / 2, "{spun:?} of {whole:?}");
    }

    #[test]
    fn nobody_looks_who_is_not_allowed_to() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        spin.allow(false);
        assert_eq!(spin.budget(Instant::now), None);
        spin.allow(true);
        spin.budget(Instant::now);
        assert!(spin.budget(Instant::now).is_some());
    }

    #[test]
    fn the_first_wait_is_without_a_look() {
        let mut spin = AdaptiveSpin::new(LIMIT);
        assert_eq!(spin.budget(Instant::now), None);
        assert_eq!(spin.budget(Instant::now), Some(LIMIT));
    }

    #[test]
    fn no_limit_is_no_look() {
        assert_eq!(AdaptiveSpin::new(Duration::ZERO).budget(Instant::now), None);
    }

    #[test]
    fn a_look_ends_when_something_is_found_or_time_is_up() {
        let mut calls = 0;
        let look_at = look(Duration::from_secs(60), || {
            calls += 1;
            calls == 5
        });
        assert_eq!((look_at.found, calls), (true, 5));
        let budget = Duration::from_micros(10);
        let vain = look(budget, || false);
        assert!(!vain.found && !vain.spun.is_zero());
    }

    #[test]
    fn what_others_took_of_the_processor_is_not_spun() {
        let away = Duration::from_millis(20);
        let mut calls = 0;
        // The looker is off its processor once, in its second round.
        let look_at = look(Duration::from_secs(60), || {
            calls += 1;
            if calls == LOOKS + 2 {
                std::thread::sleep(away);
            }
            calls == LOOKS * 3
        });
        assert!(look_at.found);
        assert!(look_at.spun <= LONGEST_ROUND * 3, "{:?}", look_at.spun);
    }
}
