//! The fast way's programs, by `BPF_PROG_TEST_RUN`: what begins there, what does not, and how packets are rewritten.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hearth_ebpf::clock;
use hearth_ebpf::gateway::records::Ways;
use hearth_ebpf::gateway::{Connected, Connection, Event, Gateway, Limits, Policy, TEST_SLOT};

use crate::can_run;
use crate::frames::{self, ACK, Frame, SYN};

const NEXT: i32 = -1;
const DROP: i32 = 2;
const REDIRECT: i32 = 7;
/// `MARK_BEGUN` of gateway.h.
const MARK_BEGUN: u32 = 5;
const RST: u8 = 4;
const FIN: u8 = 1;
const GROUP: u32 = 3;
/// Of the sandbox with the slot of these tests (3097), of a destination, and of the host on the way there.
const FAMILIES: [[&str; 3]; 2] = [
    ["198.19.12.25:40000", "93.184.216.34:443", "192.0.2.7"],
    [
        "[fd00::c613:c19]:40000",
        "[2606:2800::34]:443",
        "2001:db8::7",
    ],
];

/// To the loopback's own hardware address: others are not the host's.
fn tcp(source: &str, destination: &str, flags: u8) -> Frame {
    Frame {
        to: [0; 6],
        ..frames::tcp(source, destination, flags)
    }
}

fn gateway(policy: &Policy) -> Gateway {
    let mut gateway = Gateway::load().expect("loaded");
    gateway
        .connect(Connected {
            interface: 1,
            host: 1,
            first4: "198.19.0.0".parse().expect("an address"),
            first6: "fd00::".parse().expect("an address"),
        })
        .expect("connected");
    gateway
        .limit(GROUP, Limits::default(), true)
        .expect("limits");
    gateway.pause(TEST_SLOT, GROUP).expect("known");
    gateway.set_policy(TEST_SLOT, policy).expect("a policy");
    gateway.open(&(32_768..=60_999)).expect("opened");
    for [_, to, host] in FAMILIES {
        let to: SocketAddr = to.parse().expect("an address");
        let host = host.parse().expect("an address");
        let until = clock::after(Duration::from_secs(60));
        gateway.test_route(to.ip(), host, until).expect("a route");
    }
    gateway
}

fn internet() -> Policy {
    Policy {
        internet: true,
        ..Policy::default()
    }
}

fn out(gateway: &Gateway, frame: &Frame) -> (i32, Vec<u8>) {
    gateway
        .test_run("from_sandbox", &frame.bytes())
        .expect("a run")
}

fn verdict(gateway: &Gateway, frame: &Frame) -> i32 {
    out(gateway, frame).0
}

/// The source of a frame.
fn source(bytes: &[u8]) -> SocketAddr {
    let (address, ports): (IpAddr, usize) = match bytes[12] {
        8 => (
            <[u8; 4]>::try_from(&bytes[26..30]).expect("four").into(),
            34,
        ),
        _ => (
            <[u8; 16]>::try_from(&bytes[22..38])
                .expect("sixteen")
                .into(),
            54,
        ),
    };
    let port = u16::from_be_bytes([bytes[ports], bytes[ports + 1]]);
    (address, port).into()
}

#[test]
fn a_connection_gets_an_address_and_a_port_of_the_host_and_back() {
    if !can_run() {
        return;
    }
    let mut gateway = gateway(&internet());
    for [own, to, host] in FAMILIES {
        let syn = tcp(own, to, SYN);
        let (verdict, rewritten) = out(&gateway, &syn);
        assert_eq!(verdict, REDIRECT, "{to}");
        let on_host = source(&rewritten);
        assert_eq!(on_host.ip().to_string(), host);
        let port = on_host.port();
        assert!((16_384..32_768).contains(&port) || port > 60_999, "{port}");
        // As if it had been sent so, one hop later: with the right checksums.
        let mut expected = tcp(&on_host.to_string(), to, SYN).bytes();
        one_hop_less(&mut expected);
        assert_eq!(rewritten, expected, "{to}");
        // What belongs to it has the same port.
        let (_, more) = out(&gateway, &tcp(own, to, ACK));
        assert_eq!(source(&more), on_host);
        // And back; not from elsewhere, nor to another port.
        let back = |from: &str, to: SocketAddr| {
            let frame = tcp(from, &to.to_string(), ACK).bytes();
            gateway.test_run("from_world", &frame).expect("a run")
        };
        let (verdict, came) = back(to, on_host);
        assert_eq!((verdict, came), (REDIRECT, tcp(to, own, ACK).bytes()));
        let elsewhere = to.replace(":443", ":444");
        assert_eq!(back(&elsewhere, on_host).0, NEXT);
        let other = (on_host.ip(), if port == 61_000 { 61_001 } else { 61_000 });
        assert_eq!(back(to, other.into()).0, NEXT);
    }
    assert_eq!(gateway.open_connections(GROUP), 2);
    let sums = gateway.sums(TEST_SLOT).expect("sums");
    assert_eq!((sums.packets, sums.connections), ([4, 2], 2));
    assert_eq!(gateway.ways().expect("ways").fast, 2);
    let mut told = Vec::new();
    let all = gateway.cut(|_| true, |event| told.push(event));
    assert_eq!(all.expect("cut").len(), 2);
    assert_eq!(gateway.open_connections(GROUP), 0);
    let begun: Vec<_> = told
        .iter()
        .filter(|event| matches!(event, Event::Begun(_)))
        .collect();
    let over = |event: &&Event| {
        matches!(
            event,
            Event::Over(Connection { port: 443, .. }, 90..=150, 45..=75)
        )
    };
    assert_eq!(
        (begun.len(), told.iter().filter(over).count()),
        (2, 2),
        "{told:?}"
    );
    for [own, to, _] in FAMILIES {
        assert_eq!(
            verdict(&gateway, &tcp(own, to, ACK)),
            NEXT,
            "the rules answer"
        );
    }
}

fn one_hop_less(frame: &mut [u8]) {
    if frame[12] == 8 {
        frame[22] -= 1;
        let check = u16::from_be_bytes([frame[24], frame[25]]);
        let (mut sum, carried) = check.overflowing_add(0x0100);
        sum += u16::from(carried);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    } else {
        frame[21] -= 1;
    }
}

#[test]
fn what_is_not_plainly_allowed_is_left_to_the_rules() {
    if !can_run() {
        return;
    }
    for [own, to, _] in FAMILIES {
        let to: SocketAddr = to.parse().expect("an address");
        let syn = tcp(own, &to.to_string(), SYN);
        let host = (to.ip(), if to.is_ipv4() { 32 } else { 128 });
        let around = (to.ip(), 16);
        let everything = (
            if to.is_ipv4() { "0.0.0.0" } else { "::" }
                .parse()
                .expect("an address"),
            0,
        );
        let network = |network, ports| Policy {
            networks: vec![(network, ports)],
            ..Policy::default()
        };
        let name = |port, until| Policy {
            names: vec![(to.ip(), port, until)],
            ..Policy::default()
        };
        let later = clock::after(Duration::from_secs(60));
        for (what, policy, is_allowed) in [
            ("nothing", Policy::default(), false),
            ("the internet", internet(), true),
            ("the address", network(host, 443..=443), true),
            ("a range of ports", network(around, 1..=1000), true),
            ("every network", network(everything, 443..=443), true),
            ("another port", network(host, 444..=444), false),
            (
                "the other family",
                network(other_family(&to), 443..=443),
                false,
            ),
            ("a name", name(443, later), true),
            ("a name, all ports", name(0, later), true),
            ("a name, another port", name(80, later), false),
            ("a name that has expired", name(443, clock::now()), false),
        ] {
            let gateway = gateway(&policy);
            let expected = if is_allowed { REDIRECT } else { NEXT };
            assert_eq!(verdict(&gateway, &syn), expected, "{what}: {to}");
        }
        // With everything allowed: packets that begin nothing, or are not plain, or are not this sandbox's.
        let gateway = gateway(&internet());
        let forged = own
            .replace("198.19.12.25", "198.19.12.26")
            .replace("c19]", "c1a]");
        let changed = |change: fn(&mut Frame)| {
            let mut frame = syn.clone();
            change(&mut frame);
            frame
        };
        for (what, frame) in [
            ("no SYN", tcp(own, &to.to_string(), ACK)),
            ("an answer", tcp(own, &to.to_string(), SYN | ACK)),
            ("a datagram", frames::udp(own, &to.to_string())),
            ("forged", tcp(&forged, &to.to_string(), SYN)),
            (
                "options",
                changed(|frame| frame.ipv4_options = usize::from(frame.source.is_ipv4())),
            ),
            (
                "a fragment",
                changed(|frame| frame.fragment = if frame.source.is_ipv4() { 0x2000 } else { 0 }),
            ),
        ] {
            let is_plain = !to.is_ipv4() && ["options", "a fragment"].contains(&what);
            assert_eq!(verdict(&gateway, &frame) == NEXT, !is_plain, "{what}: {to}");
        }
        let unseen = to.to_string().replace("34", "35");
        assert_eq!(verdict(&gateway, &tcp(own, &unseen, SYN)), NEXT);
        assert_eq!(gateway.ways().expect("ways").route, 1);
    }
}

fn other_family(to: &SocketAddr) -> (IpAddr, u8) {
    let all = if to.is_ipv4() { "::" } else { "0.0.0.0" };
    (all.parse().expect("an address"), 0)
}

#[test]
fn what_begins_after_a_look_at_nothing_is_told() {
    if !can_run() {
        return;
    }
    let mut gateway = gateway(&internet());
    let told = |gateway: &mut Gateway| {
        let mut events = Vec::new();
        gateway.tick(|event| events.push(event)).expect("a tick");
        events
    };
    let [own, to, _] = FAMILIES[0];
    for port in [1, 2] {
        for _ in 0..4 {
            assert_eq!(told(&mut gateway), []);
        }
        let syn = tcp(&own.replace("40000", &port.to_string()), to, SYN);
        assert_eq!(verdict(&gateway, &syn), REDIRECT);
        let begun: Vec<_> = (0..4).flat_map(|_| told(&mut gateway)).collect();
        assert!(matches!(begun[..], [Event::Begun(_)]), "{begun:?}");
        gateway.cut(|_| true, |_| ()).expect("cut");
    }
}

#[test]
fn limits_hold_and_what_ends_makes_room() {
    if !can_run() {
        return;
    }
    let mut gateway = gateway(&internet());
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    gateway.limit(GROUP, limits, false).expect("limits");
    let [own, to, _] = FAMILIES[0];
    let from = |port: u16, flags| tcp(&own.replace("40000", &port.to_string()), to, flags);
    let begun = |gateway: &Gateway, port| verdict(gateway, &from(port, SYN)) == REDIRECT;
    assert!(begun(&gateway, 1) && begun(&gateway, 2) && !begun(&gateway, 3));
    assert!(begun(&gateway, 1), "the same again is no other");
    assert_eq!(verdict(&gateway, &from(1, RST)), REDIRECT);
    assert_eq!(gateway.open_connections(GROUP), 1);
    assert!(begun(&gateway, 3) && !begun(&gateway, 4));
    assert!(
        !begun(&gateway, 1),
        "its port is used again, and there is no room"
    );
    // An end in each direction.
    let (_, out) = out(&gateway, &from(2, ACK | FIN));
    assert!(!begun(&gateway, 4));
    let answer = tcp(to, &source(&out).to_string(), ACK | FIN);
    // Near what was acknowledged, which is 0.
    gateway
        .test_run("from_world", &answer.bytes())
        .expect("a run");
    assert!(begun(&gateway, 4));
    // So many a second.
    let limits = Limits {
        new_per_second: 3,
        ..Limits::default()
    };
    gateway.limit(GROUP, limits, false).expect("limits");
    let many = (100..200).filter(|port| begun(&gateway, *port)).count();
    assert!((3..30).contains(&many), "{many}");
    let Ways { limit, .. } = gateway.ways().expect("ways");
    assert_eq!(
        limit,
        104 - many as u64,
        "those of the count and those of the rate"
    );
    // So many bytes a second: less than two seconds' and a burst.
    let limits = Limits {
        bytes_per_second: 1000,
        ..Limits::default()
    };
    gateway.limit(GROUP, limits, false).expect("limits");
    let mut large = from(4, ACK);
    large.payload = vec![0; 1400];
    let passed = (0..1000).filter(|_| verdict(&gateway, &large) == REDIRECT);
    assert!((300..500).contains(&passed.count()));
    assert_eq!(verdict(&gateway, &large), DROP);
}

/// A sandbox uses a port again while its policy is changing, or its limit was reached a moment ago: the rules let it begin.
#[test]
fn what_the_rules_begin_again_is_theirs() {
    if !can_run() {
        return;
    }
    let mut gateway = gateway(&internet());
    for [own, to, _] in FAMILIES {
        let sent = |gateway: &Gateway, flags| out(gateway, &tcp(own, to, flags));
        let back = |gateway: &Gateway, old: &[u8], flags| {
            let frame = tcp(to, &source(old).to_string(), flags).bytes();
            gateway.test_run("from_world", &frame).expect("a run").0
        };
        let (verdict, syn) = sent(&gateway, SYN);
        assert_eq!(verdict, REDIRECT);
        assert_eq!(sent(&gateway, ACK | FIN).0, REDIRECT);
        assert_eq!(back(&gateway, &syn, ACK | FIN), REDIRECT);
        assert_eq!(gateway.open_connections(GROUP), 0);

        gateway.pause(TEST_SLOT, GROUP).expect("paused");
        assert_eq!(sent(&gateway, SYN).0, NEXT);
        let frame = tcp(own, to, SYN).bytes();
        let accepted = gateway.test_run_marked("to_host", &frame, MARK_BEGUN);
        assert_eq!(accepted.expect("a run").0, NEXT);
        assert_eq!(gateway.open_connections(GROUP), 1);
        gateway.set_policy(TEST_SLOT, &internet()).expect("set");
        // Neither its next packets nor another SYN go where the world does not know it.
        assert_eq!((sent(&gateway, ACK).0, sent(&gateway, SYN).0), (NEXT, NEXT));
        assert_eq!(back(&gateway, &syn, ACK), NEXT);
        assert_eq!(sent(&gateway, RST).0, NEXT);
        assert_eq!(gateway.open_connections(GROUP), 0);
    }
}

#[test]
fn forged_ends_end_nothing() {
    if !can_run() {
        return;
    }
    let gateway = gateway(&internet());
    let [own, to, _] = FAMILIES[0];
    let sent = |flags| verdict(&gateway, &tcp(own, to, flags));
    let is_open = || gateway.open_connections(GROUP) == 1;
    let (_, syn) = out(&gateway, &tcp(own, to, SYN));
    assert_eq!(sent(ACK), REDIRECT);
    let reset = |sequence: u32| {
        let mut frame = tcp(to, &source(&syn).to_string(), RST).bytes();
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        let (verdict, _) = gateway.test_run("from_world", &frame).expect("a run");
        assert_eq!(verdict, REDIRECT, "the sandbox judges it, too");
    };
    // Far from what was acknowledged, which is 0.
    reset(1 << 30);
    assert!(is_open());
    // Near: it is over, unless the sandbox goes on.
    reset(1000);
    assert!(!is_open());
    assert_eq!(sent(ACK), REDIRECT);
    assert!(is_open());
    // The sandbox's own, which the world may not believe: nothing but resets follows.
    assert_eq!(sent(RST), REDIRECT);
    assert!(!is_open());
    assert_eq!(
        (sent(ACK), sent(ACK | FIN), sent(RST)),
        (NEXT, NEXT, REDIRECT)
    );
    assert!(!is_open());
    // Flags that begin nothing.
    for flags in [0, SYN | ACK, SYN | RST, SYN | FIN, FIN, RST, 0xff] {
        let port = |port: &str| tcp(&own.replace("40000", port), to, flags);
        assert_eq!(verdict(&gateway, &port("40001")), NEXT, "{flags:x}");
    }
    assert!(!is_open());
}
