//! Both ends over one mapping, with an honest peer. In anonymous memory, so that Miri runs them.

use crate::layout::MIN_RING_BYTES;
use crate::{AbiError, Endpoint, Flags, Kind, Region};

const ID: [u8; 16] = [3; 16];

fn receive(endpoint: &mut Endpoint) -> Option<(Kind, Flags, Vec<u8>)> {
    let mut frame = endpoint.rx.try_recv().expect("an honest peer")?;
    let mut payload = Vec::new();
    frame.copy_to(&mut payload).expect("an honest peer");
    assert_eq!(
        (frame.len(), frame.is_empty(), frame.id()),
        (payload.len(), payload.is_empty(), &ID)
    );
    Some((frame.kind(), frame.flags(), payload))
}

#[test]
fn frames_cross_both_ways_and_around_the_ends() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    for size in (0..1728).step_by(61) {
        let payload: Vec<u8> = (0..size).map(|index| (index ^ size) as u8).collect();
        assert!(
            host.tx
                .try_send(Kind::RequestEvent, Flags::NONE, &ID, &payload)
                .expect("legal")
        );
        let (kind, flags, copy) = receive(&mut worker).expect("a frame");
        assert!((kind, flags) == (Kind::RequestEvent, Flags::NONE) && copy == payload);
        assert!(
            worker
                .tx
                .try_send(Kind::ResponseResult, Flags::MORE, &ID, &copy)
                .expect("legal")
        );
        let (kind, flags, copy) = receive(&mut host).expect("a frame");
        assert!((kind, flags) == (Kind::ResponseResult, Flags::MORE) && copy == payload);
    }
    assert_eq!((receive(&mut host), receive(&mut worker)), (None, None));
}

#[test]
fn the_largest_frame_fits_an_empty_ring_at_every_position() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    let largest = vec![5; host.tx.max_payload()];
    for _ in 0..MIN_RING_BYTES / 64 {
        assert!(
            host.tx
                .try_send(Kind::RequestEvent, Flags::NONE, &ID, &[])
                .expect("legal")
        );
        receive(&mut worker).expect("a frame");
        assert!(
            host.tx
                .try_send(Kind::RequestEvent, Flags::NONE, &ID, &largest)
                .expect("legal")
        );
        assert_eq!(
            receive(&mut worker).expect("a frame").2.len(),
            largest.len()
        );
    }
}

/// Around the ring's end, in a ring that is too full, and with frames that are longer than what is claimed.
#[test]
fn warming_up_changes_nothing() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    for round in 0..200_usize {
        let size = [0, 1, 64, 500, 1728][round % 5];
        let payload = vec![round as u8; size];
        let sent = |endpoint: &mut Endpoint| {
            endpoint
                .tx
                .try_send(Kind::RequestEvent, Flags::NONE, &ID, &payload)
                .expect("legal")
        };
        host.tx.warm_up();
        let mut frames = 0;
        while sent(&mut host) {
            host.tx.warm_up();
            frames += 1;
        }
        host.tx.warm_up();
        assert!(frames >= 1);
        for _ in 0..frames {
            assert_eq!(receive(&mut worker).expect("a frame").2, payload);
        }
        assert_eq!(receive(&mut worker), None);
    }
}

#[test]
fn what_cannot_be_sent_is_a_typed_error() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    let long = vec![0; 1729];
    let error = host
        .tx
        .try_send(Kind::RequestEvent, Flags::NONE, &ID, &long)
        .expect_err("too long");
    assert!(matches!(
        error,
        AbiError::TooLarge {
            len: 1729,
            max: 1728
        }
    ));
    let error = host
        .tx
        .try_send(Kind::Pad, Flags::NONE, &ID, &[])
        .expect_err("filler");
    assert!(matches!(error, AbiError::NotSendable(Kind::Pad)));
    assert_eq!(receive(&mut worker), None);
}

#[test]
fn pieces_make_the_message() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    let message: Vec<u8> = (0..20_000_u32).map(|index| (index % 251) as u8).collect();
    let (mut rest, mut received) = (message.as_slice(), Vec::new());
    let mut last = false;
    while !last {
        while let Some(taken) = (!rest.is_empty())
            .then(|| host.tx.try_send_piece(Kind::RequestBody, &ID, rest, false))
            .transpose()
            .expect("legal")
            .flatten()
        {
            rest = &rest[taken..];
        }
        assert!(rest.is_empty() || host.tx.prepare_wait(rest.len()));
        let (_, flags, piece) = receive(&mut worker).expect("a frame");
        received.extend(piece);
        last = !flags.has_more();
    }
    assert!(received == message && rest.is_empty());
    assert_eq!(
        host.tx
            .try_send_piece(Kind::RequestBody, &ID, &[], false)
            .expect("legal"),
        Some(0)
    );
    assert_eq!(
        receive(&mut worker),
        Some((Kind::RequestBody, Flags::NONE, Vec::new()))
    );
}

/// Miri watches for unordered accesses to the same bytes.
#[test]
fn frames_cross_between_threads() {
    let (mut host, mut worker) = Region::anonymous(MIN_RING_BYTES);
    let frames = if cfg!(miri) { 60 } else { 20_000_u32 };
    let payload = |index: u32| vec![index as u8; (index as usize * 37) % 700];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..frames {
                let payload = payload(index);
                while !host
                    .tx
                    .try_send(Kind::RequestEvent, Flags::NONE, &ID, &payload)
                    .expect("legal")
                {
                    std::thread::yield_now();
                }
            }
        });
        for index in 0..frames {
            let received = loop {
                if let Some((_, _, received)) = receive(&mut worker) {
                    break received;
                }
                std::thread::yield_now();
            };
            assert!(received == payload(index), "frame {index}");
        }
    });
}
