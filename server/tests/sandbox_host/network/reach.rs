//! What sandboxes with a policy reach, in a small internet of the test's own.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hearth::sandbox::{
    Connection, KernelPolicy, Prefix, Protocol, Refusal, RefusalReason, Report, Reports,
    SandboxError,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, sockopt};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::world::{
    HOST, OTHER_TCP, PRIVATE, PROGRAM, PUBLIC, TCP, UDP, World, harness, inside, to, with_policy,
    within,
};
use crate::harness::{Harness, fresh_pair, gateway_settings, processes_of};

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
            ("udp", false) => "EHOSTUNREACH",
            _ => "ECONNREFUSED",
        };
        assert_eq!(
            sandbox.attempt(kind, address, port).await,
            refused,
            "{kind} {address} {port}"
        );
    }
    harness.end(sandbox).await;
}

/// Whichever way a program connects: one that waits in `connect` has no use for an ICMP message, which the kernel drops while
/// the socket is in use, and would try again a second later.
#[tokio::test]
async fn a_connection_is_refused_at_its_first_packet() {
    let _world = World::enter();
    let harness = harness();
    let sandbox = with_policy(&harness, KernelPolicy::default()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let mut refused = 0;
    for address in [PUBLIC[0], PUBLIC[2], PRIVATE[0], PRIVATE[5]] {
        for timeout in ["None", "10"] {
            let code = format!("say(attempt('tcp', {address:?}, {TCP}, {timeout}))");
            let said = sandbox.run(&code).await;
            refused += 1;
            let counters = outbound.counters().await.expect("counters");
            assert_eq!(counters.refused, refused, "packets to {address}");
            assert_eq!(said, "ECONNREFUSED", "{address}");
        }
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
            "ECONNREFUSED",
            "{address}"
        );
    }
    for address in HOST {
        assert_eq!(
            sandbox.attempt("tcp", address, TCP).await,
            "ECONNREFUSED",
            "{address}"
        );
    }
    harness.end(sandbox).await;
}

#[tokio::test]
async fn sandboxes_do_not_reach_each_other() {
    let _world = World::enter();
    let harness = harness();
    let open = KernelPolicy {
        internet: true,
        allow: vec![to("0.0.0.0", 0, Protocol::Tcp, 7777)],
        ..KernelPolicy::default()
    };
    let listener = with_policy(&harness, open.clone()).await;
    let own = "say([s := socket.create_server(('0.0.0.0', 7777)), \
               os.popen('cat /proc/net/fib_trie').read()][1])";
    let routes = listener.run(own).await;
    let address = routes.as_str().and_then(|text| {
        let mut words = text.split_whitespace();
        words.rfind(|word| word.starts_with("198.19."))
    });
    let address = address.expect("an address of its own").to_owned();
    let mut spec = harness.spec();
    (spec.id, spec.uid_base) = ("under-test-2".into(), fresh_pair());
    spec.network = Some(open);
    let other = harness.create_from(spec).await;
    assert_eq!(
        listener.attempt("tcp", &address, 7777).await,
        "timeout",
        "its own, which does not echo"
    );
    assert_eq!(other.attempt("tcp", &address, 7777).await, "ECONNREFUSED");
    // Nor the gateway, nor from the host, nor from outside.
    assert_eq!(
        other.attempt("tcp", "198.19.0.1", 7777).await,
        "ECONNREFUSED"
    );
    let timeout = Duration::from_millis(500);
    let address: SocketAddr = (address.parse::<Ipv4Addr>().expect("an address"), 7777).into();
    assert!(TcpStream::connect_timeout(&address, timeout).is_err());
    other.live.destroy().await;
    harness.end(listener).await;
}

/// Neither with another sandbox's address nor with any other does a packet leave, whoever forges it.
#[tokio::test]
async fn a_forged_source_does_not_leave() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let pid = processes_of(harness.uid())[0];
    for (own, forged, address) in [
        ("0.0.0.0", "198.19.0.99", PUBLIC[0]),
        ("0.0.0.0", "93.184.216.150", PUBLIC[0]),
        ("::", "fd68:6561:7274:68::c613:63", PUBLIC[2]),
        ("::", "2606:2800:220::150", PUBLIC[2]),
    ] {
        let length = if own == "::" { 128 } else { 32 };
        inside(
            pid,
            &[
                "ip",
                "addr",
                "add",
                &format!("{forged}/{length}"),
                "dev",
                "eth0",
                "nodad",
            ],
        );
        let ask = |from: &str| {
            let socket = UdpSocket::bind((from, 0))?;
            socket.set_read_timeout(Some(Duration::from_millis(300)))?;
            socket.send_to(b"ping", (address, UDP))?;
            socket.recv_from(&mut [0; 16])
        };
        let namespace = format!("/proc/{pid}/ns/net");
        within(&namespace, || ask(own)).expect("its own address is answered");
        within(&namespace, || ask(forged)).expect_err(forged);
    }
    harness.end(sandbox).await;
}

/// Root in a sandbox, which nobody is, could send ICMP.
#[tokio::test]
async fn icmp_does_not_leave() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let pid = processes_of(harness.uid())[0];
    let kind = within(&format!("/proc/{pid}/ns/net"), || {
        let icmp = Some(rustix::net::ipproto::ICMP);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, icmp)?;
        let timeout = Some(Duration::from_secs(5));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, timeout)?;
        let to: SocketAddr = (PUBLIC[0].parse::<Ipv4Addr>().expect("an address"), 0).into();
        // An echo request with its checksum.
        let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
        rustix::net::sendto(&socket, &echo, SendFlags::empty(), &to)?;
        let mut bytes = [0; 128];
        rustix::net::recv(&socket, &mut bytes[..], RecvFlags::empty())?;
        Ok((bytes[20], bytes[21]))
    });
    assert_eq!(
        kind.expect("an answer"),
        (3, 13),
        "not an echo: administratively prohibited"
    );
    harness.end(sandbox).await;
}

#[tokio::test]
async fn without_a_policy_there_is_only_the_loopback() {
    let _world = World::enter();
    let harness = harness();
    let sandbox = harness.create().await;
    let interfaces = sandbox.run("say(socket.if_nameindex(), )").await;
    assert_eq!(interfaces, serde_json::json!([[1, "lo"]]));
    for address in [PUBLIC[0], PUBLIC[2], HOST[0], PRIVATE[0]] {
        for kind in ["tcp", "udp"] {
            assert_eq!(
                sandbox.attempt(kind, address, TCP).await,
                "ENETUNREACH",
                "{address}"
            );
        }
    }
    assert_eq!(
        sandbox.attempt("udp", "127.0.0.1", 53).await,
        "ECONNREFUSED"
    );
    let resolver = sandbox.run("say(os.path.exists('/etc/resolv.conf'))").await;
    assert_eq!(resolver, false);
    assert!(sandbox.live.outbound.is_none());
    harness.end(sandbox).await;
}

#[tokio::test]
async fn names_are_asked_for_where_the_server_listens() {
    let _world = World::enter();
    let harness = harness();
    let mut sandbox = with_policy(&harness, KernelPolicy::default()).await;
    let outbound = sandbox.live.outbound.as_mut().expect("a way out");
    let (udp, tcp) = outbound.take_resolver().expect("a resolver");
    assert!(outbound.take_resolver().is_none(), "once");
    let (udp, tcp) = (
        tokio::net::UdpSocket::from_std(udp).expect("a socket"),
        tokio::net::TcpListener::from_std(tcp).expect("a listener"),
    );
    let serve = async {
        let mut bytes = [0; 64];
        let (length, from) = udp.recv_from(&mut bytes).await.expect("a question");
        udp.send_to(&bytes[..length], from).await.expect("answered");
        tcp.accept().await.expect("a connection").0
    };
    let ask = async {
        let udp = sandbox.attempt("udp", "127.0.0.1", 53).await;
        let content = sandbox.run("say(open('/etc/resolv.conf').read())").await;
        let tcp = sandbox
            .run("kept[0] = connect('tcp', '127.0.0.1', 53); say(1)")
            .await;
        (udp, content, tcp)
    };
    let (_connection, (answer, content, tcp)) = tokio::join!(serve, ask);
    assert_eq!(answer, "ping");
    assert_eq!(content, "nameserver 127.0.0.1\n");
    assert_eq!(tcp, 1);
    harness.end(sandbox).await;
}

async fn refusal(reports: &mut Reports) -> Refusal {
    loop {
        if let Report::Refused(refusal) = reports.next().await.expect("a report") {
            return refusal;
        }
    }
}

/// Connections are reported when they begin, and with their bytes when they are over.
#[tokio::test]
async fn connections_are_reported() {
    let _world = World::enter();
    let harness = harness();
    let mut reports = harness.host.take_reports().expect("a host with a network");
    let mut connection = async || loop {
        if let Report::Connection(connection) = reports.next().await.expect("a report") {
            return connection;
        }
    };
    let policy = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out").id();
    let mut expected = Vec::new();
    for (kind, protocol, address) in [
        ("tcp", Protocol::Tcp, PUBLIC[0]),
        ("udp", Protocol::Udp, PUBLIC[1]),
        ("tcp", Protocol::Tcp, PUBLIC[2]),
        ("udp", Protocol::Udp, PUBLIC[3]),
    ] {
        assert_eq!(sandbox.attempt(kind, address, TCP).await, "ping");
        let begun = connection().await;
        let told = Connection {
            outbound,
            address: address.parse().expect("an address"),
            protocol,
            port: TCP,
            bytes: None,
        };
        assert_eq!(begun, told);
        expected.push(told);
    }
    // Nothing of what is refused is a connection.
    assert_eq!(
        sandbox.attempt("tcp", PRIVATE[0], TCP).await,
        "ECONNREFUSED"
    );
    sandbox.live.destroy().await;
    for _ in 0..expected.len() {
        let over = connection().await;
        let (out, back) = over.bytes.expect("what it has carried");
        // "ping", headers, and what begins and ends TCP.
        assert!(
            (32..1000).contains(&out) && (32..1000).contains(&back),
            "{over:?}"
        );
        let begun = Connection {
            bytes: None,
            ..over
        };
        let at = expected.iter().position(|told| *told == begun);
        expected.remove(at.expect("one that has begun"));
    }
    harness.finish().await;
}

/// What is refused is counted and reported, with its reason.
#[tokio::test]
async fn refusals_are_reported() {
    let _world = World::enter();
    let harness = harness();
    let mut reports = harness.host.take_reports().expect("a host with a network");
    let policy = KernelPolicy {
        allow: vec![to(PUBLIC[0], 32, Protocol::Tcp, TCP)],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy.clone()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ping");
    for (address, kind, port, protocol, reason) in [
        (PUBLIC[1], "tcp", 443, Protocol::Tcp, RefusalReason::Policy),
        (PUBLIC[3], "udp", 53, Protocol::Udp, RefusalReason::Policy),
        (
            PRIVATE[0],
            "tcp",
            80,
            Protocol::Tcp,
            RefusalReason::Forbidden,
        ),
        (
            PRIVATE[5],
            "udp",
            81,
            Protocol::Udp,
            RefusalReason::Forbidden,
        ),
    ] {
        sandbox.attempt(kind, address, port).await;
        let refusal = refusal(&mut reports).await;
        let expected = Refusal {
            outbound: outbound.id(),
            reason,
            address: address.parse().expect("an address"),
            protocol: Some(protocol),
            port,
        };
        assert_eq!(refusal, expected);
    }
    let counters = outbound.counters().await.expect("counters");
    assert_eq!((counters.connections, counters.refused), (1, 4));
    // SYN, ACK, "ping", FIN, and ACKs: some hundred bytes in each direction.
    assert!((200..2000).contains(&counters.bytes_out), "{counters:?}");
    assert!((150..2000).contains(&counters.bytes_in), "{counters:?}");
    assert!(
        counters.packets_out >= 4 && counters.packets_in >= 3,
        "{counters:?}"
    );

    // On trial: the same is let through, and reported; what never is allowed is refused.
    let trial = KernelPolicy {
        dry_run: true,
        ..policy
    };
    outbound.set_policy(&trial).await.expect("set");
    assert_eq!(sandbox.attempt("tcp", PUBLIC[1], TCP).await, "ping");
    assert_eq!(refusal(&mut reports).await.reason, RefusalReason::DryRun);
    assert_eq!(
        sandbox.attempt("tcp", PRIVATE[1], TCP).await,
        "ECONNREFUSED"
    );
    assert_eq!(refusal(&mut reports).await.reason, RefusalReason::Forbidden);
    harness.end(sandbox).await;
}

/// The node's administrator permits what no policy can allow otherwise; a policy has to allow it, too.
#[tokio::test]
async fn the_node_may_permit_private_addresses() {
    let _world = World::enter();
    let permitted = Prefix::new("10.9.9.0".parse().expect("an address"), 24).expect("a prefix");
    let harness = Harness::with_settings(PROGRAM, |settings| {
        settings.gateway = gateway_settings(|gateway| gateway.permitted.push(permitted));
    });
    let policy = KernelPolicy {
        allow: vec![
            to(PRIVATE[0], 32, Protocol::Tcp, TCP),
            to(PRIVATE[1], 32, Protocol::Tcp, TCP),
        ],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    assert_eq!(sandbox.attempt("tcp", PRIVATE[0], TCP).await, "ping");
    assert_eq!(
        sandbox.attempt("tcp", PRIVATE[0], OTHER_TCP).await,
        "ECONNREFUSED"
    );
    assert_eq!(
        sandbox.attempt("tcp", PRIVATE[1], TCP).await,
        "ECONNREFUSED"
    );
    // The internet is public all the same.
    let internet = KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    };
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    outbound.set_policy(&internet).await.expect("set");
    assert_eq!(
        sandbox.attempt("tcp", PRIVATE[0], TCP).await,
        "ECONNREFUSED"
    );
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ping");
    harness.end(sandbox).await;
}

/// A host that may not: it says so, sandboxes with a policy are refused, and others work.
#[tokio::test]
async fn a_host_without_the_right_says_so() {
    let _world = World::enter();
    let own = rustix::thread::capabilities(None).expect("capabilities");
    let without = CapabilitySet::NET_ADMIN;
    let fewer = CapabilitySets {
        effective: own.effective - without,
        permitted: own.permitted - without,
        inheritable: own.inheritable - without,
    };
    rustix::thread::set_capabilities(None, fewer).expect("given up");
    // For the gateway, too.
    rustix::thread::remove_capability_from_bounding_set(without).expect("given up");
    let harness = harness();
    let reason = harness
        .host
        .outbound_missing()
        .expect("a reason")
        .to_owned();
    assert!(
        reason.contains("nftables") || reason.contains("sysctl"),
        "{reason}"
    );
    assert!(harness.host.take_reports().is_none());
    let mut spec = harness.spec();
    spec.network = Some(KernelPolicy::default());
    let Err(error) = harness.host.create(spec).await else {
        panic!("a sandbox");
    };
    assert!(matches!(error, SandboxError::Missing { .. }), "{error}");
    assert!(error.to_string().contains(&reason), "{error}");
    let sandbox = harness.create().await;
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ENETUNREACH");
    harness.end(sandbox).await;
}
