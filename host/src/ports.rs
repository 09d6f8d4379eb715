//! Ports of functions. The server may bind none itself: it gets sockets that are bound.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

use crate::protocol::Protocol;
use crate::settings::PortSettings;

/// Connections that wait to be accepted; the kernel's own limit applies, too.
const BACKLOG: i32 = 4096;
/// States in `/proc/net`: a TCP socket that listens, a UDP socket that is bound.
const LISTENS: &str = "0A";
const IS_BOUND: &str = "07";

/// Whether functions may have this port.
pub(crate) fn is_allowed(port: u16, settings: &PortSettings) -> bool {
    port != 0 && settings.ports.contains(&port)
}

/// A socket on a port: one that listens, or one for datagrams.
pub(crate) fn open(protocol: Protocol, port: u16, settings: &PortSettings) -> io::Result<OwnedFd> {
    let address = SocketAddr::new(settings.address, port);
    let (family, kind, protocol) = match (settings.address, protocol) {
        (IpAddr::V4(_), Protocol::Tcp) => (AddressFamily::INET, SocketType::STREAM, ipproto::TCP),
        (IpAddr::V6(_), Protocol::Tcp) => (AddressFamily::INET6, SocketType::STREAM, ipproto::TCP),
        (IpAddr::V4(_), Protocol::Udp) => (AddressFamily::INET, SocketType::DGRAM, ipproto::UDP),
        (IpAddr::V6(_), Protocol::Udp) => (AddressFamily::INET6, SocketType::DGRAM, ipproto::UDP),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, Some(protocol))?;
    if settings.address == IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED) {
        // All addresses of both.
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    if kind == SocketType::STREAM {
        // Connections of an earlier server may linger.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

/// Which process has a port: `nginx (process 812)`, as far as that can be seen. Reads all of `/proc`: milliseconds, on a
/// large host a tenth of a second.
pub(crate) fn owner(protocol: Protocol, port: u16) -> Option<String> {
    let (tables, state) = match protocol {
        Protocol::Tcp => (["tcp", "tcp6"], LISTENS),
        Protocol::Udp => (["udp", "udp6"], IS_BOUND),
    };
    let inode = tables.iter().find_map(|table| {
        let table = fs::read_to_string(Path::new("/proc/net").join(table)).ok()?;
        inode(&table, port, state)
    })?;
    let target = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let owner = processes
        .map(|entry| entry.path())
        .filter(|process| process.join("fd").is_dir())
        .find(|process| holds(process, &target))?;
    let name = fs::read_to_string(owner.join("comm")).ok()?;
    let pid = owner.file_name()?.to_str()?.to_owned();
    Some(format!("{} (process {pid})", name.trim_end()))
}

/// The inode of the socket on this port, in a table of `/proc/net` (`Documentation/networking/proc_net_tcp.rst`).
fn inode(table: &str, port: u16, state: &str) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == state;
        is_it.then(|| fields.get(9)?.parse().ok()).flatten()
    })
}

/// Whether one of a process's descriptors is this.
fn holds(process: &Path, target: &str) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten();
    descriptors.flatten().any(|entry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == OsStr::new(target))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

    use super::*;

    fn on(address: impl Into<IpAddr>) -> PortSettings {
        PortSettings {
            address: address.into(),
            ports: 1024..=65535,
        }
    }

    #[test]
    fn a_port_that_is_taken_names_who_has_it() {
        let own = format!("(process {})", std::process::id());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let taken = open(Protocol::Tcp, port, &on(Ipv4Addr::LOCALHOST)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert!(owner(Protocol::Tcp, port).unwrap().ends_with(&own));
        let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(owner(Protocol::Udp, port).unwrap().ends_with(&own));
        drop(socket);
        assert_eq!(owner(Protocol::Udp, port), None);
    }

    #[test]
    fn all_addresses_are_those_of_both_families() {
        let settings = on(Ipv6Addr::UNSPECIFIED);
        // One that the kernel has just had free.
        let free = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let listener = TcpListener::from(open(Protocol::Tcp, port, &settings).unwrap());
        for address in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            std::net::TcpStream::connect((address, port)).unwrap();
        }
        drop(listener);
    }

    #[test]
    fn only_ports_in_the_range_are_allowed() {
        let settings = PortSettings {
            address: Ipv4Addr::LOCALHOST.into(),
            ports: 0..=9000,
        };
        let allowed = [0, 1, 9000, 9001].map(|port| is_allowed(port, &settings));
        assert_eq!(allowed, [false, true, true, false]);
    }
}
