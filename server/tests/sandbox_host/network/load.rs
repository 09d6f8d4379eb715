//! Thousands of connections, and policies that change under them.

use std::time::Duration;

use hearth::sandbox::{KernelPolicy, NetworkLimits, Protocol};

use super::world::{PUBLIC, TCP, World, harness, to, with_policy};

/// Connections to each of three addresses.
const EACH: usize = 1000;
/// Changes of the policy meanwhile.
const CHANGES: usize = 20;

/// Opens and uses many, then uses those again. One thread opens new ones all the time.
const PROGRAM: &str = "
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
def open_all(host, port, count):
    kept[host] = [connect('tcp', host, port) for _ in range(count)]
    return sum(echo(s) == 'ping' for s in kept[host])
def alive(host):
    count = 0
    for s in kept[host]:
        try: count += echo(s) == 'ping'
        except TimeoutError: raise
        except OSError: pass
    return count
failed, done, is_over = [], 0, threading.Event()
def keep_connecting(host, port):
    global done
    while not is_over.is_set():
        came = attempt('tcp', host, port)
        if came == 'ping': done += 1
        else: failed.append(came)
say('ready')";

#[tokio::test]
async fn thousands_of_connections_outlive_changes_that_allow_them() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        connections: 10_000,
        new_per_second: 100_000,
        bytes_per_second: 0,
    };
    // The first is always allowed. The second is, by one rule or another, until the last change; the third sometimes.
    let policy = |others: &[&str]| KernelPolicy {
        allow: [PUBLIC[0]]
            .iter()
            .chain(others)
            .map(|address| {
                let length = if address.contains(':') { 128 } else { 32 };
                to(address, length, Protocol::Tcp, TCP)
            })
            .collect(),
        limits,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy(&[PUBLIC[1], PUBLIC[2]])).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    assert_eq!(sandbox.run(PROGRAM).await, "ready");
    for address in &PUBLIC[..3] {
        let opened = sandbox
            .run(&format!("say(open_all({address:?}, {TCP}, {EACH}))"))
            .await;
        assert_eq!(opened, EACH, "{address}");
    }
    let counters = outbound.counters().await.expect("counters");
    // A handshake that has to begin again counts again.
    assert!(counters.connections >= 3 * EACH as u64, "{counters:?}");
    let begin = format!(
        "busy = threading.Thread(target=keep_connecting, args=({:?}, {TCP})); busy.start(); say('begun')",
        PUBLIC[0]
    );
    assert_eq!(sandbox.run(&begin).await, "begun");
    let wide = KernelPolicy {
        internet: true,
        ..policy(&[])
    };
    for change in 0..CHANGES {
        let next = match change % 2 {
            0 => wide.clone(),
            _ => policy(&[PUBLIC[1], PUBLIC[2]]),
        };
        outbound.set_policy(&next).await.expect("set");
    }
    for (others, alive) in [(&PUBLIC[1..2], [EACH, EACH, 0]), (&[][..], [EACH, 0, 0])] {
        outbound.set_policy(&policy(others)).await.expect("set");
        for (address, expected) in PUBLIC.iter().zip(alive) {
            let alive = sandbox.run(&format!("say(alive({address:?}))")).await;
            assert_eq!(alive, expected, "{address}");
        }
    }
    let end = "is_over.set(); busy.join(); say((done, failed))";
    let came = sandbox.run(end).await;
    assert!(came[0].as_u64().is_some_and(|done| done > 100), "{came}");
    assert_eq!(came[1], serde_json::json!([]), "no new connection failed");
    harness.end(sandbox).await;
}

/// Datagrams that nobody answers are as many as connections may be, too, over both families.
#[tokio::test]
async fn a_flood_of_datagrams_is_bounded() {
    let _world = World::enter();
    let harness = harness();
    let limits = NetworkLimits {
        connections: 50,
        ..NetworkLimits::default()
    };
    let policy = KernelPolicy {
        internet: true,
        limits,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    // One socket, so that each destination is another flow. Nobody has these ports.
    let flood = |host: &str, family: &str| {
        format!(
            "
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
for port in range(20000, 20600):
    try: s.sendto(b'x', ({host:?}, port))
    except OSError: pass
say('sent')"
        )
    };
    for (host, family) in [(PUBLIC[0], "AF_INET"), (PUBLIC[2], "AF_INET6")] {
        assert_eq!(sandbox.run(&flood(host, family)).await, "sent");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let counters = outbound.counters().await.expect("counters");
    assert_eq!(counters.connections, 50, "of both families together");
    assert!(counters.refused >= 1100, "{counters:?}");
    harness.end(sandbox).await;
}
