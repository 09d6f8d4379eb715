//! Tracked connections: removed with their sandbox, and closed when its policy no longer allows them.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::netlink;

use crate::link::{family, octets};
use crate::netlink::Attribute::{Nest, Raw, U32};
use crate::netlink::{DUMP, Messages, Netlink, attribute};
use crate::protocol::Protocol;

/// `NFNL_SUBSYS_CTNETLINK`, and messages of it.
const SUBSYSTEM: u16 = 1 << 8;
const GET: u16 = SUBSYSTEM | 1;
const DELETE: u16 = SUBSYSTEM | 2;
/// Attributes (`linux/netfilter/nfnetlink_conntrack.h`).
const TUPLE: u16 = 1;
const MARK: u16 = 8;
const MARK_MASK: u16 = 21;
/// Netfilter's header, without a family.
const HEAD: [u8; 4] = [0; 4];

/// Destroys a socket (`linux/sock_diag.h`).
const SOCK_DESTROY: u16 = 21;
/// Any socket with these addresses.
const ANY: [u8; 8] = [0xff; 8];

/// One connection of a sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    source: IpAddr,
    source_port: u16,
    pub(crate) protocol: Protocol,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The kernel's own form of it.
    tuple: Vec<u8>,
}

impl Connection {
    /// One that is not tracked, which [`Connections::cut`] does not know.
    pub(crate) fn tcp(source: (IpAddr, u16), to: (IpAddr, u16)) -> Self {
        Self {
            source: source.0,
            source_port: source.1,
            protocol: Protocol::Tcp,
            address: to.0,
            port: to.1,
            tuple: Vec::new(),
        }
    }
}

/// The connections of one network namespace.
pub(crate) struct Connections(Netlink);

impl Connections {
    /// Those of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        Netlink::open(Some(netlink::NETFILTER)).map(Self)
    }

    /// Removes all with this mark. Their packets no longer belong to any connection.
    pub(crate) fn forget(&self, mark: u32) -> io::Result<()> {
        let marked = [U32(MARK, mark), U32(MARK_MASK, u32::MAX)];
        unless_gone(self.0.request(DELETE, 0, &HEAD, &marked))
    }

    /// Lists those with this mark.
    pub(crate) fn with_mark(&self, mark: u32) -> io::Result<Vec<Connection>> {
        let mut messages = Messages::default();
        messages
            .begin(GET, DUMP, &HEAD)
            .put(&[U32(MARK, mark), U32(MARK_MASK, u32::MAX)]);
        let mut found = Vec::new();
        self.0.ask(&messages, |_, body| {
            let tuple = body.get(HEAD.len()..).and_then(|all| attribute(all, TUPLE));
            found.extend(tuple.and_then(connection));
        })?;
        Ok(found)
    }

    /// Removes one.
    pub(crate) fn cut(&self, connection: &Connection) -> io::Result<()> {
        let head = [family(connection.address), 0, 0, 0];
        let tuple = [Nest(TUPLE, &[Raw(&connection.tuple)])];
        unless_gone(self.0.request(DELETE, 0, &head, &tuple))
    }
}

/// There may be none any more.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A tuple's attributes: addresses (1: sources 1 and 3, destinations 2 and 4) and the transport protocol's part (2).
fn connection(tuple: &[u8]) -> Option<Connection> {
    let (addresses, above) = (attribute(tuple, 1)?, attribute(tuple, 2)?);
    let address = |four: u16, six: u16| -> Option<IpAddr> {
        if let Some(bytes) = attribute(addresses, four) {
            return Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?));
        }
        let bytes: [u8; 16] = attribute(addresses, six)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    let port = |kind: u16| -> Option<u16> {
        Some(u16::from_be_bytes(attribute(above, kind)?.try_into().ok()?))
    };
    Some(Connection {
        source: address(1, 3)?,
        source_port: port(2)?,
        protocol: Protocol::of_number(*attribute(above, 1)?.first()?)?,
        address: address(2, 4)?,
        port: port(3)?,
        tuple: tuple.to_vec(),
    })
}

/// Destroys sockets of one network namespace. Programs waiting on them get an error.
pub(crate) struct Sockets(Netlink);

impl Sockets {
    /// Those of the namespace in which this socket was opened.
    pub(crate) fn by(socket: OwnedFd) -> Self {
        Self(Netlink::by(socket))
    }

    /// Destroys the socket of a connection.
    pub(crate) fn end(&self, connection: &Connection) -> io::Result<()> {
        let padded = |address: IpAddr| {
            let mut bytes = octets(address);
            bytes.resize(16, 0);
            bytes
        };
        let kind = [
            family(connection.address),
            connection.protocol.number(),
            0,
            0,
        ];
        let ports = [connection.source_port, connection.port];
        // `struct inet_diag_req_v2`.
        let request = [
            &kind[..],
            &u32::MAX.to_ne_bytes(),
            &ports.map(u16::to_be_bytes).concat(),
            &padded(connection.source),
            &padded(connection.address),
            &[0; 4],
            &ANY,
        ];
        self.0.request(SOCK_DESTROY, 0, &request.concat(), &[])
    }
}
