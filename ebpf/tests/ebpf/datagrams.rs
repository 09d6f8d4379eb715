//! Datagrams by AF_XDP: received, answered, and left to the stack where there is no socket for them.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hearth_ebpf::datagram::{Checksum, Datagram};
use hearth_ebpf::limits::Limits;
use hearth_ebpf::xsk::{self, Layout, Socket};
use hearth_ebpf::{Ingress, Maps, Mode, Wanted, clock};
use hearth_testkit::skipped::skip;

use crate::network::{Namespace, PATIENCE, Wire};
use crate::{can_run, load};

const PORT: u16 = 7000;
/// How long nothing is waited for.
const QUIET: Duration = Duration::from_millis(50);

/// The ingress at `h0` of a wire, with a socket on its queue.
struct World {
    wire: Wire,
    ingress: Ingress,
    maps: Maps,
    socket: Socket,
}

fn world(mode: Mode) -> Option<World> {
    if !can_run() {
        return None;
    }
    let wire = Wire::new();
    let (mut ingress, mut maps) = load();
    let opened = wire.host.run(|| {
        ingress.attach("h0", Wanted::Only(mode)).expect("attached");
        xsk::open(wire.host.index("h0"), 0, Layout::default())
    });
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            skip(&format!("no AF_XDP on this host: {error}"));
            return None;
        }
    };
    let largest = opened.layout.largest_packet();
    maps.set((32, 64), largest, false).expect("set");
    maps.set_socket(0, wire.host.index("h0"), 0, &opened.socket)
        .expect("in the map");
    maps.functions.add(1, Limits::default()).expect("added");
    maps.ports.give_udp(PORT, 1, true).expect("given");
    Some(World {
        wire,
        ingress,
        maps,
        socket: Socket::new(opened).expect("taken over"),
    })
}

/// A socket in a namespace that gives up after a time.
fn udp(namespace: &Namespace, address: &str) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind(address)).expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    socket
}

/// Waits for frames, and has each of them looked at.
fn frames(socket: &mut Socket, count: usize, mut each: impl FnMut(xsk::Received<'_>)) {
    let end = Instant::now() + PATIENCE;
    let mut received = 0;
    while received < count {
        assert!(Instant::now() < end, "{received} of {count} frames came");
        received += socket.receive(64, &mut each);
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn answered(mode: Mode) {
    let Some(World {
        wire,
        ingress: _ingress,
        maps,
        mut socket,
    }) = world(mode)
    else {
        return;
    };
    for (client, server) in [
        ("192.0.2.1:0", "192.0.2.2:7000"),
        ("[2001:db8::1]:0", "[2001:db8::2]:7000"),
    ] {
        let client = udp(&wire.client, client);
        let address: SocketAddr = client.local_addr().expect("its address");
        // More than there are frames: they are used again.
        for turn in 0..3_000_u32 {
            let sent = clock::now();
            client.send_to(&turn.to_be_bytes(), server).expect("sent");
            let mut whole = Vec::new();
            frames(&mut socket, 1, |received| {
                let stamp = received.stamp.expect("a stamp");
                assert_eq!(stamp.function, 1);
                assert!((sent..=clock::now()).contains(&stamp.time));
                whole = received.frame.to_vec();
            });
            let datagram = Datagram::parse(&whole).expect("a datagram");
            assert_eq!(datagram.source(), address);
            assert_eq!(datagram.destination().to_string(), server);
            assert_eq!(datagram.payload(), turn.to_be_bytes());
            assert!(matches!(
                datagram.checksum(),
                Checksum::Valid | Checksum::Partial
            ));
            assert!(socket.send(|frame| datagram.reply(b"yes", frame)));
            socket.kick().expect("sent");
            let mut buffer = [0; 16];
            let (length, from) = client.recv_from(&mut buffer).expect("a reply");
            assert_eq!(
                (&buffer[..length], from.to_string().as_str()),
                (&b"yes"[..], server)
            );
        }
    }
    let received = maps.functions.traffic(1).expect("counters")[0];
    assert_eq!((received.starts, received.redirected), (6_000, 6_000));
    assert_eq!(maps.node().expect("counters").no_socket, 0);
    let statistics = socket.statistics().expect("statistics");
    assert_eq!(statistics.rx_dropped, 0);
}

#[test]
fn datagrams_are_received_and_answered_in_the_driver() {
    answered(Mode::Native);
}

#[test]
fn datagrams_are_received_and_answered_in_the_stack() {
    answered(Mode::Generic);
}

#[test]
fn the_stack_gets_what_no_socket_takes() {
    let Some(World {
        wire,
        mut ingress,
        mut maps,
        mut socket,
    }) = world(Mode::Native)
    else {
        return;
    };
    let stack = udp(&wire.host, "0.0.0.0:7000");
    let client = udp(&wire.client, "192.0.2.1:0");
    let mut buffer = [0; 4_096];
    let mut through_stack = |payload: &[u8], to: &str| {
        client.send_to(payload, to).expect("sent");
        let (length, _) = stack.recv_from(&mut buffer).expect("by the stack");
        assert_eq!(&buffer[..length], payload);
    };
    // Larger than a frame of the socket; in fragments.
    through_stack(&[1; 2_000], "192.0.2.2:7000");
    through_stack(&[2; 3_500], "192.0.2.2:7000");
    assert_eq!(socket.receive(64, |_| ()), 0);
    // Another interface whose queue has the same number.
    wire.host.ip(&format!(
        "link add h1 type veth peer name c1 netns {}",
        wire.client.path()
    ));
    for (namespace, interface, address) in [
        (&wire.host, "h1", "198.51.100.2/24"),
        (&wire.client, "c1", "198.51.100.1/24"),
    ] {
        namespace.ip(&format!("addr add {address} dev {interface}"));
        namespace.ip(&format!("link set {interface} up"));
    }
    wire.host.run(|| {
        let wanted = Wanted::Only(Mode::Native);
        ingress.attach("h1", wanted).expect("attached").mode
    });
    through_stack(b"other", "198.51.100.2:7000");
    assert_eq!(socket.receive(64, |_| ()), 0);
    // Nobody's any more.
    maps.unset_socket(wire.host.index("h0"), 0).expect("unset");
    through_stack(b"unset", "192.0.2.2:7000");
    assert!(maps.node().expect("counters").no_socket >= 3);
    // A socket that is closed takes nothing, and loses nothing.
    drop(socket);
    std::thread::sleep(QUIET);
    through_stack(b"closed", "192.0.2.2:7000");
}
