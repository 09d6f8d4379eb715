//! Allow and deny lists.

use std::net::IpAddr;
use std::time::Duration;

use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::records::Drop;
use hearth_ebpf::{Ingress, MapError, Verdict};

use crate::can_run;
use crate::frames::{ACK, tcp, udp};
use crate::verdicts::{XDP_PASS, with_function};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn passes(ingress: &Ingress, from: &str) -> bool {
    let (from, to) = match address(from) {
        IpAddr::V4(_) => (format!("{from}:5000"), "192.0.2.2:7000"),
        IpAddr::V6(_) => (format!("[{from}]:5000"), "[2001:db8::2]:7000"),
    };
    let verdicts = [udp(&from, to), tcp(&from, to, ACK)]
        .map(|frame| ingress.test_run(&frame.bytes(), 1).expect("a run").0 == XDP_PASS);
    assert_eq!(verdicts[0], verdicts[1], "the lists hold for all packets");
    verdicts[0]
}

#[test]
fn a_list_holds_from_its_first_prefix_to_its_last() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    let all = [("192.0.2.1", 32), ("2001:db8::1", 128)];
    for (one, length) in all {
        // What the other family has does not matter, nor what is set meanwhile.
        for (other, other_length) in all {
            maps.lists
                .insert(address(other), other_length, Verdict::Deny, None)
                .expect("listed");
        }
        maps.set((24, 56), 2_048, false).expect("set");
        assert!(!passes(&ingress, one));
        maps.lists.remove(address(one), length).expect("removed");
        assert!(passes(&ingress, one));
        for (other, _) in all.iter().filter(|(other, _)| *other != one) {
            assert!(!passes(&ingress, other));
        }
    }
    assert!(maps.lists.remove(address("192.0.2.1"), 32).is_ok());
    assert!(maps.lists.remove(address("192.0.2.1"), 32).is_err());
    assert!(maps.lists.all().is_empty(), "{:?}", maps.lists.all());
}

#[test]
fn the_longest_prefix_decides() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    for (prefix, length, verdict) in [
        ("192.0.2.0", 24, Verdict::Deny),
        ("192.0.2.64", 26, Verdict::Allow),
        ("192.0.2.65", 32, Verdict::Deny),
        ("2001:db8::", 32, Verdict::Deny),
        ("2001:db8:7::", 48, Verdict::Allow),
        // An IPv4 address in IPv6's clothes is one.
        ("::ffff:198.51.100.1", 32, Verdict::Deny),
    ] {
        maps.lists
            .insert(address(prefix), length, verdict, None)
            .expect("listed");
    }
    for (from, passed) in [
        ("192.0.1.255", true),
        ("192.0.2.1", false),
        ("192.0.2.64", true),
        ("192.0.2.65", false),
        ("192.0.2.66", true),
        ("192.0.2.128", false),
        ("198.51.100.1", false),
        ("198.51.100.2", true),
        ("2001:db8:1::1", false),
        ("2001:db8:7::1", true),
        ("2001:db9::1", true),
    ] {
        assert_eq!(passes(&ingress, from), passed, "{from}");
    }
    assert_eq!(
        maps.functions.traffic(1).expect("counters")[0].drops[Drop::Denied as usize],
        2 * 5
    );
    assert_eq!(maps.lists.all().len(), 6);
    maps.lists
        .remove(address("192.0.2.0"), 24)
        .expect("removed");
    assert!(passes(&ingress, "192.0.2.1"));
    assert!(!passes(&ingress, "192.0.2.65"));
    maps.lists
        .remove(address("192.0.2.0"), 24)
        .expect_err("it is gone");
    maps.lists
        .insert(address("192.0.2.0"), 33, Verdict::Deny, None)
        .expect_err("too long");
}

#[test]
fn what_has_expired_gives_way_to_a_shorter_prefix() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    let past = Some(Duration::ZERO);
    let hour = Some(Duration::from_secs(3_600));
    maps.lists
        .insert(address("192.0.2.0"), 24, Verdict::Deny, hour)
        .expect("listed");
    maps.lists
        .insert(address("192.0.2.0"), 28, Verdict::Allow, past)
        .expect("listed");
    maps.lists
        .insert(address("192.0.2.1"), 32, Verdict::Allow, past)
        .expect("listed");
    maps.lists
        .insert(address("2001:db8::"), 32, Verdict::Deny, past)
        .expect("listed");
    maps.lists
        .insert(address("0.0.0.0"), 0, Verdict::Deny, past)
        .expect("listed");
    assert!(!passes(&ingress, "192.0.2.1"));
    assert!(passes(&ingress, "2001:db8::1"));
    assert!(passes(&ingress, "198.51.100.1"));
    assert_eq!(maps.lists.sweep().expect("swept"), 4);
    let left = maps.lists.all();
    assert_eq!(left.len(), 1);
    assert_eq!(
        (left[0].0, left[0].1, left[0].2),
        (address("192.0.2.0"), 24, Verdict::Deny)
    );
    assert!(left[0].3.is_some());
}

#[test]
fn who_is_allowed_is_not_limited() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    let one = Some(Rate { rate: 1, burst: 1 });
    maps.functions
        .limit(
            1,
            Limits {
                source: one,
                total: one,
                tracks_sources: false,
            },
        )
        .expect("limited");
    maps.lists
        .insert(address("192.0.2.1"), 32, Verdict::Allow, None)
        .expect("listed");
    for _ in 0..100 {
        assert!(passes(&ingress, "192.0.2.1"));
    }
}

#[test]
fn a_full_list_says_so() {
    if !can_run() {
        return;
    }
    let (_ingress, mut maps) = with_function();
    let mut last = Ok(());
    for host in 0..1_025_u32 {
        let address = IpAddr::from((0x0a00_0000 + host).to_be_bytes());
        last = maps.lists.insert(address, 32, Verdict::Deny, None);
    }
    assert!(matches!(last, Err(MapError::Full)), "{last:?}");
    // The other family has room of its own.
    maps.lists
        .insert(address("2001:db8::1"), 128, Verdict::Deny, None)
        .expect("listed");
}
