//! Every rule of the channel that a worker can break, broken once: the host names it, and gives the channel up.
#![cfg(not(loom))]

mod common;

use common::{Peer, RING, Word};
use hearth_abi::layout::{FRAME_ALIGN, FRAME_HEADER_BYTES};
use hearth_abi::{AbiError, Endpoint, Flags, Kind, Violation};

/// The host's next answer, which must be a violation, and stay it whatever comes after.
fn violation_of(mut host: Endpoint, peer: &Peer) -> Violation {
    let mut copy = Vec::new();
    let violation = match host.rx.try_recv() {
        Ok(Some(mut frame)) => frame.copy_to(&mut copy).expect_err("a bad payload"),
        other => other.expect_err("a bad frame"),
    };
    assert!(copy.is_empty());
    peer.store(Word::WorkerSent, 0);
    assert!(!host.rx.prepare_wait(), "nobody sleeps on a broken channel");
    assert_eq!(host.rx.try_recv().expect_err("still broken"), violation);
    violation
}

/// The violation for a frame whose header was tampered with, its checksum renewed.
fn tampered(tamper: impl FnOnce(&mut hearth_abi::FrameHeader)) -> Violation {
    let (host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |header| {
        tamper(header);
        header.crc = header.checksum(b"{}");
    });
    violation_of(host, &peer)
}

#[test]
fn an_honest_frame_is_none() {
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    let mut copy = Vec::new();
    let mut frame = host.rx.try_recv().expect("no violation").expect("a frame");
    frame.copy_to(&mut copy).expect("no violation");
    assert_eq!(
        (frame.kind(), frame.flags(), frame.len()),
        (Kind::ResponseResult, Flags::NONE, 2)
    );
    assert_eq!((frame.id(), copy.as_slice()), (&[9; 16], b"{}".as_slice()));
    frame.consume();
    assert_eq!(peer.load(Word::HostTook), 64);
    assert!(host.rx.try_recv().expect("no violation").is_none());
}

#[test]
fn a_position_off_the_frames_is_misaligned() {
    for position in [1, 8, 31, 33, u64::MAX] {
        let (host, peer) = Peer::new();
        peer.store(Word::WorkerSent, position);
        assert_eq!(
            violation_of(host, &peer),
            Violation::Misaligned {
                position,
                align: FRAME_ALIGN
            }
        );
    }
}

#[test]
fn a_position_beyond_the_ring_or_behind_the_last_is_out_of_range() {
    for position in [RING + FRAME_ALIGN, 1 << 40, u64::MAX - 31] {
        let (host, peer) = Peer::new();
        peer.store(Word::WorkerSent, position);
        let expected = Violation::PositionOutOfRange {
            position,
            from: 0,
            to: RING,
        };
        assert_eq!(violation_of(host, &peer), expected);
    }
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.store(Word::WorkerSent, 32);
    let expected = Violation::PositionOutOfRange {
        position: 32,
        from: 64,
        to: 64 + RING,
    };
    assert_eq!(violation_of(host, &peer), expected);
}

#[test]
fn a_frame_beyond_what_is_published_or_beyond_the_end_is_refused() {
    let expected = Violation::BeyondPublished {
        frame: 96,
        published: 64,
    };
    assert_eq!(tampered(|header| header.len = 33), expected);

    // The second frame begins 1024 bytes before the end and says it is longer.
    let (mut host, peer) = Peer::new();
    let first = vec![0; 2000];
    peer.send(0, Kind::ResponseResult, &first, |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(2048, Kind::ResponseResult, &[0; 992], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(3072, Kind::ResponseResult, &[0; 1500], |_| {});
    assert_eq!(
        violation_of(host, &peer),
        Violation::BeyondEnd {
            frame: 1536,
            left: 1024
        }
    );
}

#[test]
fn a_payload_beyond_the_maximum_is_refused() {
    for len in [2017, u32::MAX] {
        assert_eq!(
            tampered(|header| header.len = len),
            Violation::PayloadTooLong { len, max: 2016 }
        );
    }
}

#[test]
fn unknown_kinds_flags_and_reserved_words_are_refused() {
    assert_eq!(
        tampered(|header| header.kind = 0x7777),
        Violation::UnknownKind(0x7777)
    );
    assert_eq!(
        tampered(|header| header.flags = 2),
        Violation::UnknownFlags(2)
    );
    assert_eq!(
        tampered(|header| header.reserved = 5),
        Violation::ReservedNotZero(5)
    );
}

#[test]
fn filler_that_no_frame_needed_is_refused() {
    // Not up to the end; the whole ring; half of it, which any frame would have fitted.
    let expected = Violation::BadPad {
        frame: 64,
        left: RING,
    };
    assert_eq!(tampered(|header| header.kind = Kind::Pad as u16), expected);

    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, &[0; 2016], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(2048, Kind::Pad, &[0; 2016], |_| {});
    assert_eq!(
        violation_of(host, &peer),
        Violation::BadPad {
            frame: 2048,
            left: 2048
        }
    );
}

#[test]
fn filler_has_no_flags_and_a_checksum() {
    let after_a_frame = |flags: u16, crc: u32| {
        let (mut host, peer) = Peer::new();
        peer.send(0, Kind::ResponseResult, &[0; 2016], |_| {});
        host.rx
            .try_recv()
            .expect("no violation")
            .expect("a frame")
            .consume();
        peer.send(2048, Kind::ResponseResult, &[], |_| {});
        host.rx
            .try_recv()
            .expect("no violation")
            .expect("a frame")
            .consume();
        peer.send(2080, Kind::Pad, &[0; 1984], |header| {
            header.flags = flags;
            header.crc = header.checksum(&[]) ^ crc;
        });
        violation_of(host, &peer)
    };
    assert_eq!(after_a_frame(1, 0), Violation::UnknownFlags(1));
    assert!(matches!(after_a_frame(0, 1), Violation::Checksum { .. }));
}

#[test]
fn a_wrong_checksum_is_found_on_the_copy() {
    let (host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |header| header.crc ^= 1);
    assert!(matches!(
        violation_of(host, &peer),
        Violation::Checksum { .. }
    ));

    // Written after the host has looked at the header.
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    let mut frame = host.rx.try_recv().expect("no violation").expect("a frame");
    peer.write(FRAME_HEADER_BYTES as u64, b"[]");
    let mut copy = b"before".to_vec();
    let violation = frame.copy_to(&mut copy).expect_err("a changed payload");
    assert!(matches!(violation, Violation::Checksum { .. }));
    assert_eq!(copy, b"before");
    drop(frame);
    assert_eq!(
        peer.load(Word::HostTook),
        0,
        "a broken frame is not released"
    );
}

#[test]
fn a_header_changed_after_the_check_changes_nothing() {
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    let mut frame = host.rx.try_recv().expect("no violation").expect("a frame");
    peer.write(0, &[0xff; FRAME_HEADER_BYTES]);
    let mut copy = Vec::new();
    frame.copy_to(&mut copy).expect("the copied header counts");
    frame.consume();
    assert_eq!(
        (copy.as_slice(), peer.load(Word::HostTook)),
        (b"{}".as_slice(), 64)
    );
}

#[test]
fn the_hosts_own_positions_are_never_read_back() {
    let (mut host, peer) = Peer::new();
    for word in [Word::HostSent, Word::HostTook] {
        peer.store(word, 12_345);
    }
    assert!(
        host.tx
            .try_send(Kind::RequestEvent, Flags::NONE, &[0; 16], b"{}")
            .expect("sent")
    );
    assert_eq!(peer.load(Word::HostSent), 64);
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    assert_eq!(peer.load(Word::HostTook), 64);
}

#[test]
fn the_sender_bounds_the_consumers_position() {
    let out_of_range = |position| Violation::PositionOutOfRange {
        position,
        from: 0,
        to: RING,
    };
    for (position, expected) in [
        (
            7,
            Violation::Misaligned {
                position: 7,
                align: FRAME_ALIGN,
            },
        ),
        (RING + 32, out_of_range(RING + 32)),
        (u64::MAX - 31, out_of_range(u64::MAX - 31)),
    ] {
        let (mut host, peer) = Peer::new();
        let payload = [0; 2016];
        let mut send = || {
            host.tx
                .try_send(Kind::RequestEvent, Flags::NONE, &[0; 16], &payload)
        };
        assert!(send().expect("an empty ring") && send().expect("half a ring"));
        peer.store(Word::WorkerTook, position);
        let violated = |error| matches!(error, AbiError::Violation(found) if found == expected);
        assert!(
            violated(send().expect_err("a position that cannot be")),
            "{position}"
        );
        peer.store(Word::WorkerTook, RING);
        assert!(violated(send().expect_err("still broken")));
        assert!(
            !host.tx.prepare_wait(1),
            "nobody sleeps on a broken channel"
        );
    }
}
