//! The corpus over a veth, in the driver and in the stack.

use hearth_ebpf::packet::{Outcome, UDP};
use hearth_ebpf::records::{Node, Traffic};
use hearth_ebpf::{Mode, Wanted};
use hearth_testkit::skipped::skip;

use crate::can_run;
use crate::corpus::{self, Expected};
use crate::frames::{Frame, udp};
use crate::network::{PATIENCE, Tap, Wire};
use crate::verdicts::with_function;

/// Outcomes that no packet of the kernel's own has.
const STRANGE: [Outcome; 4] = [
    Outcome::Fragment,
    Outcome::Truncated,
    Outcome::BadHeader,
    Outcome::TooDeep,
];

/// The stack drops a frame whose VLAN tag is cut off before anybody can see it, whatever the program said.
fn reaches_no_tap(frame: &[u8]) -> bool {
    let is_tagged = matches!(frame[12..14], [0x81, 0x00] | [0x88, 0xa8]);
    is_tagged && frame.len() < 20
}

/// Sends each packet, and one behind it that always passes: what arrived before that one, passed.
fn corpus_over(mode: Mode) {
    if !can_run() {
        return;
    }
    let wire = Wire::new();
    let (mut ingress, mut maps) = with_function();
    let not_counting_sent = wire.host.run(|| {
        let attachment = ingress.attach("h0", Wanted::Only(mode)).expect("attached");
        assert_eq!(attachment.mode, mode);
        attachment.not_counting_sent.clone()
    });
    // Until here, the kernel's own packets were counted.
    maps.functions
        .add(1, hearth_ebpf::limits::Limits::default())
        .expect("added");
    assert_eq!(maps.ports.owner(UDP, 7000).expect("read"), Some(1));
    let (sender, receiver) = (Tap::new(&wire.client, "c0"), Tap::new(&wire.host, "h0"));
    let cases = corpus::cases();
    let (mut expected_traffic, mut passed, mut dropped) = (Traffic::default(), 0, 0);
    let mut outcomes = Node::default().outcomes;
    for (number, case) in cases.iter().enumerate() {
        let marker = Frame {
            payload: (number as u64).to_be_bytes().to_vec(),
            ..udp("192.0.2.1:1", "192.0.2.2:9")
        };
        let marker = marker.bytes();
        sender.send(&case.frame);
        sender.send(&marker);
        let mut before = 0;
        loop {
            let frame = receiver
                .receive(PATIENCE)
                .unwrap_or_else(|| panic!("{}: nothing came after it", case.name));
            if frame == marker {
                break;
            }
            before += 1;
        }
        let is_dropped = case.expected == Expected::Malformed;
        let wanted = usize::from(!is_dropped && !reaches_no_tap(&case.frame));
        assert_eq!(before, wanted, "{}", case.name);
        passed += before;
        dropped += usize::from(is_dropped);
        if let Expected::Unread(outcome) = case.expected {
            outcomes[outcome as usize] += 1;
        }
        if matches!(case.expected, Expected::Ours | Expected::Malformed) {
            expected_traffic.packets += 1;
            expected_traffic.bytes += case.frame.len() as u64;
        }
    }
    assert!(
        passed > 10_000 && dropped > 200,
        "{passed} passed, {dropped} were dropped"
    );
    let [received, sent] = maps.functions.traffic(1).expect("counters");
    assert_eq!(
        (received.packets, received.bytes),
        (expected_traffic.packets, expected_traffic.bytes)
    );
    assert_eq!(received.drops.iter().sum::<u64>(), dropped as u64);
    // The host answers some of what reached it from the function's port: with resets, which were counted, too.
    match not_counting_sent {
        None => assert!(sent.packets > 0, "{sent:?}"),
        Some(reason) => skip(&format!(
            "what functions send is not counted here: {reason}"
        )),
    }
    let node: Node = maps.node().expect("counters");
    assert_eq!(node.ours, received.packets);
    for outcome in STRANGE {
        let outcome = outcome as usize;
        assert_eq!(node.outcomes[outcome], outcomes[outcome], "{outcome}");
    }
}

#[test]
fn the_corpus_gets_its_verdicts_in_the_driver() {
    corpus_over(Mode::Native);
}

#[test]
fn the_corpus_gets_its_verdicts_in_the_stack() {
    corpus_over(Mode::Generic);
}
