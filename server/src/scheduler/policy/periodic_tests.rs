//! Units and properties of the rhythm.

use proptest::prelude::*;

use super::*;

const IDLE: Duration = Duration::from_secs(300);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const LEAD: Duration = Duration::from_secs(1);

/// A rhythm of calls these seconds apart, and the time of the last.
fn called(gaps: &[u64]) -> (Rhythm, Instant) {
    let mut rhythm = Rhythm::new(IDLE);
    let mut at = Instant::now();
    rhythm.call(at);
    for gap in gaps {
        at += Duration::from_secs(*gap);
        rhythm.call(at);
    }
    (rhythm, at)
}

#[test]
fn a_regular_caller_finds_an_instance() {
    let (mut rhythm, mut at) = called(&[600, 601, 599]);
    for _ in 0..5 {
        let window = rhythm.next().expect("it is regular");
        assert!(window.from <= at + TEN_MINUTES && at + TEN_MINUTES <= window.until);
        assert_eq!(rhythm.step(window.from - LEAD * 2, LEAD), Step::None);
        assert_eq!(rhythm.step(window.from - LEAD, LEAD), Step::Hold(window));
        assert_eq!(rhythm.step(window.until, LEAD), Step::None, "held already");
        at += TEN_MINUTES;
        assert!(rhythm.call(at), "it was held for this call");
        assert!(!rhythm.call(at + LEAD), "and not for the next one");
    }
}

#[test]
fn who_does_not_come_is_given_up() {
    let (mut rhythm, at) = called(&[600, 600, 600]);
    for round in 1..=2 {
        let window = rhythm.next().expect("still expected");
        assert!(window.until > at + TEN_MINUTES * round, "the next in turn");
        assert_eq!(rhythm.step(window.from, LEAD), Step::Hold(window));
        assert_eq!(rhythm.step(window.until + LEAD, LEAD), Step::Missed);
    }
    assert_eq!(rhythm.next(), None);
    assert_eq!(rhythm.step(at + TEN_MINUTES * 3, LEAD), Step::None);
}

#[test]
fn one_stray_gap_does_not_matter_and_disorder_does() {
    assert!(called(&[600, 1200, 600, 600]).0.next().is_some());
    assert!(called(&[600, 900, 1500, 400, 2200]).0.next().is_none());
    assert!(called(&[600, 600]).0.next().is_none(), "too early to say");
}

#[test]
fn bursts_are_visits() {
    let (rhythm, at) = called(&[598, 1, 1, 598, 1, 1, 598, 1, 1]);
    let window = rhythm.next().expect("every ten minutes");
    let expected = at + Duration::from_secs(598);
    assert!(window.from <= expected && expected <= window.until);
}

#[test]
fn who_is_never_cold_needs_nothing() {
    assert_eq!(called(&[200, 200, 200, 200]).0.next(), None);
    assert_eq!(called(&[1, 1, 1, 1, 1]).0.next(), None);
}

#[test]
fn a_new_version_goes_on_with_the_rhythm() {
    let (rhythm, _) = called(&[600, 600, 600]);
    assert!(rhythm.continued(IDLE).next().is_some());
    assert!(rhythm.continued(IDLE * 4).next().is_none());
}

proptest! {
    /// Whatever the calls: nothing is held twice for one window, every hold ends in a hit or a miss, and no window lies
    /// in the past of the call it is learned from.
    #[test]
    fn every_hold_ends(gaps in prop::collection::vec(1_u64..3000, 0..60), tick in 1_u64..40) {
        let mut rhythm = Rhythm::new(IDLE);
        let mut now = Instant::now();
        let mut holds = 0_i64;
        rhythm.call(now);
        for gap in gaps {
            let call = now + Duration::from_secs(gap);
            while now + Duration::from_secs(tick) < call {
                now += Duration::from_secs(tick);
                match rhythm.step(now, LEAD) {
                    Step::Hold(window) => {
                        holds += 1;
                        prop_assert!(window.from < window.until && now <= window.until);
                    }
                    Step::Missed => holds -= 1,
                    Step::None => {}
                }
                prop_assert!((0..=1).contains(&holds));
            }
            now = call;
            if rhythm.call(now) {
                holds -= 1;
            }
            prop_assert_eq!(holds, 0, "a call ends the hold");
        }
    }

    /// A caller of any period beyond the idle timeout, with a jitter of 2 %, is met from the fourth call on.
    #[test]
    fn periodic_callers_are_met(
        period in 320_u64..100_000, jitter in prop::collection::vec(-20_i64..20, 4..20),
    ) {
        let mut rhythm = Rhythm::new(IDLE);
        let start = Instant::now();
        let mut met = 0;
        for (number, jitter) in jitter.iter().enumerate() {
            let millis = period as i64 * 1000 * (number as i64 + 1) + period as i64 * jitter;
            let at = start + Duration::from_millis(millis as u64);
            if let Some(window) = rhythm.next() {
                rhythm.step(window.from, LEAD);
            }
            met += usize::from(rhythm.call(at));
        }
        prop_assert!(met + 8 >= jitter.len(), "{met} of {}", jitter.len());
    }
}
