//! The way past the rules: that connections take it, what holds there, and what closes it. The other tests hold on it, too.

use std::time::Duration;

use hearth::sandbox::{
    Connection, Counters, KernelPolicy, NetworkLimits, Protocol, Report, Resolved,
};
use hearth_testkit::skipped::skip;
use hearth_testkit::wait;

use super::world::{OTHER_TCP, PUBLIC, TCP, World, harness, streamed, to, with_policy};
use crate::harness::{Harness, Running, TIMEOUT, until};

/// Longer than it takes a gateway to join a sandbox to the host.
const JOIN: Duration = Duration::from_secs(2);

/// A port at which a firewall outside answers with an ICMP error.
const PROHIBITED: u16 = 7000;
/// Sends so much, gets it back, and compares.
const ECHO: &str = "
def carried(s, size=3_000_000):
    sent = os.urandom(size)
    threading.Thread(target=s.sendall, args=(sent,)).start()
    got = b''
    while len(got) < size: got += s.recv(1 << 16)
    return got == sent
say('ready')";

async fn counters(sandbox: &Running) -> Counters {
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    outbound.counters().await.expect("counters")
}

/// What a sandbox has used when its connections begin to go past the rules: no start waits for that. Nothing if this host has no
/// such way, which counts the test as skipped.
async fn is_there(harness: &Harness, sandbox: &Running) -> Option<Counters> {
    let fast = || {
        let mut all = harness.host.capabilities().into_iter();
        all.find(|capability| capability.name == "network_fast")
    };
    let opened = until("it is open", || fast().is_some_and(|fast| fast.available));
    if tokio::time::timeout(JOIN, opened).await.is_err() {
        let reason = fast().and_then(|fast| fast.reason).unwrap_or_default();
        skip(&reason);
        return None;
    }
    wait::eventually("its program is attached", TIMEOUT, || async {
        let (came, is_fast) = attempt(sandbox, PUBLIC[1], TCP).await;
        assert_eq!(came, "ping");
        is_fast.then_some(())
    })
    .await;
    Some(counters(sandbox).await)
}

/// How many connections the host's own namespace follows.
fn tracked(world: &World) -> u64 {
    let count = world.look("cat", &["/proc/sys/net/netfilter/nf_conntrack_count"]);
    count.trim().parse().expect("a number")
}

fn internet() -> KernelPolicy {
    KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    }
}

/// What comes of a connection, and whether it went past the rules.
async fn attempt(sandbox: &Running, address: &str, port: u16) -> (String, bool) {
    let before = counters(sandbox).await.fast;
    let came = sandbox.attempt("tcp", address, port).await;
    (came, counters(sandbox).await.fast > before)
}

#[tokio::test]
async fn connections_go_past_the_rules_and_obey_them() {
    let world = World::enter();
    let harness = harness();
    let mut reports = harness.host.take_reports().expect("a host with a network");
    let sandbox = with_policy(&harness, internet()).await;
    let Some(first) = is_there(&harness, &sandbox).await else {
        return harness.end(sandbox).await;
    };
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let tracked_first = tracked(&world);
    let wall = format!(
        "table inet wall {{ chain in {{ type filter hook input priority 0;
            tcp dport {PROHIBITED} reject with icmpx admin-prohibited; }}; }}"
    );
    world.outside.look("nft", &[&wall]).expect("nft");
    assert_eq!(sandbox.run(ECHO).await, "ready");
    for address in [PUBLIC[0], PUBLIC[2]] {
        // The first shows the way.
        assert_eq!(
            attempt(&sandbox, address, TCP).await,
            ("ping".to_owned(), false)
        );
        assert_eq!(
            attempt(&sandbox, address, TCP).await,
            ("ping".to_owned(), true)
        );
        let carried = format!(
            "kept[{address:?}] = connect('tcp', {address:?}, {TCP}); say(carried(kept[{address:?}]))"
        );
        assert_eq!(sandbox.run(&carried).await, true, "{address}");
        // An ICMP error of the world, which quotes what the host has sent.
        let error = if address.contains(':') {
            "EACCES"
        } else {
            "EHOSTUNREACH"
        };
        let prohibited = attempt(&sandbox, address, PROHIBITED).await;
        assert_eq!(prohibited, (error.to_owned(), true), "{address}");
    }
    let counted = counters(&sandbox).await;
    assert_eq!(
        (
            counted.connections - first.connections,
            counted.fast - first.fast,
            counted.refused
        ),
        (8, 6, 0)
    );
    assert!(
        counted.bytes_out > 6_000_000 && counted.bytes_in > 6_000_000,
        "{counted:?}"
    );
    let by_rules = tracked(&world) - tracked_first;
    assert_eq!(by_rules, 2, "those that went by the rules");

    // A policy that allows one of them cuts the other.
    let narrow = KernelPolicy {
        allow: vec![to(PUBLIC[0], 32, Protocol::Tcp, TCP)],
        ..KernelPolicy::default()
    };
    outbound.set_policy(&narrow).await.expect("set");
    let again = |address: &str| {
        format!(
            "
try: say(echo(kept[{address:?}]))
except OSError as error: say('cut')"
        )
    };
    assert_eq!(sandbox.run(&again(PUBLIC[0])).await, "ping");
    assert_eq!(sandbox.run(&again(PUBLIC[2])).await, "cut");
    assert_eq!(
        attempt(&sandbox, PUBLIC[0], TCP).await,
        ("ping".to_owned(), true)
    );
    for (address, port) in [(PUBLIC[0], OTHER_TCP), (PUBLIC[2], TCP)] {
        let refused = ("ECONNREFUSED".to_owned(), false);
        assert_eq!(
            attempt(&sandbox, address, port).await,
            refused,
            "{address} {port}"
        );
    }
    // A name's address, until it expires.
    let by_name = KernelPolicy {
        resolved: vec![Resolved {
            address: PUBLIC[2].parse().expect("an address"),
            protocol: Protocol::Tcp,
            ports: TCP..=TCP,
            ttl: Duration::from_secs(2),
        }],
        ..KernelPolicy::default()
    };
    outbound.set_policy(&by_name).await.expect("set");
    let before = counters(&sandbox).await.fast;
    assert_eq!(
        attempt(&sandbox, PUBLIC[2], TCP).await,
        ("ping".to_owned(), true)
    );
    wait::eventually("it expires", TIMEOUT, || async {
        let (came, _) = attempt(&sandbox, PUBLIC[2], TCP).await;
        assert!(came == "ping" || came == "ECONNREFUSED", "{came}");
        (came == "ECONNREFUSED").then_some(())
    })
    .await;
    assert_eq!(before - first.fast, 7);

    // All that began is told of, and all that is over, with its bytes.
    let fast = counters(&sandbox).await.fast;
    let expected = 2 * counters(&sandbox).await.connections;
    sandbox.live.destroy().await;
    let (mut begun, mut over) = (0, Vec::new());
    while begun + over.len() as u64 != expected {
        let next = tokio::time::timeout(TIMEOUT, reports.next());
        match next.await.expect("in time").expect("a report") {
            Report::Connection(Connection { bytes: None, .. }) => begun += 1,
            Report::Connection(Connection {
                bytes: Some(bytes), ..
            }) => over.push(bytes),
            Report::Refused(_) => {}
        }
    }
    assert_eq!(begun, expected / 2);
    assert!(fast > before);
    let large = over
        .iter()
        .filter(|(out, back)| *out > 3_000_000 && *back > 3_000_000);
    assert_eq!(large.count(), 2, "{over:?}");
    harness.finish().await;
}

#[tokio::test]
async fn both_ways_share_limits() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        connections: 4,
        ..NetworkLimits::default()
    };
    let limited = |limits| KernelPolicy {
        limits,
        ..internet()
    };
    let sandbox = with_policy(&harness, internet()).await;
    let Some(first) = is_there(&harness, &sandbox).await else {
        return harness.end(sandbox).await;
    };
    // Those that were open when it changes do not count.
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    outbound.set_policy(&limited(limits)).await.expect("set");
    // By the rules: one of each kind. Past them: one, two.
    let open = format!(
        "
kept[0] = connect('tcp', {0:?}, {TCP}); echo(kept[0])
kept[1] = connect('udp', {0:?}, 53); echo(kept[1])
kept[2] = connect('tcp', {0:?}, {TCP}); echo(kept[2])
kept[3] = connect('tcp', {0:?}, {TCP}); echo(kept[3])
say([attempt('tcp', {0:?}, {TCP}), attempt('tcp', {1:?}, {TCP}), attempt('udp', {0:?}, 53)])",
        PUBLIC[0], PUBLIC[1]
    );
    let refused = serde_json::json!(["ECONNREFUSED", "ECONNREFUSED", "EHOSTUNREACH"]);
    assert_eq!(sandbox.run(&open).await, refused);
    let counted = counters(&sandbox).await;
    assert_eq!(
        (
            counted.connections - first.connections,
            counted.fast - first.fast,
            counted.refused
        ),
        (4, 2, 3)
    );
    // One that is over makes room, whichever way it went.
    for kept in [0, 2] {
        let close = format!(
            "
import struct
kept[{kept}].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
kept.pop({kept}).close()
say(attempt('tcp', {:?}, {TCP}))",
            PUBLIC[0]
        );
        assert_eq!(sandbox.run(&close).await, "ping");
    }
    // Bytes a second, of what passes the rules, too.
    let rate = 2_000_000;
    let limits = NetworkLimits {
        bytes_per_second: rate,
        ..NetworkLimits::default()
    };
    outbound.set_policy(&limited(limits)).await.expect("set");
    let before = counters(&sandbox).await.fast;
    let (got, seconds) = streamed(&sandbox).await;
    let most = rate as f64 * (seconds + 1.0) + f64::from(1 << 20);
    assert!(got > 100_000.0 && got < most, "{got} bytes in {seconds} s");
    assert_eq!(counters(&sandbox).await.fast, before + 1);
    harness.end(sandbox).await;
}

/// Rules that others have on the host hold for all connections: these do not go past them.
#[tokio::test]
async fn a_firewall_of_the_host_closes_it() {
    let world = World::enter();
    let harness = harness();
    let sandbox = with_policy(&harness, internet()).await;
    let Some(first) = is_there(&harness, &sandbox).await else {
        return harness.end(sandbox).await;
    };
    let ping = |is_fast: bool| ("ping".to_owned(), is_fast);
    assert_eq!(attempt(&sandbox, PUBLIC[0], TCP).await, ping(false));
    let keep = format!(
        "kept[0] = connect('tcp', {:?}, {TCP}); say(echo(kept[0]))",
        PUBLIC[0]
    );
    assert_eq!(sandbox.run(&keep).await, "ping");
    assert_eq!(counters(&sandbox).await.fast - first.fast, 1);
    let is_open = || {
        let mut all = harness.host.capabilities().into_iter();
        let fast = all.find(|capability| capability.name == "network_fast");
        fast.is_some_and(|fast| fast.available)
    };
    // A table that does nothing changes nothing.
    world.look(
        "nft",
        &["table inet guard { chain out { type filter hook forward priority 10; }; }"],
    );
    assert_eq!(attempt(&sandbox, PUBLIC[0], TCP).await, ping(true));
    let rule = format!("add rule inet guard out tcp dport {OTHER_TCP} drop");
    world.look("nft", &[&rule]);
    until("it is closed", || !is_open()).await;
    assert_eq!(attempt(&sandbox, PUBLIC[0], TCP).await, ping(false));
    let closed = "
try: say(echo(kept[0]))
except OSError as error: say(name(error))";
    assert_eq!(sandbox.run(closed).await, "ECONNRESET");
    let dropped = format!("say(attempt('tcp', {:?}, {OTHER_TCP}, 0.3))", PUBLIC[0]);
    assert_eq!(sandbox.run(&dropped).await, "timeout");
    world.look("nft", &["delete table inet guard"]);
    until("it is open", is_open).await;
    // The way that it knew may have been forgotten meanwhile.
    assert_eq!(attempt(&sandbox, PUBLIC[0], TCP).await.0, "ping");
    assert_eq!(attempt(&sandbox, PUBLIC[0], TCP).await, ping(true));
    harness.end(sandbox).await;
}
