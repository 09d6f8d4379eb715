//! What must be opened within a sandbox's network namespace, which only root may enter. The gateway does the rest by it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, netlink};
use rustix::thread::ThreadNameSpaceType;

use crate::protocol::{BROKER, Purpose};

/// The address of the resolver in a sandbox.
const RESOLVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53);
/// Connections to the resolver, or to the broker, that may wait to be accepted.
const BACKLOG: i32 = 16;
/// Of all sockets here.
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// New interfaces get no link-local address: nobody would answer there.
const NO_LINK_LOCAL: (&str, &str) = ("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");

/// What was opened in a sandbox's network namespace.
pub(crate) struct Inside {
    /// The namespace, and netlink sockets in it: for [`ToGateway::Attach`](crate::protocol::ToGateway::Attach).
    pub(crate) handles: [OwnedFd; 3],
    /// The UDP socket and the TCP listener at which it asks for names.
    pub(crate) resolver: [OwnedFd; 2],
}

impl Inside {
    /// That of the sandbox with this PID 1.
    pub(crate) fn open(init: &OwnedFd) -> io::Result<Self> {
        within(init, || {
            no_link_local()?;
            Ok(Self {
                handles: [
                    fs::File::open("/proc/thread-self/ns/net")?.into(),
                    netlink(None)?,
                    netlink(Some(netlink::SOCK_DIAG))?,
                ],
                resolver: [bound(SocketType::DGRAM, RESOLVER)?, listener(RESOLVER)?],
            })
        })
    }
}

/// Runs something in the network namespace of a process, on a thread that ends afterwards.
fn within<T: Send>(
    process: &OwnedFd,
    what: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let enter = || {
        let network = ThreadNameSpaceType::NETWORK;
        rustix::thread::move_into_thread_name_spaces(process.as_fd(), network)?;
        what()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, enter)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    })
}

/// Keeps new interfaces of the calling thread's network namespace from getting a link-local address. Without IPv6 they
/// get none anyway.
fn no_link_local() -> io::Result<()> {
    match fs::write(NO_LINK_LOCAL.0, NO_LINK_LOCAL.1) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn netlink(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let family = AddressFamily::NETLINK;
    Ok(rustix::net::socket_with(
        family,
        SocketType::RAW,
        FLAGS,
        protocol,
    )?)
}

/// Creates a TCP socket in the network namespace of a process: that sandbox's rules, limits and counters apply to it.
pub(crate) fn tcp_socket(process: &OwnedFd, purpose: Purpose) -> io::Result<OwnedFd> {
    within(process, || match purpose {
        Purpose::Listen(port) => listener(SocketAddrV4::new(BROKER, port)),
        Purpose::Dial(address, port) => dial(SocketAddr::new(address, port)),
    })
}

/// Starts to connect. The server waits until that is done.
fn dial(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = match to.is_ipv4() {
        true => AddressFamily::INET,
        false => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

fn listener(at: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = bound(SocketType::STREAM, at)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn bound(kind: SocketType, at: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::INET, kind, FLAGS, None)?;
    // The sandbox may not have brought its loopback up yet.
    rustix::net::sockopt::set_ip_freebind(&socket, true)?;
    rustix::net::bind(&socket, &at)?;
    Ok(socket)
}
