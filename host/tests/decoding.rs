//! The messages: what was encoded is decoded, and nothing else is. A fuzz target: whatever bytes a server sends, they are
//! refused, or are the one encoding of a request whose names are what names may be.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth-host --test decoding arbitrary_bytes`
//! fuzzes.

use std::net::IpAddr;
use std::time::Duration;

use hearth_host::protocol::request::{Order, Target};
use hearth_host::protocol::{
    FromGateway, Malformed, Message, Papers, Protocol, Purpose, Reply, Request, ToGateway,
};
use hearth_host::{Capability, SandboxError};
use hearth_init::fields::{FieldError, Fields as _};
use proptest::option;
use proptest::prelude::*;

/// Random cases in a run of the test suite: a second or two.
const CASES: usize = 20_000;

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9-]{0,100}"
}

fn target() -> impl Strategy<Value = Target> {
    any::<(u64, u64, u32)>().prop_map(|(key, leaf, pid)| Target { key, leaf, pid })
}

fn order() -> impl Strategy<Value = Order> {
    let numbers = any::<(u32, u64, u32, bool, bool, bool)>();
    (numbers, option::of(any::<u64>()), option::of(any::<u32>())).prop_map(
        |((uid_base, memory_bytes, max_instances, forks, dumpable, network), micros, processor)| {
            Order {
                uid_base,
                memory_bytes,
                max_instances,
                forks,
                dumpable,
                restore_limit: micros.map(Duration::from_micros),
                network,
                processor,
            }
        },
    )
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![
        any::<u16>().prop_map(Purpose::Listen),
        any::<(IpAddr, u16)>()
            .prop_map(|(address, port)| Purpose::Dial(address.to_canonical(), port)),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        (any::<u64>(), order()).prop_map(|(sequence, order)| Request::Create(sequence, order)),
        any::<u64>().prop_map(Request::Destroy),
        any::<(u64, u64)>().prop_map(|(sequence, key)| Request::InstanceCgroup(sequence, key)),
        any::<(u64, u32)>().prop_map(|(key, count)| Request::FillPool(key, count)),
        target().prop_map(Request::Attach),
        target().prop_map(Request::Kill),
        target().prop_map(Request::Release),
        (target(), any::<bool>()).prop_map(|(target, with)| Request::Freeze(target, with)),
        (target(), any::<bool>()).prop_map(|(target, with)| Request::Thaw(target, with)),
        (target(), any::<u32>()).prop_map(|(target, quota)| Request::LimitCpu(target, quota)),
        (any::<(u64, u128)>(), target())
            .prop_map(|((sequence, cores), target)| Request::Dedicate(sequence, target, cores)),
        any::<u64>().prop_map(Request::FreezeTemplate),
        any::<u64>().prop_map(Request::ThawTemplate),
        (any::<u32>(), name()).prop_map(|(uid, name)| Request::KeepPrewarmed(uid, name)),
        name().prop_map(Request::EndPrewarmed),
        (any::<(u64, u64, u64)>(), name())
            .prop_map(|((sequence, key, most), name)| { Request::Dump(sequence, key, most, name) }),
        (any::<u64>(), name()).prop_map(|(sequence, name)| Request::RemoveImage(sequence, name)),
        any::<u64>().prop_map(Request::Shutdown),
        any::<(u32, bool)>().prop_map(|(thread, raised)| Request::Prioritize(thread, raised)),
        any::<(u64, bool, u16)>().prop_map(|(sequence, is_udp, port)| {
            let protocol = if is_udp { Protocol::Udp } else { Protocol::Tcp };
            Request::OpenPort(sequence, protocol, port)
        }),
        (any::<(u64, u64)>(), purpose())
            .prop_map(|((sequence, key), purpose)| Request::Socket(sequence, key, purpose)),
        any::<(u64, u32)>().prop_map(|(sequence, chain)| Request::Connect(sequence, chain)),
        any::<u32>().prop_map(Request::EndChain),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let text = || "\\PC{0,200}";
    prop_oneof![
        any::<(u32, u32, [bool; 3])>().prop_map(|(uid, gid, [separate, ingress, brokers])| {
            Reply::Start {
                uid,
                gid,
                separate,
                ingress,
                brokers,
            }
        }),
        (name(), option::of(text()), option::of(name())).prop_map(|(name, reason, version)| {
            Reply::Capability(Capability {
                name,
                available: reason.is_none(),
                reason,
                version,
            })
        }),
        (any::<bool>(), text(), text(), name()).prop_map(|(v2, cgroups, cpu_cgroups, init)| {
            Reply::Up {
                v2,
                cgroups,
                cpu_cgroups,
                init,
            }
        }),
        (any::<(u64, u64, u32, bool, u32)>(), name()).prop_map(
            |((sequence, key, uid, was_prewarmed, interface), name)| Reply::Created {
                sequence,
                key,
                name,
                uid,
                was_prewarmed,
                interface,
            }
        ),
        (any::<u64>(), name(), text()).prop_map(|(sequence, step, detail)| {
            Reply::Refused(sequence, SandboxError::Step { step, detail })
        }),
        any::<u64>().prop_map(|sequence| Reply::Refused(sequence, SandboxError::Gone)),
        any::<u64>().prop_map(Reply::Done),
        any::<(u64, u64, u64)>()
            .prop_map(|(sequence, key, leaf)| Reply::InstanceCgroup(sequence, key, leaf)),
        any::<(u64, u64)>().prop_map(|(key, leaf)| Reply::Prepared(key, leaf)),
        (any::<(u64, u64)>(), text())
            .prop_map(|((key, leaf), text)| Reply::AttachFailed(key, leaf, text)),
        any::<(u64, bool, Option<i32>, Option<i32>, Option<i32>)>().prop_map(
            |(key, out_of_memory, code, signal, init_signal)| Reply::Ended {
                key,
                out_of_memory,
                code,
                signal,
                init_signal,
            }
        ),
        any::<u64>().prop_map(Reply::Socket),
        any::<u64>().prop_map(Reply::Connection),
        any::<u64>().prop_map(Reply::Destroyed),
        (name(), any::<(bool, bool)>()).prop_map(|(runtime, (kept, ready))| Reply::Prewarmed {
            runtime,
            kept,
            ready,
        }),
    ]
}

fn to_gateway() -> impl Strategy<Value = ToGateway> {
    prop_oneof![
        Just(ToGateway::Start),
        any::<u64>().prop_map(ToGateway::Attach),
        any::<u64>().prop_map(ToGateway::Detach),
    ]
}

fn from_gateway() -> impl Strategy<Value = FromGateway> {
    prop_oneof![
        any::<(u64, u32)>().prop_map(|(key, interface)| FromGateway::Attached(key, interface)),
        (any::<u64>(), name(), "\\PC{0,200}").prop_map(|(key, step, detail)| {
            FromGateway::Failed(key, SandboxError::Step { step, detail })
        }),
        any::<u64>().prop_map(FromGateway::Detached),
    ]
}

/// Whatever these bytes are, they are none, or the one encoding of a message.
fn check_arbitrary<M: Message>(input: &[u8], kinds: u8) {
    if let Ok(message) = M::decode(input) {
        assert_eq!(message.encode(), input);
    }
    // Random bytes seldom have the size, and even more seldom an existing kind.
    let mut sized = input.to_vec();
    sized.resize(M::BYTES, 0);
    sized[0] %= kinds + 2;
    if let Ok(message) = M::decode(&sized) {
        assert_eq!(message.encode(), sized);
    }
}

proptest! {
    #[test]
    fn what_goes_to_the_gateway_is_read_as_it_was_written(message in to_gateway()) {
        prop_assert_eq!(ToGateway::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn what_the_gateway_says_is_read_as_it_was_written(message in from_gateway()) {
        prop_assert_eq!(FromGateway::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn a_request_is_read_as_it_was_written(request in request()) {
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
    }

    #[test]
    fn a_reply_is_read_as_it_was_written(reply in reply()) {
        prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }

    /// Every bit counts: with another one it is another message, or none.
    #[test]
    fn a_changed_request_is_not_taken_for_it(
        request in request(),
        at in 0..Request::BYTES,
        bit in 0..8_u32,
    ) {
        let mut bytes = request.encode();
        bytes[at] ^= 1 << bit;
        prop_assert_ne!(Request::decode(&bytes), Ok(request));
    }
}

#[test]
fn messages_of_another_size_are_none() {
    let bytes = Request::Destroy(7).encode();
    for length in 0..bytes.len() {
        let refused = Request::decode(&bytes[..length]);
        assert_eq!(refused, Err(Malformed::Size(length)));
    }
    let longer = [0; Request::BYTES + 1];
    assert_eq!(Request::decode(&longer), Err(Malformed::Size(longer.len())));
    let short = Reply::decode(&[0; Reply::BYTES - 1]);
    assert_eq!(short, Err(Malformed::Size(Reply::BYTES - 1)));
}

#[test]
fn what_a_message_has_no_use_for_must_be_zero() {
    let bytes = Request::Destroy(7).encode();
    for at in 1..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        // The key, which follows the kind, may be another one, and all else may not be at all.
        let is_key = (1..9).contains(&at);
        assert_eq!(Request::decode(&changed).is_ok(), is_key, "{at}");
    }
    for kind in [0, 24, 100, 255] {
        let mut unknown = bytes.clone();
        unknown[0] = kind;
        assert_eq!(
            Request::decode(&unknown),
            Err(Malformed::Fields(FieldError::Kind(kind)))
        );
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_between_characters() {
    let long = "é".repeat(Reply::BYTES);
    let reply = Reply::Refused(1, SandboxError::step(&long, &long));
    let Ok(Reply::Refused(1, SandboxError::Step { step, detail })) = Reply::decode(&reply.encode())
    else {
        panic!("not read");
    };
    assert!(step.len() > 100 && long.starts_with(&step));
    assert!(detail.len() > 500 && long.starts_with(&detail));
}

#[test]
fn arbitrary_bytes() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(Request::BYTES * 2)
        .for_each(|input: &[u8]| {
            check_arbitrary::<Request>(input, 19);
            check_arbitrary::<ToGateway>(input, 3);
            check_arbitrary::<FromGateway>(input, 3);
        });
}

#[test]
fn arbitrary_papers() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(600)
        .for_each(|input: &[u8]| {
            if let Ok(papers) = Papers::from_bytes(input) {
                assert_eq!(papers.to_bytes(), input);
                if papers.check().is_ok() {
                    assert!(papers.code.starts_with("code") && papers.code.is_relative());
                    assert!(!papers.id.contains(['/', '.']));
                }
            }
        });
}
