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
    assert!(host.rx.try_recv().expect("no violation").is_none());
}

#[test]
fn a_position_off_the_frames_is_misaligned() {
    for position in [1, 8, 32, 63, 65, u64::MAX] {
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
    for position in [RING + FRAME_ALIGN, 1 << 40, u64::MAX - 63] {
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
    peer.store(Word::WorkerSent, 64);
    let expected = Violation::PositionOutOfRange {
        position: 64,
        from: 128,
        to: 128 + RING,
    };
    assert_eq!(violation_of(host, &peer), expected);
}

#[test]
fn a_frame_beyond_what_is_published_or_beyond_the_end_is_refused() {
    let expected = Violation::BeyondPublished {
        frame: 192,
        published: 128,
    };
    assert_eq!(tampered(|header| header.len = 65), expected);

    // The second frame begins 1024 bytes before the end and says it is longer.
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, &[0; 1600], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(1664, Kind::ResponseResult, &[0; 1344], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(3072, Kind::ResponseResult, &[0; 1500], |_| {});
    assert_eq!(
        violation_of(host, &peer),
        Violation::BeyondEnd {
            frame: 1600,
            left: 1024
        }
    );
}

#[test]
fn a_payload_beyond_the_maximum_is_refused() {
    for len in [1729, u32::MAX] {
        assert_eq!(
            tampered(|header| header.len = len),
            Violation::PayloadTooLong { len, max: 1728 }
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
    // Not up to the end; as long as the longest frame, which would have fitted.
    let expected = Violation::BadPad {
        frame: 128,
        left: RING,
    };
    assert_eq!(tampered(|header| header.kind = Kind::Pad as u16), expected);

    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, &[0; 1728], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(1792, Kind::ResponseResult, &[0; 448], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    peer.send(2304, Kind::Pad, &[0; 1728], |_| {});
    assert_eq!(
        violation_of(host, &peer),
        Violation::BadPad {
            frame: 1792,
            left: 1792
        }
    );
}

#[test]
fn filler_has_no_flags_and_a_checksum() {
    let after_a_frame = |flags: u16, crc: u32| {
        let (mut host, peer) = Peer::new();
        peer.send(0, Kind::ResponseResult, &[0; 1728], |_| {});
        host.rx
            .try_recv()
            .expect("no violation")
            .expect("a frame")
            .consume();
        peer.send(1792, Kind::ResponseResult, &[0; 576], |_| {});
        host.rx
            .try_recv()
            .expect("no violation")
            .expect("a frame")
            .consume();
        peer.send(2432, Kind::Pad, &[0; 1600], |header| {
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
    assert_eq!(copy, b"{}");
    peer.send(128, Kind::ResponseResult, b"[]", |_| {});
    let mut frame = host.rx.try_recv().expect("no violation").expect("a frame");
    frame.copy_to(&mut copy).expect("the copied length counts");
    assert_eq!(copy, b"{}[]");
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
    assert_eq!(peer.load(Word::HostSent), 128);
    peer.send(0, Kind::ResponseResult, &[0; 512], |_| {});
    host.rx
        .try_recv()
        .expect("no violation")
        .expect("a frame")
        .consume();
    assert_eq!(peer.load(Word::HostTook), 576);
}

#[test]
fn the_sender_bounds_the_consumers_position() {
    // Two of the longest frames.
    let sent = 2 * 1792;
    let out_of_range = |position| Violation::PositionOutOfRange {
        position,
        from: 0,
        to: sent,
    };
    for (position, expected) in [
        (
            7,
            Violation::Misaligned {
                position: 7,
                align: FRAME_ALIGN,
            },
        ),
        (sent + 64, out_of_range(sent + 64)),
        (u64::MAX - 63, out_of_range(u64::MAX - 63)),
    ] {
        let (mut host, peer) = Peer::new();
        let payload = [0; 1728];
        let mut send = || {
            host.tx
                .try_send(Kind::RequestEvent, Flags::NONE, &[0; 16], &payload)
        };
        assert!(send().expect("an empty ring") && send().expect("room for two"));
        peer.store(Word::WorkerTook, position);
        let violated = |error| matches!(error, AbiError::Violation(found) if found == expected);
        assert!(
            violated(send().expect_err("a position that cannot be")),
            "{position}"
        );
        peer.store(Word::WorkerTook, sent);
        assert!(violated(send().expect_err("still broken")));
        assert!(
            !host.tx.prepare_wait(1),
            "nobody sleeps on a broken channel"
        );
    }
}

#[test]
fn what_is_behind_a_payload_must_be_zeros() {
    let (mut host, peer) = Peer::new();
    peer.send(0, Kind::ResponseResult, b"{}", |_| {});
    peer.write(FRAME_HEADER_BYTES as u64 + 2, b"!");
    let mut frame = host.rx.try_recv().expect("no violation").expect("a frame");
    let violation = frame.copy_to(&mut Vec::new()).expect_err("more than zeros");
    assert!(matches!(violation, Violation::Checksum { .. }));
}

#[test]
fn a_position_is_kept_back_up_to_an_eighth_of_the_ring() {
    let (mut host, peer) = Peer::new();
    let mut position = 0;
    for (len, took) in [
        (0, 64),
        (64, 64),
        (192, 64),
        (64, 64),
        (0, 640),
        (448, 640),
        (1664, 2880),
    ] {
        peer.send(position, Kind::ResponseBody, &vec![1; len], |_| {});
        position = peer.load(Word::WorkerSent);
        host.rx
            .try_recv()
            .expect("no violation")
            .expect("a frame")
            .consume();
        assert_eq!(peer.load(Word::HostTook), took, "at {position}");
    }
}
