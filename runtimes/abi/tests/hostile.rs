//! A fuzz target: the host's receiver and sender against a worker that writes what it likes where it likes, between any
//! two steps and at the same time. Whatever it does, the host gets frames with good checksums or a typed violation, writes
//! nothing but its own ring, and stays in the map.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth-abi arbitrary_writes` fuzzes.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Peer, RING, Word};
use hearth_abi::layout::{FRAME_ALIGN, frame_bytes};
use hearth_abi::{AbiError, Endpoint, Flags, Kind, Violation};

/// Random cases in a run of the test suite: a few seconds.
const CASES: usize = 20_000;
/// Longest case, in bytes: about a hundred steps.
const CASE_BYTES: usize = 600;
/// Steps that the host takes against a worker that writes at the same time.
const CONCURRENT_STEPS: usize = 60_000;

/// The fuzzer's bytes, read as steps.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn word(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.byte()?);
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// The host with what it remembers of violations, which must not change.
struct Host {
    endpoint: Endpoint,
    received: Option<Violation>,
    sent: Option<Violation>,
}

impl Host {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            received: None,
            sent: None,
        }
    }

    /// Receives a frame, and copies it if asked to.
    fn receive(&mut self, copy: bool) {
        let max = self.endpoint.tx.max_payload();
        let outcome = self.endpoint.rx.try_recv().and_then(|frame| {
            let Some(mut frame) = frame else {
                return Ok(());
            };
            assert!(frame.kind() != Kind::Pad && frame.len() <= max);
            if copy {
                let mut payload = vec![1, 2, 3];
                let copied = frame.copy_to(&mut payload);
                assert_eq!(
                    payload.len(),
                    3 + if copied.is_ok() { frame.len() } else { 0 }
                );
                copied?;
            }
            Ok(())
        });
        if let Some(before) = self.received {
            assert_eq!(outcome, Err(before));
        }
        self.received = outcome.err();
    }

    /// Sends `len` bytes: whole or as a piece.
    fn send(&mut self, how: u8, len: usize) {
        let tx = &mut self.endpoint.tx;
        let (id, payload) = ([4; 16], vec![5; len]);
        let outcome = match how % 3 {
            0 | 1 => tx
                .try_send(Kind::RequestEvent, Flags::more(how & 1 != 0), &id, &payload)
                .map(drop),
            _ => tx
                .try_send_piece(Kind::RequestBody, &id, &payload, how & 4 != 0)
                .map(drop),
        };
        let violation = match outcome {
            Ok(()) => None,
            Err(AbiError::Violation(violation)) => Some(violation),
            Err(AbiError::TooLarge { len, max }) => {
                assert!(len > max);
                return;
            }
            Err(other) => panic!("{other}"),
        };
        if self.sent.is_some() {
            assert_eq!(violation, self.sent);
        }
        self.sent = violation;
    }

    /// Goes through the motions of looking and of sleeping, and asks whether to ring.
    fn sleep(&mut self, len: usize) {
        self.endpoint.tx.warm_up();
        let _ = (
            self.endpoint.rx.prepare_wait(),
            self.endpoint.tx.prepare_wait(len),
        );
        self.endpoint.rx.cancel_wait();
        self.endpoint.tx.cancel_wait();
        let _ = (
            self.endpoint.rx.bell_needed(),
            self.endpoint.tx.bell_needed(),
        );
    }
}

const WORDS: [Word; 4] = [
    Word::WorkerSent,
    Word::WorkerTook,
    Word::HostTook,
    Word::HostSent,
];

/// One write of the peer's: anything, or something near the truth, which gets further.
fn write(peer: &Peer, script: &mut Script<'_>) -> Option<()> {
    let choice = script.byte()?;
    let word = WORDS[usize::from(choice >> 4) % WORDS.len()];
    match choice % 8 {
        0 => peer.store(word, script.word()?),
        1 => peer.store(word, u64::from(script.byte()?) * FRAME_ALIGN),
        2 => peer.store(
            word,
            peer.load(word)
                .wrapping_add(u64::from(script.byte()?) * FRAME_ALIGN),
        ),
        3 => peer
            .announcement(usize::from(choice >> 4))
            .store(script.word()? as u32, Ordering::Relaxed),
        4 => peer.write(script.word()?, script.bytes()?),
        // An honest worker's sending and taking, so that the two rings move on and wrap around.
        5 => {
            let payload = vec![7; usize::from(script.byte()?) * 8];
            let frame = frame_bytes(payload.len() as u32);
            if let Some(position) = peer.next().filter(|at| at % RING + frame <= RING) {
                peer.send(position, Kind::ResponseBody, &payload, |_| {});
            }
        }
        6 => peer.store(Word::WorkerTook, peer.load(Word::HostSent)),
        // A frame with a good checksum and a header that may be anything.
        _ => {
            let payload = script.bytes()?;
            let (at, value) = (script.byte()?, script.word()?);
            peer.send(
                peer.next().unwrap_or_default(),
                Kind::ResponseResult,
                payload,
                |header| {
                    match at % 5 {
                        0 => header.len = value as u32,
                        1 => header.kind = value as u16,
                        2 => header.flags = value as u16,
                        3 => header.reserved = value as u32,
                        _ => header.kind = Kind::Pad as u16,
                    }
                    header.crc = header.checksum(payload);
                },
            );
        }
    }
    Some(())
}

/// Runs a script to its end.
fn run(input: &[u8]) -> Option<()> {
    let (endpoint, peer) = Peer::new();
    let mut host = Host::new(endpoint);
    let mut script = Script(input);
    loop {
        let choice = script.byte()?;
        match choice % 4 {
            0 | 1 => write(&peer, &mut script)?,
            2 => {
                let before = peer.not_the_hosts();
                host.receive(choice & 4 != 0);
                assert!(
                    before == peer.not_the_hosts(),
                    "the host wrote what is not its own"
                );
            }
            _ => {
                let before = peer.not_the_hosts();
                let len = usize::from(script.byte()?) * 12;
                if choice & 0x30 == 0 {
                    host.sleep(len)
                } else {
                    host.send(choice >> 2, len)
                }
                assert!(
                    before == peer.not_the_hosts(),
                    "the host wrote what is not its own"
                );
            }
        }
    }
}

#[test]
fn arbitrary_writes_between_the_hosts_steps() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(CASE_BYTES)
        .for_each(|input: &[u8]| {
            run(input);
        });
}

/// A generator of numbers that need not be good.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Scribbles over everything the worker can reach, mostly near the truth, until stopped.
fn scribble(peer: &Peer, stop: &AtomicBool, mut state: u64) {
    while !stop.load(Ordering::Relaxed) {
        let mut script = [0; 64];
        for chunk in script.chunks_mut(8) {
            chunk.copy_from_slice(&next(&mut state).to_le_bytes());
        }
        // Rarely a wild position: it would end the channel at once.
        if !next(&mut state).is_multiple_of(64) && matches!(script[0] % 8, 0..=2) {
            script[0] |= 7;
        }
        write(peer, &mut Script(&script));
    }
}

#[test]
fn arbitrary_writes_at_the_same_time() {
    let mut state = 0x5851_f42d_4c95_7f2d;
    let mut steps = 0;
    while steps < CONCURRENT_STEPS {
        let (endpoint, peer) = Peer::new();
        let mut host = Host::new(endpoint);
        let stop = AtomicBool::new(false);
        let seed = next(&mut state);
        thread::scope(|scope| {
            scope.spawn(|| scribble(&peer, &stop, seed));
            for step in 0..2_000 {
                let random = next(&mut state);
                host.receive(random & 1 == 0);
                host.send((random >> 1) as u8, (random >> 9) as usize % 2_100);
                host.sleep(1);
                steps += 1;
                // After a violation, a few calls more: they must keep to it.
                if host.received.is_some() && host.sent.is_some() && step % 16 == 0 {
                    break;
                }
                if step % 64 == 0 {
                    thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
