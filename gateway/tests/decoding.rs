//! The messages between server and gateway: what was encoded is decoded, and nothing else is. A fuzz target: whatever bytes a
//! server sends, they are refused, or are the one encoding of a request; and so are policies.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth-gateway --test decoding arbitrary_bytes`
//! fuzzes.

use std::net::IpAddr;
use std::time::Duration;

use hearth_gateway::protocol::{Counters, KernelPolicy, Protocol, Reply, Request, Resolved};
use hearth_host::protocol::Message;
use hearth_host::{Capability, SandboxError};
use hearth_init::fields::Fields as _;
use proptest::prelude::*;

/// Random cases in a run of the test suite: a second or two.
const CASES: usize = 20_000;

fn resolved() -> impl Strategy<Value = Resolved> {
    (any::<(IpAddr, bool, u16, u16)>(), any::<u64>()).prop_map(
        |((address, is_udp, first, last), micros)| Resolved {
            address: address.to_canonical(),
            protocol: if is_udp { Protocol::Udp } else { Protocol::Tcp },
            ports: first..=last,
            ttl: Duration::from_micros(micros),
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(sequence, key)| Request::SetPolicy(sequence, key)),
        (any::<(u64, u64)>(), resolved())
            .prop_map(|((sequence, key), resolved)| Request::Allow(sequence, key, resolved)),
        any::<(u64, u64)>().prop_map(|(sequence, key)| Request::Counters(sequence, key)),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let counters = any::<[u64; 7]>().prop_map(|numbers| {
        let [
            bytes_out,
            packets_out,
            bytes_in,
            packets_in,
            connections,
            refused,
            fast,
        ] = numbers;
        Counters {
            bytes_out,
            packets_out,
            bytes_in,
            packets_in,
            connections,
            refused,
            fast,
        }
    });
    prop_oneof![
        "\\PC{0,200}".prop_map(|why| Reply::Up(Capability::unavailable("network_outbound", why))),
        "\\PC{0,200}".prop_map(|why| Reply::Fast(Capability::unavailable("network_fast", why))),
        any::<u64>().prop_map(Reply::Done),
        (any::<u64>(), "\\PC{0,200}")
            .prop_map(|(sequence, why)| Reply::Refused(sequence, SandboxError::step("a", why))),
        (any::<u64>(), counters)
            .prop_map(|(sequence, counters)| Reply::Counters(sequence, counters)),
    ]
}

proptest! {
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
fn a_text_that_is_too_long_is_cut() {
    let long = "é".repeat(Reply::BYTES);
    for reply in [
        Reply::Up(Capability::unavailable("network_outbound", long.clone())),
        Reply::Refused(1, SandboxError::step(&long, &long)),
    ] {
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
}

#[test]
fn arbitrary_bytes() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(Request::BYTES * 2)
        .for_each(|input: &[u8]| {
            if let Ok(request) = Request::decode(input) {
                assert_eq!(request.encode(), input);
            }
            // Random bytes seldom have the size, and even more seldom an existing kind.
            let mut sized = input.to_vec();
            sized.resize(Request::BYTES, 0);
            sized[0] %= 5;
            if let Ok(request) = Request::decode(&sized) {
                assert_eq!(request.encode(), sized);
            }
        });
}

#[test]
fn arbitrary_policies() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(600)
        .for_each(|input: &[u8]| {
            if let Ok(policy) = KernelPolicy::from_bytes(input) {
                assert_eq!(policy.to_bytes(), input);
            }
        });
}
