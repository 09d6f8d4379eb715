//! The corpus by `BPF_PROG_TEST_RUN`, what is counted, and what the programs cost.

use hearth_ebpf::limits::Limits;
use hearth_ebpf::packet::{Outcome, TCP, UDP};
use hearth_ebpf::records::{Drop, Node, Traffic};
use hearth_ebpf::{Capacity, Ingress, Maps, Redirect};
use hearth_testkit::skipped::skip;

use crate::corpus::{self, Expected};
use crate::frames::{ACK, SYN, tcp, udp};
use crate::{SMALL, can_run, load, load_with};

pub const XDP_DROP: u32 = 1;
pub const XDP_PASS: u32 = 2;

/// Function 1 with the ports of the corpus.
pub fn with_function() -> (Ingress, Maps) {
    with_function_and(SMALL)
}

/// The same, with room for so many.
pub fn with_function_and(capacity: Capacity) -> (Ingress, Maps) {
    let (ingress, mut maps) = load_with(capacity);
    maps.functions.add(1, Limits::default()).expect("added");
    maps.ports.give_tcp(7000, 1, false).expect("given");
    maps.ports.give_udp(7000, 1, false).expect("given");
    (ingress, maps)
}

/// What changed in the counters has to be this packet, once, and nothing else.
pub fn check_counted(
    name: &str,
    bytes: usize,
    expected: Expected,
    before: (Node, Traffic),
    after: (Node, Traffic),
) {
    let (mut node, mut traffic) = before;
    let bytes = bytes as u64;
    node.bytes += bytes;
    let outcome = if let Expected::Unread(outcome) = expected {
        outcome
    } else {
        Outcome::Ports
    };
    node.outcomes[outcome as usize] += 1;
    match expected {
        Expected::Ours | Expected::Malformed => {
            node.ours += 1;
            traffic.packets += 1;
            traffic.bytes += bytes;
        }
        Expected::NotOurs | Expected::Unread(_) => {}
    }
    if expected == Expected::Malformed {
        traffic.drops[Drop::Malformed as usize] += 1;
    }
    // What starts work is told apart in a test of its own.
    traffic.starts = after.1.starts;
    assert_eq!((node, traffic), after, "{name}");
}

#[test]
fn every_packet_of_the_corpus_gets_its_verdict_and_is_counted_once() {
    if !can_run() {
        return;
    }
    let (ingress, maps) = with_function();
    let cases = corpus::cases();
    assert!(cases.len() > 2_000, "{}", cases.len());
    let counters = || {
        (
            maps.node().expect("counters"),
            maps.functions.traffic(1).expect("counters")[0],
        )
    };
    for case in &cases {
        let before = counters();
        let (verdict, _) = ingress.test_run(&case.frame, 1).expect("a run");
        let wanted = if case.expected == Expected::Malformed {
            XDP_DROP
        } else {
            XDP_PASS
        };
        assert_eq!(verdict, wanted, "{}", case.name);
        check_counted(
            &case.name,
            case.frame.len(),
            case.expected,
            before,
            counters(),
        );
    }
}

#[test]
fn only_syns_and_datagrams_count_as_starts() {
    if !can_run() {
        return;
    }
    let (ingress, maps) = with_function();
    let (from, to) = ("192.0.2.1:5000", "192.0.2.2:7000");
    for (frame, starts) in [
        (udp(from, to), 1),
        (tcp(from, to, SYN), 2),
        (tcp(from, to, SYN | ACK), 2),
        (tcp(from, to, ACK), 2),
        (tcp(from, to, ACK | 1), 2),
    ] {
        ingress.test_run(&frame.bytes(), 1).expect("a run");
        assert_eq!(
            maps.functions.traffic(1).expect("counters")[0].starts,
            starts
        );
    }
}

#[test]
fn a_port_belongs_to_one_protocol_and_can_be_taken_back() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    maps.ports.take(TCP, 7000).expect("taken");
    assert_eq!(maps.ports.owner(TCP, 7000).expect("read"), None);
    assert_eq!(maps.ports.owner(UDP, 7000).expect("read"), Some(1));
    let (from, to) = ("192.0.2.1:5000", "192.0.2.2:7000");
    ingress
        .test_run(&tcp(from, to, SYN).bytes(), 1)
        .expect("a run");
    assert_eq!(maps.node().expect("counters").not_ours(), 1);
    ingress.test_run(&udp(from, to).bytes(), 1).expect("a run");
    assert_eq!(maps.functions.traffic(1).expect("counters")[0].packets, 1);
}

#[test]
fn packets_to_other_hosts_are_not_ours() {
    if !can_run() {
        return;
    }
    let (ingress, mut maps) = with_function();
    maps.set((32, 64), u32::MAX, true).expect("set");
    let addresses =
        ["192.0.2.2", "2001:db8::2"].map(|address| address.parse().expect("an address"));
    maps.addresses.replace(&addresses).expect("replaced");
    for (from, to, ours) in [
        ("192.0.2.1:5000", "192.0.2.2:7000", 1),
        ("192.0.2.1:5000", "192.0.2.3:7000", 1),
        ("[2001:db8::1]:5000", "[2001:db8::2]:7000", 2),
        ("[2001:db8::1]:5000", "[2001:db8::3]:7000", 2),
    ] {
        ingress.test_run(&udp(from, to).bytes(), 1).expect("a run");
        assert_eq!(
            maps.functions.traffic(1).expect("counters")[0].packets,
            ours,
            "{to}"
        );
    }
    maps.addresses.replace(&addresses[1..]).expect("replaced");
    ingress
        .test_run(&udp("192.0.2.1:5000", "192.0.2.2:7000").bytes(), 1)
        .expect("a run");
    assert_eq!(maps.functions.traffic(1).expect("counters")[0].packets, 2);
}

/// Instructions that the verifier of Linux 6.18 processed for each program, of the 1,000,000 that it may.
const COSTS: [(&str, u32); 5] = [
    ("ingress", 52_597),
    ("egress", 39_785),
    ("steer", 119),
    ("redirect_xdp", 271),
    ("redirect_tc", 242),
];

#[test]
fn the_verifier_does_not_have_to_work_hard() {
    if !can_run() {
        return;
    }
    let (ingress, _) = load();
    let redirect = Redirect::load().expect("loaded");
    let programs: Vec<_> = ingress
        .programs()
        .iter()
        .chain(redirect.programs())
        .collect();
    assert_eq!(programs.len(), COSTS.len());
    for (name, recorded) in COSTS {
        let program = programs
            .iter()
            .find(|program| program.name == name)
            .expect("the program");
        let loaded = program.loaded.as_ref().expect("loaded");
        let Some(cost) = loaded.verified_instructions else {
            skip("the kernel does not say what the verifier processed");
            return;
        };
        // Kernels differ by a little; a change of a program that costs more than that is to be seen.
        let most = recorded + recorded / 4;
        assert!(
            cost > 0 && cost <= most,
            "{name}: {cost}, recorded are {recorded}"
        );
    }
}
