//! Token buckets. Rates are so low that no new token comes while a test runs.

use std::net::IpAddr;

use hearth_ebpf::Capacity;
use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::records::Drop;

use crate::frames::{ACK, Frame, SYN, tcp, udp};
use crate::verdicts::{XDP_DROP, XDP_PASS, with_function, with_function_and};
use crate::{SMALL, can_run};

const TO4: &str = "192.0.2.2:7000";
const TO6: &str = "[2001:db8::2]:7000";
/// Tokens a second.
const SLOW: u64 = 1;

fn burst(burst: u64) -> Option<Rate> {
    Some(Rate { rate: SLOW, burst })
}

/// How many of `count` such packets pass.
fn passed(ingress: &hearth_ebpf::Ingress, frame: &Frame, count: usize) -> usize {
    let frame = frame.bytes();
    (0..count)
        .filter(|_| match ingress.test_run(&frame, 1).expect("a run").0 {
            XDP_PASS => true,
            XDP_DROP => false,
            other => panic!("verdict {other}"),
        })
        .count()
}

#[test]
fn a_source_gets_its_burst_and_others_theirs() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    // A fifth of the tokens would be back after 200 s.
    let limits = Limits {
        source: burst(1_000),
        ..Limits::default()
    };
    maps.functions.limit(1, limits).expect("limited");
    for frame in [
        udp("192.0.2.1:5000", TO4),
        tcp("198.51.100.1:5000", TO4, SYN),
        udp("[2001:db8::1]:5000", TO6),
        udp("[2001:db8:0:1::1]:5000", TO6),
    ] {
        let got = passed(&ingress, &frame, 1_300);
        assert!((1_000..1_200).contains(&got), "{got} from {}", frame.source);
    }
    // The same /64 shares the bucket of an address in it; another port does, too.
    assert!(passed(&ingress, &udp("[2001:db8::ffff]:5001", TO6), 100) < 50);
    assert!(passed(&ingress, &udp("192.0.2.1:6000", TO4), 100) < 50);
    // What belongs to connections that exist always passes.
    assert_eq!(
        passed(&ingress, &tcp("198.51.100.1:5000", TO4, ACK), 100),
        100
    );
    let sources = maps.sources.all();
    assert_eq!(sources.len(), 4);
    let address: IpAddr = "192.0.2.1".parse().expect("an address");
    let (function, _, bucket) = sources
        .iter()
        .find(|(_, source, _)| *source == address)
        .expect("tracked");
    assert_eq!((*function, bucket.admitted + bucket.refused), (1, 1_400));
    assert!(bucket.refused >= 100 && bucket.refused_at > 0);
    let traffic = maps.functions.traffic(1).expect("counters")[0];
    let refused: u64 = sources.iter().map(|(.., bucket)| bucket.refused).sum();
    assert_eq!(traffic.drops[Drop::SourceLimit as usize], refused);
    assert_eq!(traffic.starts + refused, 4 * 1_300 + 200);
}

#[test]
fn prefixes_are_as_long_as_they_are_set() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    maps.set((24, 48), u32::MAX, false).expect("set");
    maps.functions
        .limit(
            1,
            Limits {
                source: burst(1_000),
                ..Limits::default()
            },
        )
        .expect("limited");
    assert_eq!(passed(&ingress, &udp("192.0.2.1:5000", TO4), 600), 600);
    assert!(passed(&ingress, &udp("192.0.2.200:5000", TO4), 600) < 550);
    assert_eq!(passed(&ingress, &udp("192.0.3.1:5000", TO4), 600), 600);
    assert_eq!(passed(&ingress, &udp("[2001:db8::1]:5000", TO6), 600), 600);
    assert!(passed(&ingress, &udp("[2001:db8:0:5::1]:5000", TO6), 600) < 550);
    assert_eq!(
        passed(&ingress, &udp("[2001:db8:1::1]:5000", TO6), 600),
        600
    );
}

#[test]
fn a_function_has_a_bucket_for_all_sources() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    maps.functions
        .limit(
            1,
            Limits {
                total: burst(100),
                ..Limits::default()
            },
        )
        .expect("limited");
    let got: usize = (1..=200)
        .map(|host| passed(&ingress, &udp(&format!("192.0.2.{host}:5000"), TO4), 1))
        .sum();
    assert!((100..150).contains(&got), "{got}");
    let traffic = maps.functions.traffic(1).expect("counters")[0];
    assert_eq!(traffic.drops[Drop::TotalLimit as usize], 200 - got as u64);
    // Sources are counted only where that was asked for.
    assert!(maps.sources.all().is_empty());
    // A function that gets the index later begins with a full bucket, and counters at 0.
    maps.functions
        .add(
            1,
            Limits {
                total: burst(100),
                tracks_sources: true,
                ..Limits::default()
            },
        )
        .expect("added");
    assert_eq!(maps.functions.traffic(1).expect("counters")[0].packets, 0);
    assert_eq!(passed(&ingress, &udp("192.0.2.1:5000", TO4), 100), 100);
    assert_eq!(maps.sources.all()[0].2.admitted, 100);
}

#[test]
fn more_sources_than_buckets_are_no_error() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    maps.functions
        .limit(
            1,
            Limits {
                source: burst(1),
                ..Limits::default()
            },
        )
        .expect("limited");
    let from = |source: u32| {
        format!(
            "10.{}.{}.{}:5000",
            source >> 16,
            source >> 8 & 0xff,
            source & 0xff
        )
    };
    let got: usize = (0..5_000)
        .map(|source| passed(&ingress, &udp(&from(source), TO4), 1))
        .sum();
    assert_eq!(got, 5_000);
    assert!(maps.sources.all().len() <= 1_024);
    assert_eq!(maps.node().expect("counters").untracked, 0);
    let maps = ingress.maps().expect("a report");
    let buckets = maps
        .iter()
        .find(|map| map.name == "sources")
        .expect("there");
    assert!(
        buckets
            .used
            .is_some_and(|used| used > 0 && used <= buckets.capacity),
        "{buckets:?}"
    );
}

/// What keeps a limit: a source that is at its limit is not forgotten for others that come once.
#[test]
fn a_flood_of_other_sources_does_not_give_a_source_its_tokens_back() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    let limits = Limits {
        source: burst(1_000),
        ..Limits::default()
    };
    maps.functions.limit(1, limits).expect("limited");
    let noisy = [udp("192.0.2.1:5000", TO4), udp("[2001:db8::1]:5000", TO6)];
    for frame in &noisy {
        assert!(passed(&ingress, frame, 1_300) >= 1_000);
    }
    // Five times what there is room for, each once: their buckets are full again a second later.
    for source in 0..5_000 {
        let (high, low) = (source >> 8, source & 0xff);
        passed(&ingress, &udp(&format!("10.0.{high}.{low}:5000"), TO4), 1);
    }
    for frame in &noisy {
        let got = passed(&ingress, frame, 200);
        assert!(got < 100, "{got} from {}", frame.source);
    }
    let sources = maps.sources.all();
    assert!(
        sources.len() > 1_000 && sources.len() <= 1_024,
        "{}",
        sources.len()
    );
    // One row a source.
    let distinct: std::collections::HashSet<_> = sources.iter().map(|row| row.1).collect();
    assert_eq!(distinct.len(), sources.len());
    assert!(sources.iter().all(|(.., source)| source.changing == 0));
}

#[test]
fn which_sources_share_a_set_differs_from_start_to_start() {
    if !can_run() {
        return;
    }
    let order = || {
        let (ingress, mut maps) = with_function();
        let limits = Limits {
            tracks_sources: true,
            ..Limits::default()
        };
        maps.functions.limit(1, limits).expect("limited");
        for host in 0..200 {
            passed(&ingress, &udp(&format!("192.0.2.{host}:5000"), TO4), 1);
        }
        let sources = maps.sources.all().into_iter();
        sources.map(|row| row.1).collect::<Vec<IpAddr>>()
    };
    let (one, other) = (order(), order());
    assert!(one.len() > 190 && other.len() > 190);
    assert_ne!(one, other);
}

/// A source that many processors meet first at once is one row, and gets no more than its tokens and one a processor.
#[test]
fn a_source_is_admitted_once_by_all_processors() {
    if !can_run() {
        return;
    }
    // With room, so that no five of them share a set: a row that makes room takes its counts with it.
    let (ingress, mut maps) = with_function_and(Capacity {
        sources: 65_536,
        ..SMALL
    });
    let limits = Limits {
        source: burst(10),
        ..Limits::default()
    };
    maps.functions.limit(1, limits).expect("limited");
    let threads = 4;
    let starts = std::sync::Barrier::new(threads);
    let got: usize = std::thread::scope(|scope| {
        let run = || {
            starts.wait();
            (0..200)
                .map(|host| passed(&ingress, &udp(&format!("192.0.2.{host}:5000"), TO4), 10))
                .sum::<usize>()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    let untracked = maps.node().expect("counters").untracked;
    let sources = maps.sources.all();
    let distinct: std::collections::HashSet<_> = sources.iter().map(|row| row.1).collect();
    assert_eq!(distinct.len(), sources.len());
    let counted: u64 = sources
        .iter()
        .map(|row| row.2.admitted + row.2.refused)
        .sum();
    assert_eq!(counted + untracked, 4 * 200 * 10);
    // 2,000 tokens, those of the seconds that passed, and what came while a set was being changed.
    assert!(
        got >= 2_000 && got as u64 <= 4_000 + untracked,
        "{got}, {untracked}"
    );
}

/// With one in a hundred keys, what is summed of neighbours differs in bits only that do not choose the set.
#[test]
fn neighbours_have_buckets_of_their_own_whatever_the_keys() {
    if !can_run() {
        return;
    }
    let (mut ingress, mut maps) = with_function();
    let limits = Limits {
        source: burst(10),
        ..Limits::default()
    };
    maps.functions.limit(1, limits).expect("limited");
    // An IPv4 address is the upper half of a word whose lower half is this.
    let mapped = 0xffff_0000_u64;
    let weak = [0, 0, (1_u64 << 28).wrapping_sub(mapped), 0, 0];
    ingress.test_keys(weak).expect("set");
    for host in 0..200 {
        passed(&ingress, &udp(&format!("192.0.2.{host}:5000"), TO4), 1);
    }
    let sources = maps.sources.all().len();
    assert!(sources > 190, "{sources} of 200 neighbours are known");
}

#[test]
fn indices_without_room_are_refused() {
    if !can_run() {
        return;
    }
    let (_ingress, mut maps) = with_function();
    let last = maps.functions.last();
    assert_eq!(last, 64);
    maps.functions.add(last, Limits::default()).expect("added");
    for index in [0, last + 1, u32::MAX] {
        maps.functions
            .add(index, Limits::default())
            .expect_err("refused");
        maps.functions.traffic(index).expect_err("refused");
    }
}
