//! What sandboxes with a policy reach, in a small internet of the test's own.

use hearth::sandbox::{KernelPolicy, Protocol};

use crate::world::{HOST, OTHER_TCP, PRIVATE, PUBLIC, TCP, UDP, World, harness, to, with_policy};

/// What is allowed is reached, over both protocols and families; everything else is refused at once.
#[tokio::test]
async fn what_is_allowed_is_reached_and_nothing_else() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        allow: vec![
            to(PUBLIC[0], 32, Protocol::Tcp, TCP),
            to(PUBLIC[0], 32, Protocol::Udp, UDP),
            to(PUBLIC[2], 128, Protocol::Tcp, TCP),
            to(PUBLIC[2], 128, Protocol::Udp, UDP),
        ],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    for address in [PUBLIC[0], PUBLIC[2]] {
        assert_eq!(
            sandbox.attempt("tcp", address, TCP).await,
            "ping",
            "{address}"
        );
        assert_eq!(
            sandbox.attempt("udp", address, UDP).await,
            "ping",
            "{address}"
        );
    }
    // Another port, the same port of another protocol, another address.
    for (kind, address, port) in [
        ("tcp", PUBLIC[0], OTHER_TCP),
        ("udp", PUBLIC[0], TCP),
        ("tcp", PUBLIC[0], UDP),
        ("tcp", PUBLIC[1], TCP),
        ("udp", PUBLIC[1], UDP),
        ("tcp", PUBLIC[2], OTHER_TCP),
        ("tcp", PUBLIC[3], TCP),
        ("udp", PUBLIC[3], UDP),
    ] {
        let refused = match (kind, address.contains(':')) {
            ("udp", true) => "EACCES",
            _ => "EHOSTUNREACH",
        };
        assert_eq!(
            sandbox.attempt(kind, address, port).await,
            refused,
            "{kind} {address} {port}"
        );
    }
    harness.end(sandbox).await;
}

#[tokio::test]
async fn the_internet_is_all_that_is_public() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    for address in PUBLIC {
        assert_eq!(
            sandbox.attempt("tcp", address, OTHER_TCP).await,
            "ping",
            "{address}"
        );
        assert_eq!(
            sandbox.attempt("udp", address, UDP).await,
            "ping",
            "{address}"
        );
    }
    for address in PRIVATE {
        assert_eq!(
            sandbox.attempt("tcp", address, TCP).await,
            "EHOSTUNREACH",
            "{address}"
        );
    }
    for address in HOST {
        let answer = sandbox.attempt("tcp", address, TCP).await;
        assert!(
            ["EHOSTUNREACH", "ECONNREFUSED"].contains(&answer.as_str()),
            "{address}: {answer}"
        );
    }
    harness.end(sandbox).await;
}
