//! The kernel's limits on what one sandbox uses.

use hearth::sandbox::{KernelPolicy, NetworkLimits, Protocol};

use super::world::{PUBLIC, STREAM, TCP, World, harness, to, with_policy};

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
        "EHOSTUNREACH",
        "EHOSTUNREACH",
    ];
    assert_eq!(came, serde_json::json!(expected));
    // A policy with the same limits does not forget what it has counted; another one counts anew.
    outbound.set_policy(&limited(limits)).await.expect("set");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "EHOSTUNREACH");
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
say((came.count('ping'), came.count('EHOSTUNREACH'), time.monotonic() - begun))",
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
    let read = format!(
        "
begun = time.monotonic()
s = connect('tcp', {:?}, {STREAM})
got = 0
while time.monotonic() - begun < 2: got += len(s.recv(1 << 16))
say((got, time.monotonic() - begun))",
        PUBLIC[0]
    );
    let came = sandbox.run(&read).await;
    let (got, seconds) = (
        came[0].as_f64().expect("bytes"),
        came[1].as_f64().expect("seconds"),
    );
    // What is saved up in a second, and some.
    let most = rate as f64 * (seconds + 1.0) + f64::from(1 << 20);
    assert!(got > 100_000.0 && got < most, "{got} bytes in {seconds} s");
    // Without it, the same takes a moment.
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    outbound
        .set_policy(&limited(NetworkLimits::default()))
        .await
        .expect("set");
    let came = sandbox.run(&read).await;
    assert!(came[0].as_f64().expect("bytes") > 2.0 * most, "{came}");
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
