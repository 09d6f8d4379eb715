//! The policy by hand and at random.

use proptest::prelude::*;

use super::*;

const ADA: Option<&str> = Some("ada");

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn fail(logins: &mut Logins, address: &str, account: &str, now: Instant) -> bool {
    logins.attempt(ip(address), Some(account), now).is_ok()
}

#[test]
fn an_account_is_tried_a_few_times_from_wherever() {
    let mut logins = Logins::default();
    let start = Instant::now();
    for last in 1..=BY_ACCOUNT.burst {
        assert!(fail(&mut logins, &format!("10.0.0.{last}"), "ada", start));
    }
    let wait = logins.attempt(ip("10.0.0.99"), ADA, start).unwrap_err();
    assert_eq!(wait, BY_ACCOUNT.every);
    // Other accounts are unaffected, and waiting that long helps.
    assert!(fail(&mut logins, "10.0.0.1", "bob", start));
    assert!(!fail(
        &mut logins,
        "10.0.0.1",
        "ada",
        start + wait - Duration::from_millis(1)
    ));
    assert!(fail(&mut logins, "10.0.0.1", "ada", start + wait));
    assert!(!fail(&mut logins, "10.0.0.1", "ada", start + wait));
}

#[test]
fn an_address_tries_so_many_accounts() {
    let mut logins = Logins::default();
    let now = Instant::now();
    for number in 0..BY_ADDRESS.burst {
        assert!(fail(
            &mut logins,
            "10.0.0.1",
            &format!("user-{number}"),
            now
        ));
    }
    assert!(!fail(&mut logins, "10.0.0.1", "one-more", now));
    assert!(!fail(&mut logins, "::ffff:10.0.0.1", "one-more", now));
    assert!(fail(&mut logins, "10.0.0.2", "one-more", now));
    assert_eq!(
        logins.attempt(ip("10.0.0.1"), None, now),
        Err(BY_ADDRESS.every)
    );
    // A client has a whole /64.
    for last in 0..BY_ADDRESS.burst {
        assert!(
            logins
                .attempt(ip(&format!("2001:db8:1:2::{last:x}")), None, now)
                .is_ok()
        );
    }
    assert!(
        logins
            .attempt(ip("2001:db8:1:2:ffff::1"), None, now)
            .is_err()
    );
    assert!(logins.attempt(ip("2001:db8:1:3::1"), None, now).is_ok());
}

#[test]
fn good_attempts_do_not_count() {
    let mut logins = Logins::default();
    let now = Instant::now();
    for _ in 0..10 * BY_ADDRESS.burst {
        assert!(fail(&mut logins, "10.0.0.1", "ada", now));
        logins.succeeded(ip("10.0.0.1"), ADA);
        assert!(logins.attempt(ip("10.0.0.1"), None, now).is_ok());
        logins.succeeded(ip("10.0.0.1"), None);
    }
}

#[test]
fn a_stranger_cannot_lock_a_user_out_of_where_they_are() {
    let mut logins = Logins::default();
    let now = Instant::now();
    assert!(fail(&mut logins, "10.0.0.1", "ada", now));
    logins.succeeded(ip("10.0.0.1"), ADA);
    while fail(&mut logins, "10.6.6.6", "ada", now) {}
    assert!(!fail(&mut logins, "10.0.0.2", "ada", now));
    assert!(fail(&mut logins, "10.0.0.1", "ada", now));
    // There, too, the number of failures is limited.
    while fail(&mut logins, "10.0.0.1", "ada", now) {}
    assert!(fail(&mut logins, "10.0.0.1", "bob", now));
}

#[test]
fn the_hardest_tried_key_is_kept_when_there_is_no_room() {
    let mut limiter = Limiter::new(BY_ACCOUNT, 3);
    let now = Instant::now();
    for _ in 0..BY_ACCOUNT.burst {
        limiter.count(&0, now);
    }
    for key in 1..1000 {
        limiter.count(&key, now);
    }
    assert_eq!(limiter.len(), 3);
    assert!(limiter.check(&0, now).is_err());
    limiter.count(&1000, now + Duration::from_secs(3600));
    assert_eq!(limiter.len(), 1);
    limiter.forget(&1000);
    assert!(limiter.is_empty());
}

proptest! {
    /// In any stretch of time no more attempts pass than the quota grants, a refused one passes after the given
    /// wait and not before, and the keys stay bounded.
    #[test]
    fn a_quota_holds_over_every_stretch(
        burst in 1_u32..6,
        every_ms in 1_u64..5_000,
        steps in prop::collection::vec((0_u64..4_000, 0_u8..4), 1..120),
    ) {
        let every = Duration::from_millis(every_ms);
        let mut limiter = Limiter::new(Quota { burst, every }, 4);
        let start = Instant::now();
        let mut now = start;
        let mut passed: Vec<Vec<Instant>> = vec![Vec::new(); 4];
        for (pause, key) in steps {
            now += Duration::from_millis(pause);
            match limiter.check(&key, now) {
                Ok(()) => {
                    limiter.count(&key, now);
                    passed[usize::from(key)].push(now);
                }
                Err(wait) => {
                    prop_assert!(wait <= every);
                    prop_assert!(limiter.check(&key, now + wait).is_ok());
                    prop_assert!(limiter.check(&key, now + wait - Duration::from_nanos(1)).is_err());
                }
            }
            prop_assert!(limiter.len() <= 4);
        }
        for times in passed {
            for (first, from) in times.iter().enumerate() {
                for (last, to) in times.iter().enumerate().skip(first) {
                    let stretch = to.duration_since(*from).as_nanos();
                    let granted = u128::from(burst) + stretch / every.as_nanos();
                    prop_assert!((last - first + 1) as u128 <= granted);
                }
            }
        }
    }

    /// Nothing that is tried makes the state grow without end.
    #[test]
    fn logins_stay_bounded(attempts in prop::collection::vec((any::<u32>(), "[a-z]{0,80}", any::<bool>()), 0..200)) {
        let mut logins = Logins::default();
        let now = Instant::now();
        for (address, account, good) in attempts {
            let address = IpAddr::from(address.to_be_bytes());
            if logins.attempt(address, Some(&account), now).is_ok() && good {
                logins.succeeded(address, Some(&account));
            }
        }
        prop_assert!(logins.addresses.len() <= MAX_KEYS && logins.accounts.len() <= MAX_KEYS);
        prop_assert!(logins.known.len() <= MAX_KNOWN);
    }
}
