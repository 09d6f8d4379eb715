//! Detects CPU contention, during which nobody spins.
//!
//! By the kernel's pressure stall information (`/proc/pressure/cpu`, see the kernel's
//! Documentation/accounting/psi.rst): the time in which at least one task of the host was ready to run and did not.
//! Without it, only the number of running invocations limits spinning.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hearth_abi::monotonic_ns;
use parking_lot::Mutex;

/// How often it is looked at, at most. Reading the file takes some microseconds.
/// Shorter samples of a closed loop are high now and then by chance.
const SAMPLE_NS: u64 = 250_000_000;
/// A sample that covers more than this says little of now.
const STALE_NS: u64 = 1_000_000_000;
/// Share of a sample with tasks waiting, in percent, above which nobody spins. In a closed loop on two cores, where
/// client, server and instance compete and two of them spin, it is 30 to 45 %; with one more busy process per core it
/// is nearly 100 %.
const HIGH_PERCENT: u64 = 80;
/// How long spinning then stops. Doubles, up to the maximum, each time pressure is high again afterwards.
const HOLD_NS: u64 = 500_000_000;
const LONGEST_HOLD_NS: u64 = 16_000_000_000;

/// What is made of the kernel's counter. Pure.
#[derive(Debug, Default)]
struct Judge {
    /// When the last sample was taken, and the counter then, in µs.
    last: Option<(u64, u64)>,
    /// When spinning may resume, and the length of the pause.
    hold: Option<(u64, u64)>,
}

impl Judge {
    /// Whether work waits, at `now` (ns) with `waited` µs of waiting ever. What invocations brought about themselves, by being more than
    /// there are processors, ends with them: it does not stop spinning afterwards.
    fn is_high(&mut self, now: u64, waited: u64, is_own: bool) -> bool {
        let before = self.last.replace((now, waited));
        if let Some((until, _)) = self.hold
            && now < until
        {
            return true;
        }
        let Some((then, waited_then)) = before else {
            return false;
        };
        let passed = now.saturating_sub(then);
        if passed == 0 || passed > STALE_NS {
            return false;
        }
        let percent = waited.saturating_sub(waited_then) * 1000 * 100 / passed;
        if percent < HIGH_PERCENT {
            // Forgotten once it was low for as long as it was held.
            self.hold = self.hold.filter(|(until, held)| now < until + held);
            return false;
        }
        if is_own {
            return true;
        }
        let held = self.hold.map_or(HOLD_NS, |(_, held)| held * 2);
        let held = held.min(LONGEST_HOLD_NS);
        self.hold = Some((now + held, held));
        true
    }
}

/// The host's CPU pressure, sampled on demand.
#[derive(Debug)]
pub(super) struct Pressure {
    /// None where the kernel does not tell.
    file: Option<File>,
    /// When to look again, in ns.
    next: AtomicU64,
    high: AtomicBool,
    /// There were more invocations at work than processors, since the last sample.
    is_own: AtomicBool,
    judge: Mutex<Judge>,
}

impl Pressure {
    pub(super) fn open() -> Self {
        Self {
            file: File::open("/proc/pressure/cpu").ok(),
            next: AtomicU64::new(0),
            high: AtomicBool::new(false),
            is_own: AtomicBool::new(false),
            judge: Mutex::default(),
        }
    }

    /// Whether work waits for a processor. Cheap: the last sample's answer, mostly. `is_own`: there are more invocations at work
    /// now than processors.
    pub(super) fn is_high(&self, is_own: bool) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        if is_own && !self.is_own.load(Ordering::Relaxed) {
            self.is_own.store(true, Ordering::Relaxed);
        }
        let now = monotonic_ns();
        if now >= self.next.load(Ordering::Relaxed)
            && let Some(mut judge) = self.judge.try_lock()
        {
            self.next.store(now + SAMPLE_NS, Ordering::Relaxed);
            let mut text = [0; 256];
            let waited = file
                .read_at(&mut text, 0)
                .ok()
                .and_then(|length| waited_us(&text[..length]));
            let is_own = self.is_own.swap(false, Ordering::Relaxed);
            let high = waited.is_some_and(|waited| judge.is_high(now, waited, is_own));
            self.high.store(high, Ordering::Relaxed);
        }
        self.high.load(Ordering::Relaxed)
    }
}

/// `total` of the line `some`.
fn waited_us(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The answers at each of `samples`, 50 ms apart, given as the percentage of time with tasks waiting.
    fn judged(judge: &mut Judge, from: u64, samples: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let mut waited = from / 1000;
        let said = samples.into_iter().enumerate().map(|(index, percent)| {
            waited += 500 * percent;
            judge.is_high(from + (index as u64 + 1) * 50 * MS, waited, false)
        });
        said.collect()
    }

    #[test]
    fn nobody_spins_while_others_wait_and_for_a_while_after() {
        let mut judge = Judge::default();
        // The first sample is only the beginning.
        assert_eq!(
            judged(&mut judge, 0, [99, 10, 79, 85]),
            [false, false, false, true]
        );
        let after = judged(&mut judge, 200 * MS, [0; 12]);
        assert_eq!(after.iter().filter(|high| **high).count(), 9, "{after:?}");
        assert!(!after[11]);
    }

    #[test]
    fn pressure_that_comes_back_is_held_longer_and_longer() {
        let mut judge = Judge::default();
        // It is always high, so each time that it is tried again ends in a longer pause.
        let said = judged(&mut judge, 0, [100; 20 * 60]);
        assert!(said[1..].iter().all(|high| *high));
        assert_eq!(judge.hold.map(|(_, held)| held), Some(LONGEST_HOLD_NS));
        // And after as long a calm all is forgotten.
        judged(&mut judge, 60_000 * MS, [0; 20 * 40]);
        assert_eq!(judge.hold, None);
    }

    #[test]
    fn a_sample_over_a_long_pause_says_nothing() {
        let mut judge = Judge::default();
        assert!(!judge.is_high(0, 0, false));
        assert!(!judge.is_high(5_000 * MS, 5_000_000, false));
        assert!(
            !judge.is_high(5_000 * MS, 5_000_000, false),
            "no time has passed"
        );
        assert!(
            !judge.is_high(4_000 * MS, 0, false),
            "a clock that goes back"
        );
    }

    #[test]
    fn pressure_of_ones_own_ends_when_it_does() {
        let mut judge = Judge::default();
        judge.is_high(0, 0, true);
        assert!(judge.is_high(500 * MS, 500_000, true));
        assert!(!judge.is_high(1_000 * MS, 510_000, false));
        // Others' stays, whatever is under way meanwhile.
        assert!(judge.is_high(1_500 * MS, 1_010_000, false));
        assert!(judge.is_high(1_750 * MS, 1_010_000, true));
        assert!(judge.is_high(1_900 * MS, 1_010_000, false));
    }

    #[test]
    fn the_kernels_file_is_read() {
        let text = b"some avg10=99.17 avg60=98.09 avg300=97.71 total=2068111378\nfull avg10=0.00 total=7\n";
        assert_eq!(waited_us(text), Some(2_068_111_378));
        for broken in [&b""[..], b"full total=1\n", b"some total=x\n", b"some \xff"] {
            assert_eq!(waited_us(broken), None);
        }
        let pressure = Pressure::open();
        // Whatever it says, it says it again without another look.
        assert_eq!(pressure.is_high(false), pressure.is_high(false));
    }
}
