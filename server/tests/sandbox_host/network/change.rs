//! Policies that change while connections run, and addresses that names resolve to.

use std::time::Duration;

use hearth::sandbox::{KernelPolicy, Protocol, Resolved};

use super::world::{OTHER_TCP, PUBLIC, STREAM, TCP, UDP, World, harness, to, with_policy};

fn resolved(address: &str, port: u16, ttl: Duration) -> Resolved {
    Resolved {
        address: address.parse().expect("an address"),
        protocol: Protocol::Tcp,
        ports: port..=port,
        ttl,
    }
}

#[tokio::test]
async fn a_changed_policy_cuts_what_it_does_not_allow() {
    let _world = World::enter();
    let harness = harness();
    let first = to(PUBLIC[0], 32, Protocol::Tcp, TCP);
    let policy = KernelPolicy {
        allow: vec![
            first.clone(),
            to(PUBLIC[1], 32, Protocol::Tcp, TCP),
            to(PUBLIC[1], 32, Protocol::Udp, UDP),
            to(PUBLIC[2], 128, Protocol::Tcp, TCP),
            to(PUBLIC[0], 32, Protocol::Tcp, STREAM),
        ],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let begin = format!(
        "
for key, kind, host, port in [('stays', 'tcp', {0:?}, {TCP}), ('goes', 'tcp', {1:?}, {TCP}), ('udp', 'udp', {1:?}, {UDP}),
                              ('six', 'tcp', {2:?}, {TCP}), ('waits', 'tcp', {1:?}, {TCP})]:
    kept[key] = connect(kind, host, port)
    assert echo(kept[key]) == 'ping'
kept['stream'] = connect('tcp', {0:?}, {STREAM})
# One that waits for what does not come, and one to which something comes all the time.
ends = {{}}
def wait(key, read):
    def run():
        try:
            while read(): pass
            ends[key] = 'end'
        except OSError as error: ends[key] = name(error)
    thread = threading.Thread(target=run)
    thread.start()
    return thread
threads = [wait('waits', lambda: kept['waits'].recv(1)), wait('stream', lambda: kept['stream'].recv(1 << 16))]
say('begun')",
        PUBLIC[0], PUBLIC[1], PUBLIC[2]
    );
    assert_eq!(sandbox.run(&begin).await, "begun");
    let narrow = KernelPolicy {
        allow: vec![first],
        ..KernelPolicy::default()
    };
    outbound.set_policy(&narrow).await.expect("set");
    let look = "
for thread in threads: thread.join(20)
def again(key):
    try: return echo(kept[key])
    except TimeoutError: return 'timeout'
    except OSError as error: return name(error)
say({**ends, **{key: again(key) for key in ['stays', 'goes', 'udp', 'six']}})";
    let ends = sandbox.run(look).await;
    assert_eq!(ends["stays"], "ping");
    for key in ["waits", "stream", "goes", "udp", "six"] {
        let end = ends[key].as_str().unwrap_or("nothing");
        let cut = [
            "ECONNABORTED",
            "ECONNRESET",
            "EPIPE",
            "EHOSTUNREACH",
            "EDESTADDRREQ",
        ];
        let is_cut = cut.contains(&end);
        assert!(is_cut, "{key}: {end}");
    }
    assert_eq!(sandbox.attempt("tcp", PUBLIC[1], TCP).await, "ECONNREFUSED");
    // And back again.
    let wide = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    outbound.set_policy(&wide).await.expect("set");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[1], TCP).await, "ping");
    harness.end(sandbox).await;
}

#[tokio::test]
async fn an_address_is_allowed_for_a_time() {
    let _world = World::enter();
    let harness = harness();
    let sandbox = with_policy(&harness, KernelPolicy::default()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    for address in [PUBLIC[0], PUBLIC[2]] {
        assert_eq!(sandbox.attempt("tcp", address, TCP).await, "ECONNREFUSED");
        let ip = address.parse().expect("an address");
        let ttl = Duration::from_secs(3);
        outbound
            .allow(ip, Protocol::Tcp, TCP..=TCP, ttl)
            .await
            .expect("allowed");
        assert_eq!(sandbox.attempt("tcp", address, TCP).await, "ping");
        assert_eq!(
            sandbox.attempt("tcp", address, OTHER_TCP).await,
            "ECONNREFUSED"
        );
        assert_eq!(
            sandbox.attempt("udp", address, TCP).await.len(),
            if ip.is_ipv4() { 12 } else { 6 }
        );
        let keep = format!(
            "kept[{address:?}] = connect('tcp', {address:?}, {TCP}); say(echo(kept[{address:?}]))"
        );
        assert_eq!(sandbox.run(&keep).await, "ping");
        tokio::time::sleep(ttl).await;
        assert_eq!(
            sandbox.attempt("tcp", address, TCP).await,
            "ECONNREFUSED",
            "its time is over"
        );
        let kept = sandbox.run(&format!("say(echo(kept[{address:?}]))")).await;
        assert_eq!(kept, "ping", "what has begun goes on");
    }
    // Again, and longer than it was: the second time counts. Then shorter: the first does.
    let ip = PUBLIC[1].parse().expect("an address");
    for seconds in [1, 30, 1] {
        let ttl = Duration::from_secs(seconds);
        outbound
            .allow(ip, Protocol::Tcp, TCP..=OTHER_TCP.min(TCP + 20), ttl)
            .await
            .expect("allowed");
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sandbox.attempt("tcp", PUBLIC[1], TCP).await, "ping");
    // Any port.
    outbound
        .allow(ip, Protocol::Tcp, 1..=u16::MAX, Duration::from_secs(30))
        .await
        .expect("allowed");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[1], OTHER_TCP).await, "ping");
    // What may not be.
    for (ports, ttl) in [(1..=1000, 1), (TCP..=TCP, 1 << 30), (TCP..=TCP, 0)] {
        let refused = outbound
            .allow(ip, Protocol::Tcp, ports, Duration::from_secs(ttl))
            .await;
        assert!(refused.is_err());
    }
    harness.end(sandbox).await;
}

#[tokio::test]
async fn private_addresses_are_not_allowed_by_a_name() {
    let _world = World::enter();
    let harness = harness();
    let sandbox = with_policy(&harness, KernelPolicy::default()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    for address in super::world::PRIVATE.iter().chain(&super::world::HOST[2..]) {
        let ip = address.parse().expect("an address");
        // Whatever the server believes.
        let ttl = Duration::from_secs(30);
        outbound
            .allow(ip, Protocol::Tcp, TCP..=TCP, ttl)
            .await
            .expect("asked");
        assert_eq!(
            sandbox.attempt("tcp", address, TCP).await,
            "ECONNREFUSED",
            "{address}"
        );
    }
    harness.end(sandbox).await;
}

#[tokio::test]
async fn a_replaced_policy_keeps_what_it_names() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        resolved: vec![
            resolved(PUBLIC[0], TCP, Duration::from_secs(60)),
            resolved(PUBLIC[1], TCP, Duration::from_secs(60)),
            resolved(PUBLIC[2], TCP, Duration::from_secs(60)),
        ],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    for address in &PUBLIC[..3] {
        let keep = format!(
            "kept[{address:?}] = connect('tcp', {address:?}, {TCP}); say(echo(kept[{address:?}]))"
        );
        assert_eq!(sandbox.run(&keep).await, "ping");
    }
    // The first may go on and begin, the second only go on, the third neither.
    let replaced = KernelPolicy {
        resolved: vec![
            resolved(PUBLIC[0], TCP, Duration::from_secs(60)),
            resolved(PUBLIC[1], TCP, Duration::ZERO),
        ],
        ..KernelPolicy::default()
    };
    outbound.set_policy(&replaced).await.expect("set");
    let mut came = Vec::new();
    for address in &PUBLIC[..3] {
        let again = format!(
            "
try: say(echo(kept[{address:?}]))
except OSError as error: say('cut')"
        );
        let kept = sandbox.run(&again).await;
        came.push((
            kept.as_str().unwrap_or("").to_owned(),
            sandbox.attempt("tcp", address, TCP).await,
        ));
    }
    let text: Vec<_> = came
        .iter()
        .map(|(kept, new)| (kept.as_str(), new.as_str()))
        .collect();
    assert_eq!(
        text,
        [
            ("ping", "ping"),
            ("ping", "ECONNREFUSED"),
            ("cut", "ECONNREFUSED")
        ]
    );
    harness.end(sandbox).await;
}
