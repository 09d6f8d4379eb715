//! The kernel's limits on what one sandbox uses, and those of a group.

use std::time::Duration;

use hearth::sandbox::{KernelPolicy, NetworkLimits, Protocol};

use super::world::{PUBLIC, STREAM, TCP, World, harness, streamed, to, with_policy};
use crate::harness::{Harness, Running, fresh_pair};

/// An address at which nobody answers at all.
const SILENT: &str = "93.184.216.200";

fn limited(limits: NetworkLimits) -> KernelPolicy {
    KernelPolicy {
        allow: vec![
            to("93.184.216.0", 24, Protocol::Tcp, TCP),
            to("93.184.216.0", 24, Protocol::Tcp, STREAM),
        ],
        limits,
        ..KernelPolicy::default()
    }
}

#[tokio::test]
async fn so_many_connections_at_a_time() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        connections: 5,
        ..NetworkLimits::default()
    };
    let sandbox = with_policy(&harness, limited(limits)).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let six = format!(
        "
def open_many(count):
    came = []
    for number in range(count):
        try:
            kept[number] = connect('tcp', {:?}, {TCP})
            came.append(echo(kept[number]))
        except OSError as error: came.append(name(error))
    return came
say(open_many(7))",
        PUBLIC[0]
    );
    let came = sandbox.run(&six).await;
    let expected = [
        "ping",
        "ping",
        "ping",
        "ping",
        "ping",
        "ECONNREFUSED",
        "ECONNREFUSED",
    ];
    assert_eq!(came, serde_json::json!(expected));
    // A policy with the same limits does not forget what it has counted; another one counts anew.
    outbound.set_policy(&limited(limits)).await.expect("set");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ECONNREFUSED");
    // A connection that is over makes room for another.
    let closed = "
import struct
kept[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
kept.pop(0).close()
# The kernel looks for connections that are over once a tick.
time.sleep(0.1)
say('closed')";
    assert_eq!(sandbox.run(closed).await, "closed");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ping");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn so_many_new_ones_a_second() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        new_per_second: 10,
        ..NetworkLimits::default()
    };
    let sandbox = with_policy(&harness, limited(limits)).await;
    let many = format!(
        "
begun = time.monotonic()
came = [attempt('tcp', {:?}, {TCP}) for _ in range(200)]
say((came.count('ping'), came.count('ECONNREFUSED'), time.monotonic() - begun))",
        PUBLIC[0]
    );
    let came = sandbox.run(&many).await;
    let number = |at: usize| came[at].as_f64().expect("a number");
    let most = 10.0 + 10.0 * number(2) + 1.0;
    assert!((10.0..=most).contains(&number(0)), "{came}");
    assert!((number(0) + number(1) - 200.0).abs() < 0.1, "{came}");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn so_many_bytes_a_second() {
    let _world = World::enter();
    let harness = harness();
    let rate = 2_000_000;
    let limits = NetworkLimits {
        bytes_per_second: rate,
        ..NetworkLimits::default()
    };
    let sandbox = with_policy(&harness, limited(limits)).await;
    let (got, seconds) = streamed(&sandbox).await;
    // What is saved up in a second, and some.
    let most = rate as f64 * (seconds + 1.0) + f64::from(1 << 20);
    assert!(got > 100_000.0 && got < most, "{got} bytes in {seconds} s");
    // Without it, the same takes a moment.
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    outbound
        .set_policy(&limited(NetworkLimits::default()))
        .await
        .expect("set");
    let (got, _) = streamed(&sandbox).await;
    assert!(got > 2.0 * most, "{got} bytes");
    harness.end(sandbox).await;
}

/// Connections that nobody answers are as many as connections may be.
#[tokio::test]
async fn a_flood_of_half_open_connections_is_bounded() {
    let world = World::enter();
    // Frames to another hardware address than its own are dropped without an answer.
    world.in_host(&format!(
        "neigh add {SILENT} lladdr 02:00:00:00:00:99 dev wan"
    ));
    let harness = harness();
    let limits = NetworkLimits {
        connections: 50,
        ..NetworkLimits::default()
    };
    let sandbox = with_policy(&harness, limited(limits)).await;
    let flood = format!(
        "
import select
waiting = {{}}
for number in range(600):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(({SILENT:?}, {TCP}))
    waiting[s.fileno()] = s
time.sleep(0.5)
refused = sum(1 for s in waiting.values() if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
say((refused, len(waiting)))"
    );
    let came = sandbox.run(&flood).await;
    assert_eq!(came, serde_json::json!([550, 600]));
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let counters = outbound.counters().await.expect("counters");
    assert_eq!(counters.connections, 50);
    assert!(counters.refused >= 550, "{counters:?}");
    harness.end(sandbox).await;
}

/// Like those of a function that cannot fork: each instance has a sandbox.
async fn in_group(harness: &Harness, group: u64, limits: NetworkLimits) -> Running {
    let mut spec = harness.spec();
    spec.uid_base = fresh_pair();
    spec.network = Some(KernelPolicy {
        group,
        ..limited(limits)
    });
    harness.create_from(spec).await
}

/// How many of so many new connections are made, which are kept.
async fn opened(sandbox: &Running, count: usize) -> u64 {
    let open = format!(
        "
made = 0
for number in range({count}):
    try:
        s = connect('tcp', {:?}, {TCP})
        echo(s)
        kept[len(kept)] = s
        made += 1
    except OSError: pass
say(made)",
        PUBLIC[0]
    );
    sandbox.run(&open).await.as_u64().expect("a number")
}

#[tokio::test]
async fn sandboxes_of_a_group_share_connections() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        connections: 5,
        ..NetworkLimits::default()
    };
    let first = in_group(&harness, 1, limits).await;
    let second = in_group(&harness, 1, limits).await;
    let other = in_group(&harness, 2, limits).await;
    assert_eq!(opened(&first, 3).await, 3);
    assert_eq!(opened(&second, 4).await, 2, "of five");
    assert_eq!(opened(&other, 6).await, 5, "another group has its own");
    // What each has used, and was refused, is its own.
    for (sandbox, expected) in [(&first, (3, 0)), (&second, (2, 2))] {
        let outbound = sandbox.live.outbound.as_ref().expect("a way out");
        let counted = outbound.counters().await.expect("counters");
        assert_eq!((counted.connections, counted.refused), expected);
    }
    // Other rules, and another limit of bytes, keep the count.
    for (sandbox, bytes_per_second) in [(&first, 0), (&first, 1 << 30), (&second, 1 << 30)] {
        let policy = KernelPolicy {
            group: 1,
            ..limited(NetworkLimits {
                bytes_per_second,
                ..limits
            })
        };
        let way = sandbox.live.outbound.as_ref().expect("a way out");
        way.set_policy(&policy).await.expect("set");
        assert_eq!(opened(&second, 1).await, 0);
    }
    // What ends leaves its share to the others.
    first.live.destroy().await;
    let mut more = 0;
    for _ in 0..100 {
        more += opened(&second, 4).await;
        if more == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(more, 3, "the other's connections are gone");
    assert_eq!(opened(&second, 1).await, 0);
    second.live.destroy().await;
    harness.end(other).await;
}

#[tokio::test]
async fn sandboxes_of_a_group_share_rates() {
    let _world = World::enter();
    let harness = harness();
    let bytes = NetworkLimits {
        bytes_per_second: 2_000_000,
        ..NetworkLimits::default()
    };
    let new = NetworkLimits {
        new_per_second: 10,
        ..NetworkLimits::default()
    };
    let both = [
        in_group(&harness, 1, bytes).await,
        in_group(&harness, 1, bytes).await,
    ];
    // What both have together, and for how long.
    let work = async |work: &str| {
        let work = format!(
            "\nbegun = time.monotonic()\ncount = 0\n{work}\nsay((count, time.monotonic() - begun))"
        );
        let (first, second) = tokio::join!(both[0].run(&work), both[1].run(&work));
        let of = |at: usize| [&first, &second].map(|came| came[at].as_f64().expect("a number"));
        (of(0).iter().sum::<f64>(), of(1)[0].max(of(1)[1]))
    };
    let read = format!(
        "
s = connect('tcp', {:?}, {STREAM})
while time.monotonic() - begun < 3: count += len(s.recv(1 << 16))
s.close()",
        PUBLIC[0]
    );
    let (count, seconds) = work(&read).await;
    // What one may, and what is saved up in a second and a burst.
    let most = 2_000_000.0 * (seconds + 1.0) + f64::from(1 << 20);
    assert!(count > 100_000.0 && count < most, "{count} in {seconds} s");
    for sandbox in &both {
        let outbound = sandbox.live.outbound.as_ref().expect("a way out");
        let policy = KernelPolicy {
            group: 1,
            ..limited(new)
        };
        outbound.set_policy(&policy).await.expect("set");
    }
    let connect = format!(
        "while time.monotonic() - begun < 3: count += attempt('tcp', {:?}, {TCP}) == 'ping'",
        PUBLIC[0]
    );
    let (count, seconds) = work(&connect).await;
    let most = 10.0 + 10.0 * (seconds + 0.5);
    assert!(count > 10.0 && count <= most, "{count} in {seconds} s");
    for sandbox in both {
        sandbox.live.destroy().await;
    }
    harness.finish().await;
}
