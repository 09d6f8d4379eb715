//! Connections to thousands of ports reach one listening socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use hearth_ebpf::limits::Limits;
use hearth_ebpf::packet::TCP;

use crate::network::{Namespace, PATIENCE};
use crate::{can_run, load};

const PORTS: std::ops::Range<u16> = 20_000..25_000;

fn connect(namespace: &Namespace, address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().expect("an address");
    namespace.run(|| TcpStream::connect_timeout(&address, PATIENCE))
}

/// The port that a connection to `address` was accepted for.
fn reaches(namespace: &Namespace, listener: &TcpListener, address: &str) -> u16 {
    let mut client = connect(namespace, address).expect("connected");
    let (mut accepted, _) = listener.accept().expect("accepted");
    accepted.write_all(b"x").expect("written");
    let mut byte = [0];
    client.set_read_timeout(Some(PATIENCE)).expect("set");
    client.read_exact(&mut byte).expect("read");
    accepted.local_addr().expect("its address").port()
}

#[test]
fn thousands_of_ports_reach_one_listener() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::new();
    let (mut ingress, mut maps) = load();
    let ipv4 = namespace
        .run(|| TcpListener::bind("127.0.0.1:0"))
        .expect("bound");
    let ipv6 = namespace
        .run(|| TcpListener::bind("[::1]:0"))
        .expect("bound");
    ingress.steer(&namespace).expect("attached");
    maps.functions.add(1, Limits::default()).expect("added");
    for port in PORTS {
        maps.ports.give_tcp(port, 1, true).expect("given");
    }
    // Without a listener the kernel goes on as if nothing were there.
    connect(&namespace, "127.0.0.1:20000").expect_err("refused");
    maps.listeners.set(&ipv4, &ipv6).expect("set");
    for port in PORTS.step_by(97) {
        assert_eq!(
            reaches(&namespace, &ipv4, &format!("127.0.0.1:{port}")),
            port
        );
        assert_eq!(reaches(&namespace, &ipv6, &format!("[::1]:{port}")), port);
    }
    connect(&namespace, "127.0.0.1:25000").expect_err("refused: it is beyond the range");
    maps.ports.take(TCP, 20_000).expect("taken");
    connect(&namespace, "127.0.0.1:20000").expect_err("refused");
    assert_eq!(reaches(&namespace, &ipv4, "127.0.0.1:20001"), 20_001);
    // A port that is counted only is its own listener's.
    maps.ports.give_tcp(20_002, 1, false).expect("given");
    let own = namespace
        .run(|| TcpListener::bind("127.0.0.1:20002"))
        .expect("bound");
    assert_eq!(reaches(&namespace, &own, "127.0.0.1:20002"), 20_002);
    drop(ingress);
    connect(&namespace, "127.0.0.1:20001").expect_err("refused: nobody steers any more");
}

#[test]
fn only_connections_to_the_address_are_steered() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("addr add 192.0.2.7/32 dev lo");
    let (mut ingress, mut maps) = load();
    let bind = |address| namespace.run(|| TcpListener::bind(address)).expect("bound");
    let (ipv4, ipv6) = (bind("127.0.0.1:0"), bind("[::1]:0"));
    ingress.steer(&namespace).expect("attached");
    maps.functions.add(1, Limits::default()).expect("added");
    maps.ports.give_tcp(20_000, 1, true).expect("given");
    maps.listeners.set(&ipv4, &ipv6).expect("set");
    for (to, reached) in [
        ("127.0.0.1", [true, false, false]),
        ("192.0.2.7", [false, true, false]),
        ("0.0.0.0", [true, true, false]),
        ("::1", [false, false, true]),
        ("::", [true, true, true]),
    ] {
        maps.steer_to(to.parse().expect("an address")).expect("set");
        let addresses = ["127.0.0.1:20000", "192.0.2.7:20000", "[::1]:20000"];
        for (address, reached) in addresses.into_iter().zip(reached) {
            let connected = connect(&namespace, address).is_ok();
            assert_eq!(connected, reached, "{address} with {to}");
        }
    }
}

#[test]
fn a_listener_is_replaced_without_a_connection_lost() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::new();
    let (mut ingress, mut maps) = load();
    ingress.steer(&namespace).expect("attached");
    maps.functions.add(1, Limits::default()).expect("added");
    maps.ports.give_tcp(20_000, 1, true).expect("given");
    let old = namespace
        .run(|| TcpListener::bind("127.0.0.1:0"))
        .expect("bound");
    let new = namespace
        .run(|| TcpListener::bind("127.0.0.1:0"))
        .expect("bound");
    maps.listeners.set(&old, &old).expect("set");
    let mut established = connect(&namespace, "127.0.0.1:20000").expect("connected");
    let (mut accepted, _) = old.accept().expect("accepted");
    maps.listeners.set(&new, &new).expect("set");
    assert_eq!(reaches(&namespace, &new, "127.0.0.1:20000"), 20_000);
    accepted.write_all(b"y").expect("written");
    established
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("set");
    let mut byte = [0];
    established.read_exact(&mut byte).expect("read");
    assert_eq!(&byte, b"y");
}

#[test]
fn two_hearths_on_one_host_steer_their_own_ports() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::new();
    let mut hearths = Vec::new();
    for port in [20_000, 20_001] {
        let (mut ingress, mut maps) = load();
        ingress.steer(&namespace).expect("attached");
        maps.functions.add(1, Limits::default()).expect("added");
        maps.ports.give_tcp(port, 1, true).expect("given");
        let listener = namespace
            .run(|| TcpListener::bind("127.0.0.1:0"))
            .expect("bound");
        maps.listeners.set(&listener, &listener).expect("set");
        hearths.push((ingress, maps, listener));
    }
    assert_eq!(
        reaches(&namespace, &hearths[0].2, "127.0.0.1:20000"),
        20_000
    );
    assert_eq!(
        reaches(&namespace, &hearths[1].2, "127.0.0.1:20001"),
        20_001
    );
    drop(hearths.remove(0));
    assert_eq!(
        reaches(&namespace, &hearths[0].2, "127.0.0.1:20001"),
        20_001
    );
    connect(&namespace, "127.0.0.1:20000").expect_err("refused");
}
