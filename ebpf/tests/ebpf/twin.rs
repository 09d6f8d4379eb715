//! The parser in the kernel against its twin: the corpus, and what random changes make of it.

use std::sync::Mutex;

use aya::Ebpf;
use aya::maps::Array;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use hearth_ebpf::datagram::{Checksum, Datagram};
use hearth_ebpf::packet::{self, Packet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::can_run;
use crate::corpus;
use crate::frames::{options, udp};

const PROBE: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/probe.o"));

struct Probe(Ebpf);

impl Probe {
    fn load() -> Self {
        let mut object = Ebpf::load(PROBE).expect("the probe");
        let program: &mut Xdp = object
            .program_mut("probe")
            .expect("there")
            .try_into()
            .expect("XDP");
        program.load().expect("it loads");
        Self(object)
    }

    /// What the parser in the kernel finds.
    fn parse(&self, frame: &[u8]) -> Packet {
        let program: &Xdp = self
            .0
            .program("probe")
            .expect("there")
            .try_into()
            .expect("XDP");
        let options = TestRunOptions {
            data_in: Some(frame),
            ..TestRunOptions::default()
        };
        program.test_run(options).expect("a run");
        let parsed: Array<_, Packet> = self
            .0
            .map("parsed")
            .expect("there")
            .try_into()
            .expect("an array");
        parsed.get(&0, 0).expect("read")
    }
}

#[test]
fn both_parsers_find_the_same_in_the_corpus() {
    if !can_run() {
        return;
    }
    let probe = Probe::load();
    for case in corpus::cases() {
        let twin = packet::parse(&case.frame, case.frame.len());
        assert_eq!(probe.parse(&case.frame), twin, "{}", case.name);
    }
}

#[test]
fn both_parsers_find_the_same_in_what_random_changes_make_of_it() {
    if !can_run() {
        return;
    }
    let probe = Probe::load();
    let cases: Vec<_> = corpus::cases().into_iter().map(|case| case.frame).collect();
    let headers = 14_usize..110;
    let changes = proptest::collection::vec((headers, any::<u8>()), 1..6);
    let strategy = (0..cases.len(), changes, proptest::option::of(14_usize..200));
    let mut runner = TestRunner::new(Config {
        cases: 20_000,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&strategy, |(case, changes, length)| {
            let mut frame = cases[case].clone();
            if let Some(length) = length {
                frame.resize(length, 0);
            }
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            prop_assert_eq!(probe.parse(&frame), packet::parse(&frame, frame.len()));
            Ok(())
        })
        .expect("no difference");
}

#[test]
fn both_parsers_find_the_same_in_random_bytes() {
    static PROBE: Mutex<Option<Probe>> = Mutex::new(None);
    if !can_run() {
        return;
    }
    bolero::check!()
        .with_type::<(u8, Vec<u8>)>()
        .with_iterations(5_000)
        .for_each(|(protocol, bytes)| {
            let mut probe = PROBE
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let probe = probe.get_or_insert_with(Probe::load);
            // Without a protocol that is followed, nothing but the first 14 bytes would be read.
            let protocols = [[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00]];
            let mut frame = vec![0; 12];
            frame.extend(protocols[usize::from(*protocol) % 3]);
            frame.extend(bytes);
            assert_eq!(probe.parse(&frame), packet::parse(&frame, frame.len()));
        });
}

#[test]
fn a_datagram_is_read_and_answered() {
    let mut frames = vec![
        udp("192.0.2.1:5000", "192.0.2.2:7000"),
        udp("[2001:db8::1]:5000", "[2001:db8::2]:7000"),
    ];
    frames[0].ipv4_options = 3;
    frames[0].tags = vec![crate::frames::PROVIDER_TAG, crate::frames::TAG];
    frames[1].extensions = vec![options(2)];
    for frame in frames {
        for payload in [&b""[..], b"a", b"an odd one!", &[7; 1_400]] {
            let bytes = frame.bytes();
            let datagram = Datagram::parse(&bytes).expect("a datagram");
            assert_eq!(datagram.source(), frame.source);
            assert_eq!(datagram.destination(), frame.destination);
            assert_eq!(datagram.payload(), frame.payload);
            assert_eq!(datagram.checksum(), Checksum::Valid);
            let mut buffer = [0xaa; 1_600];
            let length = datagram.reply(payload, &mut buffer).expect("room");
            let reply = Datagram::parse(&buffer[..length]).expect("a datagram");
            assert_eq!(
                (reply.source(), reply.destination()),
                (frame.destination, frame.source)
            );
            assert_eq!(
                (reply.payload(), reply.checksum()),
                (payload, Checksum::Valid)
            );
            assert_eq!(buffer[..6], bytes[6..12]);
            assert!(datagram.reply(payload, &mut buffer[..length - 1]).is_none());
        }
    }
}

#[test]
fn a_wrong_checksum_is_seen_wherever_the_change_is() {
    for (from, to) in [
        ("192.0.2.1:5000", "192.0.2.2:7000"),
        ("[2001:db8::1]:5000", "[2001:db8::2]:7000"),
    ] {
        let frame = udp(from, to);
        let bytes = frame.bytes();
        for at in frame.transport()..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x01;
            if let Some(datagram) = Datagram::parse(&changed) {
                assert_eq!(datagram.checksum(), Checksum::Wrong, "{at}");
            }
        }
        let mut without = bytes.clone();
        without[frame.transport() + 6..frame.transport() + 8].fill(0);
        let expected = if frame.source.is_ipv4() {
            Checksum::Absent
        } else {
            Checksum::Wrong
        };
        assert_eq!(
            Datagram::parse(&without).expect("a datagram").checksum(),
            expected
        );
    }
}
