//! Each kind of rule, over both families and both protocols: what it lets out, and that it lets out nothing else.

use std::time::Duration;

use hearth::sandbox::{Counters, KernelPolicy, Prefix, Prefixed, Protocol, Resolved};

use super::world::{OTHER_TCP, PRIVATE, PROGRAM, PUBLIC, TCP, World, harness, with_policy};
use crate::harness::{Harness, gateway_settings};

/// Ports at which servers of both protocols are.
const PORT: u16 = TCP;
const OTHER: u16 = OTHER_TCP;

/// The addresses of one family: two that are public, one that is not.
struct Family {
    near: &'static str,
    far: &'static str,
    private: &'static str,
    /// A prefix with both public ones, and with all there are.
    around: (&'static str, u8),
    all: (&'static str, u8),
}

const FAMILIES: [Family; 2] = [
    Family {
        near: PUBLIC[0],
        far: PUBLIC[1],
        private: PRIVATE[0],
        around: ("93.184.216.0", 24),
        all: ("0.0.0.0", 0),
    },
    Family {
        near: PUBLIC[2],
        far: PUBLIC[3],
        private: PRIVATE[5],
        around: ("2606:2800:220::", 64),
        all: ("::", 0),
    },
];

/// A rule, and what it lets out: the near address at the one port and at the other, the far one at the one, the near one at the one
/// by the other protocol.
struct Case {
    rule: &'static str,
    policy: KernelPolicy,
    reaches: [bool; 4],
}

fn cases(family: &Family, protocol: Protocol) -> Vec<Case> {
    let allow = |(address, length): (&str, u8), ports| KernelPolicy {
        allow: vec![Prefixed {
            prefix: Prefix::new(address.parse().expect("an address"), length).expect("a prefix"),
            protocol,
            ports,
        }],
        ..KernelPolicy::default()
    };
    let resolved = |ports| KernelPolicy {
        resolved: vec![Resolved {
            address: family.near.parse().expect("an address"),
            protocol,
            ports,
            ttl: Duration::from_secs(60),
        }],
        ..KernelPolicy::default()
    };
    let host = (
        family.near,
        if family.near.contains(':') { 128 } else { 32 },
    );
    let all_ports = 1..=u16::MAX;
    let case = |rule, policy, reaches| Case {
        rule,
        policy,
        reaches,
    };
    vec![
        case("nothing", KernelPolicy::default(), [false; 4]),
        case(
            "an address",
            allow(host, PORT..=PORT),
            [true, false, false, false],
        ),
        case(
            "an address, all ports",
            allow(host, all_ports.clone()),
            [true, true, false, false],
        ),
        case(
            "an address, a range of ports",
            allow(host, 1..=1000),
            [true, false, false, false],
        ),
        case(
            "a network",
            allow(family.around, PORT..=PORT),
            [true, false, true, false],
        ),
        case(
            "every network",
            allow(family.all, PORT..=PORT),
            [true, false, true, false],
        ),
        case(
            "a private network",
            allow((family.private, host.1), all_ports.clone()),
            [false; 4],
        ),
        case("a name", resolved(PORT..=PORT), [true, false, false, false]),
        case(
            "a name, all ports",
            resolved(all_ports),
            [true, true, false, false],
        ),
        case(
            "a name, some ports",
            resolved(PORT..=PORT + 10),
            [true, false, false, false],
        ),
        case(
            "the internet",
            KernelPolicy {
                internet: true,
                ..KernelPolicy::default()
            },
            [true; 4],
        ),
        case(
            "a dry run",
            KernelPolicy {
                dry_run: true,
                ..KernelPolicy::default()
            },
            [true; 4],
        ),
    ]
}

#[tokio::test]
async fn each_rule_allows_what_it_says() {
    let _world = World::enter();
    check_all(harness()).await;
}

/// The same where no connection goes past the rules.
#[tokio::test]
async fn each_rule_allows_what_it_says_by_itself() {
    let _world = World::enter();
    let harness = Harness::with_settings(PROGRAM, |settings| {
        settings.gateway = gateway_settings(|gateway| gateway.fast = false);
    });
    let counted = check_all(harness).await;
    assert_eq!(counted.fast, 0);
}

async fn check_all(harness: Harness) -> Counters {
    let sandbox = with_policy(&harness, KernelPolicy::default()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    for family in &FAMILIES {
        for (protocol, kind, other) in
            [(Protocol::Tcp, "tcp", "udp"), (Protocol::Udp, "udp", "tcp")]
        {
            for case in cases(family, protocol) {
                outbound.set_policy(&case.policy).await.expect("set");
                let attempts = [
                    (kind, family.near, PORT),
                    (kind, family.near, OTHER),
                    (kind, family.far, PORT),
                    (other, family.near, PORT),
                    (kind, family.private, PORT),
                ];
                for ((kind, address, port), is_allowed) in attempts
                    .into_iter()
                    .zip(case.reaches.into_iter().chain([false]))
                {
                    let expected = match (is_allowed, kind, address.contains(':')) {
                        (true, ..) => "ping",
                        (false, "udp", true) => "EACCES",
                        (false, "udp", false) => "EHOSTUNREACH",
                        (false, ..) => "ECONNREFUSED",
                    };
                    assert_eq!(
                        sandbox.attempt(kind, address, port).await,
                        expected,
                        "{}: {kind} to {address} port {port}",
                        case.rule
                    );
                }
            }
        }
    }
    let counted = outbound.counters().await.expect("counters");
    harness.end(sandbox).await;
    counted
}
