//! Work inside a sandbox's network namespace, on a thread that ends afterwards.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType};

use super::connections::Sockets;
use super::link::Route;
use super::sys::bind_freely;
use crate::protocol::{BROKER, Purpose};

/// The address of the resolver in a sandbox.
const RESOLVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53);
/// Connections to the resolver, or to the broker, that may wait to be accepted.
const BACKLOG: i32 = 16;
/// New interfaces get no link-local address: nobody would answer there.
const NO_LINK_LOCAL: (&str, &str) = ("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");

/// A sandbox's network namespace.
pub(super) struct Inside {
    pub(super) namespace: OwnedFd,
    pub(super) route: Route,
    pub(super) sockets: Sockets,
    pub(super) resolver: [OwnedFd; 2],
}

impl Inside {
    /// The namespace of the sandbox with this PID 1.
    pub(super) fn open(init: &OwnedFd) -> io::Result<Self> {
        in_a_thread(|| {
            rustix::thread::move_into_thread_name_spaces(
                init.as_fd(),
                ThreadNameSpaceType::NETWORK,
            )?;
            no_link_local()?;
            Ok(Self {
                namespace: current()?,
                route: Route::open()?,
                sockets: Sockets::open()?,
                resolver: [bound(SocketType::DGRAM, RESOLVER)?, listener(RESOLVER)?],
            })
        })
    }
}

/// The calling thread's network namespace.
pub(super) fn current() -> io::Result<OwnedFd> {
    fs::File::open("/proc/thread-self/ns/net").map(Into::into)
}

/// Keeps new interfaces of the calling thread's network namespace from getting a link-local address. Without IPv6 they
/// get none anyway.
pub(super) fn no_link_local() -> io::Result<()> {
    match fs::write(NO_LINK_LOCAL.0, NO_LINK_LOCAL.1) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Runs something in a network namespace.
pub(super) fn within<T: Send>(
    namespace: &OwnedFd,
    what: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    in_a_thread(|| {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)?;
        what()
    })
}

/// Runs something on a new thread with namespaces of its own.
pub(super) fn in_a_thread<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, what)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    })
}

/// A TCP socket of the calling thread's network namespace.
pub(super) fn tcp_socket(purpose: Purpose) -> io::Result<OwnedFd> {
    match purpose {
        Purpose::Listen(port) => listener(SocketAddrV4::new(BROKER, port)),
        Purpose::Dial(address, port) => dial(SocketAddr::new(address, port)),
    }
}

/// Starts to connect. The server waits until that is done.
fn dial(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = match to.is_ipv4() {
        true => AddressFamily::INET,
        false => AddressFamily::INET6,
    };
    let socket = socket(family, SocketType::STREAM)?;
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
    let socket = socket(AddressFamily::INET, kind)?;
    // The sandbox may not have brought its loopback up yet.
    bind_freely(&socket)?;
    rustix::net::bind(&socket, &at)?;
    Ok(socket)
}

fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}
