//! A server's namespace, a client's, and a pair of interfaces between.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use hearth_testkit::namespaces::Namespace;

use super::PATIENCE;
use crate::support::Server;

/// The server's interface.
pub const INTERFACE: &str = "h0";
/// A port of a function, as the client reaches it.
pub const ADDRESS: &str = "192.0.2.2:9000";
/// The client's address.
pub const CLIENT: &str = "192.0.2.1";

/// Two namespaces, for the time of a test.
pub struct World {
    /// The server's.
    pub host: Namespace,
    /// The client's.
    pub outside: Namespace,
}

impl World {
    /// Makes them and enters the server's, with this thread: what it starts is in it.
    pub fn enter() -> Self {
        Self::made().expect("a pair of interfaces")
    }

    fn made() -> io::Result<Self> {
        let (host, outside) = (Namespace::make("host")?, Namespace::make("client")?);
        let peer = outside.name();
        host.ip(&format!(
            "link add {INTERFACE} type veth peer name c0 netns {peer}"
        ))?;
        for (namespace, interface, address) in
            [(&host, INTERFACE, "192.0.2.2"), (&outside, "c0", CLIENT)]
        {
            namespace.ip(&format!("addr add {address}/24 dev {interface}"))?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        host.enter()?;
        Ok(Self { host, outside })
    }

    /// A server with its ingress at the interface, and with functions' ports at all addresses.
    pub fn server(&self) -> Server {
        Server::start_with(&[
            ("HEARTH_XDP_INTERFACE", INTERFACE),
            ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
        ])
    }

    /// A socket of the client's for datagrams.
    pub fn socket(&self) -> UdpSocket {
        let bound = self.outside.within(|| UdpSocket::bind((CLIENT, 0)));
        let socket = bound.expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket
    }
}

/// Sends this many datagrams at once, and says how many were answered.
pub fn answered(socket: &UdpSocket, count: usize) -> usize {
    for _ in 0..count {
        socket.send_to(b"x", ADDRESS).expect("sent");
    }
    // The first may wait for an instance.
    let mut patience = PATIENCE;
    let mut answers = 0;
    let mut buffer = [0; 1024];
    loop {
        socket.set_read_timeout(Some(patience)).expect("set");
        if answers == count || socket.recv_from(&mut buffer).is_err() {
            return answers;
        }
        answers += 1;
        patience = Duration::from_secs(1);
    }
}

/// Sends a few datagrams, and says whether one was answered within a moment.
pub fn is_answered(socket: &UdpSocket) -> bool {
    let moment = Duration::from_millis(500);
    socket.set_read_timeout(Some(moment)).expect("set");
    for _ in 0..3 {
        socket.send_to(b"x", ADDRESS).expect("sent");
    }
    let mut buffer = [0; 1024];
    socket.recv_from(&mut buffer).is_ok()
}
